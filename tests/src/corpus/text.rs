//! Rows of `text-hazards.jsonl`: text stays what it is on the wire, and reaches no terminal raw.

use serde::Deserialize;
use serde_json::{Value, json};
use tool_runtime::__workspace::{self as workspace, Limits, Tree, parse_value};
use tool_runtime::wire::history::{CallMessage, Part, ResultMessage};
use tool_runtime::wire::{Format, Message};

#[derive(Deserialize)]
struct Row {
    id: Value,
    text: Option<String>,
    /// Text and how often it is repeated.
    pieces: Option<Vec<(String, usize)>>,
}

/// Answers a row: `{"id","round_trip","terminal"}`, the text that came back and a line for a terminal. A row that cannot
/// be read has `null` for both.
#[must_use]
pub fn text(row: &str) -> String {
    let Ok(Row { id, text, pieces }) = serde_json::from_str(row) else {
        return json!({"id": null, "round_trip": null, "terminal": null}).to_string();
    };
    let pieces = pieces.unwrap_or_default();
    let text = text.unwrap_or_else(|| pieces.iter().map(|(text, times)| text.repeat(*times)).collect());
    json!({"id": id, "round_trip": round_trip(&text), "terminal": workspace::shown(&text)}).to_string()
}

/// The text as a result in the history of a request: encoded, and parsed again by the parser of arguments.
fn round_trip(text: &str) -> Option<String> {
    let history = [
        Message::Assistant(vec![Part::Call(CallMessage::new("c", "ns__echo".to_owned(), "{}"))]),
        Message::Result(ResultMessage::new("c", text)),
    ];
    let body = serde_json::to_string(&Format::OpenAiChat.encode_messages(&history, None).body).ok()?;
    let tree = parse_value(&body, &Limits { bytes: usize::MAX, depth: 128 }).ok()?;
    let member = |tree: &Tree<'_>| tree.to_value().pointer("/messages/1/content").cloned();
    member(&tree)?.as_str().map(ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        let long = json!({"id": 2, "pieces": [["\u{202e}a", 20_000]]});
        for row in [json!({"id": 1, "text": "\u{1b}[2J\"\\\u{0}\r\n日本"}), long] {
            let answer: Value = serde_json::from_str(&text(&row.to_string())).unwrap_or_default();
            let expected = row["text"].as_str().map_or_else(|| "\u{202e}a".repeat(20_000), ToOwned::to_owned);
            assert_eq!(answer["round_trip"], json!(expected));
            let shown = answer["terminal"].as_str().unwrap_or_default();
            assert!(!shown.is_empty() && !shown.contains(['\u{1b}', '\u{202e}', '\r', '\n', '\0']));
        }
        assert!(text("{").contains("null"));
    }
}
