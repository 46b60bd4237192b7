//! Extra fields: merges fields that no setting names into the body, and refuses those that would override it.

use serde_json::{Map, Value};

use crate::wire::encode::EncodeError;
use crate::wire::encode::report::EncodeErrorKind;
use crate::wire::encode::settings::Vocabulary;

/// Fields that a request of some format writes itself (the conversation, its tools, the kind of stream), or that would
/// change the response.
const OWN: [&str; 23] = [
    "background",
    // Gemini puts cached contents, instructions and tools before those of the request.
    "cachedContent",
    "candidateCount",
    "contents",
    "conversation",
    // Some servers let the fields in it override those of the body.
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
/// A field has the name of a field that the body contains, or that a setting or the request can write, in any spelling
/// that servers treat as the same. Or the fields have more than 64 KiB.
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
        // In another spelling, the field could replace the whole object that the request writes.
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

/// Normalizes a name, so that names are equal if some server treats them as the same: some servers ignore case, some do
/// not distinguish `snake_case` and `camelCase`. Servers in Go accept `\u{17f}` for `s`, because its upper case is `S`.
pub(super) fn fold(name: &str) -> String {
    let letters = name.chars().filter(|letter| *letter != '_');
    letters.flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}
