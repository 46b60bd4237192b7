//! [`Fragments`]: joins a list whose entries arrive in fragments, such as `reasoning_details`.

use crate::json::quote;
use crate::wire::decode::cursor::Json;
use crate::wire::decode::fields::{Integer, List, Text, Whole, read, shape};
use crate::wire::decode::members::write_key;

shape! {
    struct Fragment<'a> {
        "type" => kind: Text<'a>,
        "index" => index: Integer,
        "text" => text: Text<'a>,
        "summary" => summary: Text<'a>,
        "thinking" => thinking: Text<'a>,
        "signature" => signature: Text<'a>,
    }
}

/// The members whose text is joined over the fragments.
const JOINED: [&str; 3] = ["text", "summary", "thinking"];

/// The members that this file reads. They are kept even if the entry has too many members.
const KNOWN: [&str; 6] = ["index", "signature", "summary", "text", "thinking", "type"];

/// The maximum number of members of an entry in fragments, not counting those of [`KNOWN`].
const MAX_MEMBERS: usize = 64;

/// A list whose entries may arrive in fragments. An entry that arrives whole keeps its JSON text.
#[derive(Default)]
pub(super) struct Fragments(Vec<Entry>);

struct Entry {
    kind: String,
    index: Option<i64>,
    /// The JSON text of the entry; `None` if it arrived in fragments.
    whole: Option<String>,
    members: Vec<(String, String)>,
    joined: String,
    signed: bool,
}

impl Fragments {
    /// Adds a list of entries or fragments, and returns its text to show. Other JSON is ignored.
    pub(super) fn add(&mut self, list: &str) -> String {
        let mut shown = String::new();
        let list: List<Whole<'_, Fragment<'_>>> = read(list).unwrap_or_default();
        for fragment in list.iter() {
            let Fragment { kind, index, text, summary, thinking, signature } = &fragment.value;
            let joined = [text, summary, thinking].map(Text::get).concat();
            shown.push_str(&joined);
            let last = self.0.last_mut().filter(|last| {
                // Other entries, such as encrypted reasoning, arrive whole.
                let is_text = last.kind.ends_with("text") || last.kind.ends_with("summary") || last.kind == "thinking";
                // Without an index, a signature ends an entry.
                let same_index = match (last.index, index.0) {
                    (Some(before), Some(now)) => before == now,
                    _ => !last.signed,
                };
                is_text && last.kind == kind.get() && same_index
            });
            match last {
                Some(last) => {
                    last.add(fragment.text, &joined);
                    last.signed |= !signature.get().is_empty();
                }
                None => {
                    let (kind, index) = (kind.get().to_owned(), index.0);
                    let whole = Some(fragment.text.to_owned());
                    let signed = !signature.get().is_empty();
                    self.0.push(Entry { kind, index, whole, members: Vec::new(), joined, signed });
                }
            }
        }
        shown
    }

    /// The list as JSON text; `None` if it is empty.
    pub(super) fn json(&self) -> Option<String> {
        let entries: Vec<_> = self.0.iter().map(Entry::json).collect();
        (!entries.is_empty()).then(|| format!("[{}]", entries.join(",")))
    }
}

impl Entry {
    /// Adds a fragment: its text is joined. Other members keep their first value that is not empty.
    fn add(&mut self, fragment: &str, joined: &str) {
        if let Some(whole) = self.whole.take() {
            self.members = members(&whole);
        }
        self.joined.push_str(joined);
        for (key, value) in members(fragment) {
            let has_room = has_room(&self.members, &key);
            match self.members.iter_mut().find(|(known, _)| *known == key) {
                Some((_, before)) if matches!(before.as_str(), "null" | "\"\"") => *before = value,
                // Each new member is compared with all members of the entry, so their number is limited.
                None if has_room => self.members.push((key, value)),
                Some(_) | None => {}
            }
        }
    }

    fn json(&self) -> String {
        if let Some(whole) = &self.whole {
            return whole.clone();
        }
        let mut out = String::from("{");
        for (key, value) in &self.members {
            write_key(&mut out, key);
            if JOINED.contains(&key.as_str()) {
                quote(&mut out, &self.joined);
            } else {
                out.push_str(value);
            }
        }
        out.push('}');
        out
    }
}

/// The first members of an object, each with its JSON text.
fn members(object: &str) -> Vec<(String, String)> {
    let mut members = Vec::new();
    // The object was parsed before, so it is valid.
    let _ = Json::new(object).object(|json, key| {
        if !has_room(&members, key) {
            return json.skip();
        }
        members.push((key.to_owned(), json.raw()?.to_owned()));
        Ok(())
    });
    members
}

fn has_room(members: &[(String, String)], key: &str) -> bool {
    // An object that repeats a known member was refused before.
    members.len() < MAX_MEMBERS || KNOWN.contains(&key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fragment_is_compared_with_few_members() {
        let entry = |name: &str| {
            let members: Vec<_> = (0..1000).map(|at| format!("\"{name}{at}\":{at}")).collect();
            format!("[{{\"type\":\"reasoning.text\",\"text\":\"a\",{}}}]", members.join(","))
        };
        let mut fragments = Fragments::default();
        // An entry that arrives whole keeps its JSON text.
        fragments.add(&entry("k"));
        assert_eq!(fragments.json(), Some(entry("k")));
        for name in ["l", "m"] {
            assert_eq!(fragments.add(&entry(name)), "a");
        }
        assert_eq!((fragments.0.len(), fragments.0[0].members.len()), (1, MAX_MEMBERS));
        assert!(
            fragments.json().is_some_and(|json| json.starts_with(r#"[{"type":"reasoning.text","text":"aaa","k0":0"#))
        );
    }
    #[test]
    fn text_and_signature_are_kept_after_many_members() {
        let entry = |name: &str, last: &str| {
            let members: Vec<_> = (0..100).map(|at| format!("\"{name}{at}\":{at}")).collect();
            format!("[{{\"type\":\"reasoning.text\",{},{last}}}]", members.join(","))
        };
        for (first, second) in
            [(r#""text":"a""#, r#""text":"b","signature":"s""#), (r#""other":1"#, r#""text":"ab","signature":"s""#)]
        {
            let mut fragments = Fragments::default();
            let shown = [("k", first), ("l", second)].map(|(name, last)| fragments.add(&entry(name, last))).concat();
            assert_eq!(shown, "ab");
            let json = fragments.json().unwrap();
            assert!(json.contains(r#""text":"ab""#) && json.contains(r#""signature":"s""#), "{json}");
            assert!(fragments.0[0].members.len() <= MAX_MEMBERS + KNOWN.len());
        }
    }
}
