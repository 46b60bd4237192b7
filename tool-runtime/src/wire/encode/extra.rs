//! Fields of a body that no setting names: merged into the body, and refused where they would override it.

use serde_json::{Map, Value};

use crate::wire::encode::EncodeError;
use crate::wire::encode::report::EncodeErrorKind;
use crate::wire::encode::settings::Vocabulary;

/// Fields that carry the conversation, its tools or the kind of stream in one format or another, or that would change
/// the response.
const OWN: [&str; 23] = [
    "background",
    // Contents, instructions and tools that Gemini puts before those of the request.
    "cachedContent",
    "candidateCount",
    "contents",
    "conversation",
    // Some servers let its fields override those of the body.
    "extra_body",
    "function_call",
    "functions",
    "input",
    "instructions",
    "messages",
    "model",
    "n",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt",
    "stream",
    "stream_options",
    "system",
    "systemInstruction",
    "tool_choice",
    "toolConfig",
    "tools",
];

/// The maximum number of bytes of all extra fields.
const MOST_BYTES: usize = 64 << 10;

/// Adds the fields to the body.
///
/// # Errors
/// A field that the body has, or that a setting or the request itself would write, under any spelling that servers
/// read alike; or more than 64 KiB.
pub(super) fn merge(
    words: &Vocabulary,
    extra: &Map<String, Value>,
    body: &mut Map<String, Value>,
) -> Result<(), EncodeError> {
    if extra.is_empty() {
        return Ok(());
    }
    if serde_json::to_string(extra).map_or(usize::MAX, |text| text.len()) > MOST_BYTES {
        return Err(EncodeError::new(EncodeErrorKind::ExtraTooLarge, None, Some("extra".to_owned())));
    }
    let own = OWN.iter().map(|name| (*name).to_owned()).chain(OWN.iter().map(|name| words.path(name)));
    let named: Vec<Vec<String>> =
        own.chain(words.named()).map(|path| path.split('.').map(str::to_owned).collect()).collect();
    let named: Vec<&[String]> = named.iter().map(Vec::as_slice).collect();
    merge_at(&named, "extra", extra, body)
}

fn merge_at(
    named: &[&[String]],
    path: &str,
    extra: &Map<String, Value>,
    body: &mut Map<String, Value>,
) -> Result<(), EncodeError> {
    for (name, value) in extra {
        let path = format!("{path}.{name}");
        let refuse = || Err(EncodeError::new(EncodeErrorKind::ReservedField, None, Some(path.clone())));
        let same = named.iter().filter(|steps| steps.first().is_some_and(|step| fold(step) == fold(name)));
        let below: Vec<&[String]> = same.clone().filter_map(|steps| steps.get(1..)).collect();
        // Another spelling of an object that is written would override it whole.
        if below.iter().any(|rest| rest.is_empty()) || same.clone().any(|steps| steps.first() != Some(name)) {
            return refuse();
        }
        match (value, body.get_mut(name)) {
            (Value::Object(inner), Some(Value::Object(ours))) => merge_at(&below, &path, inner, ours)?,
            (Value::Object(inner), None) if !below.is_empty() => {
                let mut ours = Map::new();
                merge_at(&below, &path, inner, &mut ours)?;
                body.insert(name.clone(), ours.into());
            }
            (value, None) if below.is_empty() => {
                body.insert(name.clone(), value.clone());
            }
            _ => return refuse(),
        }
    }
    Ok(())
}

/// How servers compare names: some ignore case, some read `snake_case` and `camelCase` alike. Those written in Go take
/// `\u{17f}` for `s`, as its upper case is `S`.
pub(super) fn fold(name: &str) -> String {
    let letters = name.chars().filter(|letter| *letter != '_');
    letters.flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}
