//! Selecting members of a provider's object, and collecting members that no shape names.

use std::collections::BTreeMap;

use crate::json::quote;
use crate::wire::decode::cursor::Json;

/// The object without the named members; the others keep their JSON text. `{}` for text that is not an object.
pub(crate) fn without(object: &str, names: &[&str]) -> String {
    select(object, |name| !names.contains(&name))
}

/// The object with only the named members, which keep their JSON text. `{}` for text that is not an object.
pub(crate) fn only(object: &str, names: &[&str]) -> String {
    select(object, |name| names.contains(&name))
}

/// The members of an object that arrives in pieces.
#[derive(Default)]
pub(crate) struct Members(BTreeMap<String, Member>);

enum Member {
    /// The JSON text of a value.
    Json(String),
    /// The joined pieces of a string; they are quoted once, at the end.
    Text(String),
}

impl Members {
    /// Sets a member to a value that is JSON already.
    pub(crate) fn set(&mut self, name: &str, json: String) {
        self.0.insert(name.to_owned(), Member::Json(json));
    }

    /// Adds a member of a frame. Strings whose names suggest text of the model are joined with the earlier pieces; any
    /// other value replaces the earlier one.
    pub(crate) fn add(&mut self, name: &str, value: &str) {
        const WRITTEN: [&str; 8] =
            ["reasoning", "thinking", "thought", "text", "content", "summary", "signature", "encrypted"];
        let Some(before) = self.0.get_mut(name) else { return self.set(name, value.to_owned()) };
        let text = |json: &str| serde_json::from_str::<String>(json).ok();
        if WRITTEN.iter().any(|word| name.contains(word))
            && let Some(piece) = text(value)
        {
            let first = match before {
                Member::Text(joined) => return joined.push_str(&piece),
                Member::Json(first) => text(first),
            };
            if let Some(first) = first {
                *before = Member::Text(first + piece.as_str());
                return;
            }
        }
        *before = Member::Json(value.to_owned());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The JSON text of the object.
    pub(crate) fn object(&self) -> String {
        let mut out = String::from("{");
        for (name, member) in &self.0 {
            write_key(&mut out, name);
            match member {
                Member::Json(json) => out.push_str(json),
                Member::Text(text) => quote(&mut out, text),
            }
        }
        out.push('}');
        out
    }
}

/// Writes the key of the next member of an object. `object` already contains the opening brace.
pub(crate) fn write_key(object: &mut String, key: &str) {
    if object.len() > 1 {
        object.push(',');
    }
    quote(object, key);
    object.push(':');
}

fn select(object: &str, wanted: impl Fn(&str) -> bool) -> String {
    let mut out = String::from("{");
    let read = Json::new(object).object(|json, key| {
        let value = json.raw()?;
        if wanted(key) {
            write_key(&mut out, key);
            out.push_str(value);
        }
        Ok(())
    });
    if read.is_err() {
        return "{}".to_owned();
    }
    out.push('}');
    out
}

#[cfg(test)]
mod tests {
    use super::{Member, Members, only, without};

    /// Text in pieces is parsed and quoted once: doing so for each piece would take milliseconds for a megabyte.
    #[test]
    fn text_in_pieces_is_kept_unquoted() {
        let mut members = Members::default();
        members.add("reasoning_text", r#""a\u0062\n""#);
        assert_eq!(members.object(), r#"{"reasoning_text":"a\u0062\n"}"#);
        for _ in 0..3 {
            members.add("reasoning_text", r#""\"c""#);
            members.add("index", "1.0");
        }
        assert!(matches!(&members.0["reasoning_text"], Member::Text(text) if text == "ab\n\"c\"c\"c"));
        assert_eq!(members.object(), r#"{"index":1.0,"reasoning_text":"ab\n\"c\"c\"c"}"#);
        // Another type replaces text, and text replaces another type.
        members.add("reasoning_text", "[1]");
        assert_eq!(members.object(), r#"{"index":1.0,"reasoning_text":[1]}"#);
        members.add("reasoning_text", r#""d""#);
        assert_eq!(members.object(), r#"{"index":1.0,"reasoning_text":"d"}"#);
    }

    #[test]
    fn members_stay_as_they_were_written() {
        let object = r#" {"a" : 1.0e400, "b\"": [ 1 ], "c":null} "#;
        assert_eq!(without(object, &["c"]), r#"{"a":1.0e400,"b\"":[ 1 ]}"#);
        assert_eq!(only(object, &["c", "d"]), r#"{"c":null}"#);
        assert_eq!((without("[]", &[]), only("{", &["a"])), ("{}".to_owned(), "{}".to_owned()));
    }
}
