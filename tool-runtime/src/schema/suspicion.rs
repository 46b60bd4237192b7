//! Heuristics for hostile definitions: hidden characters, prompt injection, expensive patterns.
//!
//! These are hints for a person. A definition without them can still be hostile; only the policy keeps a run safe.

use serde_json::Value;

use crate::error::Problem;
use crate::schema::problem::Pointer;
use crate::text::{InvisibleKind, invisible_kind};

/// Phrases, in lower case, that do not belong in the description of a tool.
const PHRASES: [&str; 22] = [
    "<important",
    "</important",
    "<system",
    "<secret",
    "[system",
    "~/.ssh",
    ".ssh/",
    "id_rsa",
    "id_ed25519",
    "contents of .env",
    "contents of `.env",
    "/etc/passwd",
    "/etc/shadow",
    "before using this tool",
    "before calling any other tool",
    "ignore previous",
    "ignore all previous",
    "ignore the previous",
    "disregard previous",
    "do not tell the user",
    "don't tell the user",
    "without telling the user",
];

/// Searches all texts that a model would read.
pub(crate) fn texts(description: &str, schema: &Value, found: &mut dyn FnMut(Problem)) {
    let mut pointer = Pointer::default();
    if let Some(message) = suspicious(description) {
        found(Problem::schema("/description", message, "describe the tool and nothing else"));
    }
    walk(schema, &mut pointer, 0, found);
}

/// Visits every text of a schema, because titles, descriptions, names and constants all reach the model.
fn walk(value: &Value, pointer: &mut Pointer, depth: usize, found: &mut dyn FnMut(Problem)) {
    // Deeper values have already been refused.
    if depth > 128 {
        return;
    }
    match value {
        Value::String(text) => report(text, pointer, found),
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                let mark = pointer.enter(&at.to_string());
                walk(item, pointer, depth + 1, found);
                pointer.leave(mark);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                report(key, pointer, found);
                let mark = pointer.enter(key);
                walk(member, pointer, depth + 1, found);
                pointer.leave(mark);
            }
        }
        _ => {}
    }
}

fn report(text: &str, pointer: &Pointer, found: &mut dyn FnMut(Problem)) {
    if let Some(message) = suspicious(text) {
        found(pointer.problem(message, "describe the argument and nothing else"));
    }
}

fn suspicious(text: &str) -> Option<&'static str> {
    if text.chars().any(is_hidden) {
        return Some("the text contains invisible characters");
    }
    let lower = text.to_lowercase();
    PHRASES.iter().any(|phrase| lower.contains(phrase)).then_some("the text gives orders to the model")
}

/// Whether a character can hide text. `false` for characters that scripts and emoji need.
const fn is_hidden(character: char) -> bool {
    match invisible_kind(character) {
        None | Some(InvisibleKind::Break | InvisibleKind::Joiner | InvisibleKind::Variation | InvisibleKind::Blank) => {
            false
        }
        Some(InvisibleKind::Control) => !matches!(character, '\n' | '\r' | '\t'),
        Some(InvisibleKind::Mark | InvisibleKind::Filler | InvisibleKind::Tag) => true,
    }
}

/// Returns the reason to review a pattern: a repeated group with a repetition inside, or syntax that engines treat
/// differently.
pub(crate) fn pattern(pattern: &str) -> Option<&'static str> {
    let bytes = pattern.as_bytes();
    // Whether each open group contains an unbounded repetition.
    let mut groups: Vec<bool> = Vec::new();
    let (mut at, mut in_class) = (0, false);
    while let Some(byte) = bytes.get(at) {
        let rest = &bytes[at + 1..];
        match byte {
            b'\\' => {
                if !in_class && rest.first().is_some_and(|next| matches!(next, b'1'..=b'9' | b'k')) {
                    return Some("the pattern has a back-reference");
                }
                at += 1;
            }
            b'[' if !in_class => in_class = true,
            b']' => in_class = false,
            _ if in_class => {}
            b'(' => {
                if rest.starts_with(b"?<=")
                    || rest.starts_with(b"?<!")
                    || rest.starts_with(b"?=")
                    || rest.starts_with(b"?!")
                {
                    return Some("the pattern has look-around");
                }
                groups.push(false);
            }
            b')' => {
                let inner = groups.pop().unwrap_or(false);
                let repeated = repeats(rest);
                if inner && repeated {
                    return Some("the pattern repeats a group that already repeats");
                }
                if let (true, Some(outer)) = (inner || repeated, groups.last_mut()) {
                    *outer = true;
                }
            }
            b'*' | b'+' => {
                if let Some(group) = groups.last_mut() {
                    *group = true;
                }
            }
            b'{' if repeats(&bytes[at..]) => {
                if let Some(group) = groups.last_mut() {
                    *group = true;
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Whether the pattern repeats here without an upper bound.
fn repeats(rest: &[u8]) -> bool {
    match rest.first() {
        Some(b'*' | b'+') => true,
        Some(b'{') => rest.iter().position(|byte| *byte == b'}').is_some_and(|end| rest[..end].ends_with(b",")),
        _ => false,
    }
}
