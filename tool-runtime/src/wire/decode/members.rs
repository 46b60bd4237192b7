//! The members of a provider's object that are neither read nor known by name.

use std::collections::BTreeMap;

use crate::json::quote;
use crate::wire::decode::cursor::Json;

/// An object without some of its members; the others are as they were written. `{}` for text that is not an object.
pub(crate) fn without(object: &str, names: &[&str]) -> String {
    select(object, |name| !names.contains(&name))
}

/// An object with only some of its members, as they were written. `{}` for text that is not an object.
pub(crate) fn only(object: &str, names: &[&str]) -> String {
    select(object, |name| names.contains(&name))
}

/// Members that come in pieces, as they were written.
pub(crate) type Members = BTreeMap<String, String>;

/// Adds a member of a frame to those of the frames before. Text that a model writes comes in pieces, which are joined;
/// any other value replaces the earlier one.
pub(crate) fn add(members: &mut Members, name: &str, value: &str) {
    const WRITTEN: [&str; 8] =
        ["reasoning", "thinking", "thought", "text", "content", "summary", "signature", "encrypted"];
    let joined = members.get(name).filter(|_| WRITTEN.iter().any(|word| name.contains(word))).and_then(|before| {
        let text = |json: &str| serde_json::from_str::<String>(json).ok();
        let mut out = String::new();
        quote(&mut out, &(text(before)? + text(value)?.as_str()));
        Some(out)
    });
    members.insert(name.to_owned(), joined.unwrap_or_else(|| value.to_owned()));
}

/// An object of members that are JSON already.
pub(crate) fn object(members: &Members) -> String {
    let mut out = String::from("{");
    for (name, json) in members {
        write_key(&mut out, name);
        out.push_str(json);
    }
    out.push('}');
    out
}

/// Writes the key of the next member of an object. Its text begins with its brace.
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
    use super::{only, without};

    #[test]
    fn members_stay_as_they_were_written() {
        let object = r#" {"a" : 1.0e400, "b\"": [ 1 ], "c":null} "#;
        assert_eq!(without(object, &["c"]), r#"{"a":1.0e400,"b\"":[ 1 ]}"#);
        assert_eq!(only(object, &["c", "d"]), r#"{"c":null}"#);
        assert_eq!((without("[]", &[]), only("{", &["a"])), ("{}".to_owned(), "{}".to_owned()));
    }
}
