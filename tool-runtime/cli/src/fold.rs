//! Formats values for people: one field per line, aligned, with long text folded.

use serde_json::Value;

use crate::terminal;

/// The indentation below a call.
pub(super) const INDENT: usize = 3;
/// The maximum width of the column of names. A longer name is not cut.
const NAMES: usize = 20;

/// The width and the number of lines for a value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub(super) width: usize,
    pub(super) lines: usize,
}

impl Room {
    /// Returns the limits for a message on this terminal.
    pub(super) fn of_message(lines: usize) -> Self {
        Self { width: terminal::width().unwrap_or(100), lines }
    }
}

/// Formats JSON text as indented lines that are safe for a terminal.
pub(super) fn fields(json: &str, room: Room) -> Vec<String> {
    let mut lines = match serde_json::from_str(json) {
        Ok(Value::Object(members)) => {
            let widest = members.keys().map(|name| name.chars().count()).max().unwrap_or_default().min(NAMES);
            members.iter().flat_map(|(name, value)| field(name, widest, value, room.width)).collect()
        }
        Ok(Value::Array(items)) => items.iter().flat_map(|item| field("-", 1, item, room.width)).collect(),
        Ok(Value::Null) => Vec::new(),
        Ok(scalar) => wrapped("", INDENT, &text(&scalar), room.width),
        // The text cannot be parsed (nested too deep, or half a surrogate pair), so it is shown unchanged.
        Err(_) => wrapped("", INDENT, json, room.width),
    };
    if lines.len() > room.lines.max(2) {
        let rest = lines.len() - (room.lines.max(2) - 1);
        lines.truncate(room.lines.max(2) - 1);
        lines.push(format!("{}\u{2026} {rest} more lines", " ".repeat(INDENT)));
    }
    lines
}

fn field(name: &str, widest: usize, value: &Value, width: usize) -> Vec<String> {
    let label = format!("{:INDENT$}{:widest$}  ", "", terminal::safe(name));
    wrapped(&label, INDENT + widest + 2, &text(value), width)
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(members) => {
            let inner = members.iter().map(|(name, value)| match value {
                Value::String(text) => format!("{name}: {text}"),
                other => format!("{name}: {other}"),
            });
            inner.collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

/// Formats text after a label, broken at white space. All lines except the first are indented.
fn wrapped(label: &str, indent: usize, text: &str, width: usize) -> Vec<String> {
    let room = width.saturating_sub(indent).max(20);
    let mut lines: Vec<_> = text.lines().flat_map(|paragraph| folded(&terminal::safe(paragraph), room)).collect();
    if lines.is_empty() {
        lines.push(String::new());
    }
    let place = |(at, line): (usize, String)| {
        let start = if at == 0 && !label.is_empty() { label.to_owned() } else { " ".repeat(indent) };
        format!("{start}{line}").trim_end().to_owned()
    };
    lines.into_iter().enumerate().map(place).collect()
}

/// Breaks a line into lines of at most `room` characters, at spaces where possible. Keeps every other character.
pub(super) fn folded(line: &str, room: usize) -> Vec<String> {
    let (room, letters) = (room.max(1), line.chars().collect::<Vec<_>>());
    let (mut lines, mut rest) = (Vec::new(), letters.as_slice());
    while rest.len() > room {
        let end = rest[..=room].iter().rposition(|letter| *letter == ' ').filter(|at| *at > room / 2);
        let (first, others) = rest.split_at(end.map_or(room, |at| at + 1));
        lines.push(first.iter().collect::<String>().trim_end().to_owned());
        rest = others;
    }
    lines.push(rest.iter().collect());
    lines
}

#[cfg(test)]
mod tests {
    use super::{Room, fields, folded};

    #[track_caller]
    fn check(json: &str, expected: &[&str]) {
        assert_eq!(fields(json, Room { width: 40, lines: 5 }), expected);
    }

    #[test]
    fn fields_are_aligned_and_folded() {
        check(r#"{"id":7,"title":"Lease"}"#, &["   id     7", "   title  Lease"]);
        check(r#"["a",{"b":1}]"#, &["   -  a", "   -  b: 1"]);
        check(
            r#"{"note":"one two three four five six seven eight"}"#,
            &["   note  one two three four five six", "         seven eight"],
        );
        check("[1,2,3,4,5,6]", &["   -  1", "   -  2", "   -  3", "   -  4", "   \u{2026} 2 more lines"]);
        check("{}", &[]);
    }

    #[test]
    fn a_line_of_any_length_is_folded() {
        assert_eq!(folded("one two three", 8), ["one two", "three"]);
        assert_eq!(folded("one two three", usize::MAX), ["one two three"]);
        assert_eq!(folded("one", 0), ["o", "n", "e"]);
        assert_eq!(folded("", 20), [""]);
        assert_eq!(folded(&"x".repeat(1_000_000), 20).len(), 50_000);
    }

    #[test]
    fn what_is_no_value_is_text() {
        let deep = format!("{}1{}", "[".repeat(300), "]".repeat(300));
        assert_eq!(fields(&deep, Room { width: 40, lines: 3 }).len(), 3);
        check(r#"{"a":"\ud800"}"#, &[r#"   {"a":"\ud800"}"#]);
        check("\"\\u001b[2J\"", &["   \\u{1b}[2J"]);
    }
}
