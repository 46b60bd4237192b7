//! Reads a server's answer to a call, block by block. No code here fetches a URL in the answer, or reads `_meta`.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::capability::Secret;
use crate::component::WithMedia;
use crate::error::{ErrorKind, ToolError};
use crate::json::{self, Limits};
use crate::mcp::source::diagnostics::Diagnostics;
use crate::mcp::source::error::RequestError;
use crate::mcp::source::message;
use crate::media::Media;
use crate::text::{cut, strip_invisible};

/// The maximum number of blocks of a result that are read.
const MAX_BLOCKS: usize = 256;

/// The longest error text of a server, in bytes.
const MAX_ERROR_BYTES: usize = 4096;

/// The shortest token that is masked in results, in bytes. A shorter one would match inside ordinary text.
const SHORTEST_TOKEN: usize = 8;

/// The secrets of a call, which a server may repeat in its answer.
pub(super) struct Secrets<'a> {
    /// Has the configured headers, or the environment of a process.
    diagnostics: &'a Diagnostics,
    /// The token of the account.
    token: Option<&'a str>,
}

impl<'a> Secrets<'a> {
    pub(super) fn of(diagnostics: &'a Diagnostics, token: Option<&'a Secret<String>>) -> Self {
        Self { diagnostics, token: token.map(|token| token.expose().as_str()) }
    }

    /// Masks the token, the configured headers and the values of the environment in an error text of the server. The
    /// text may have been cut inside one of them.
    fn masked(&self, error: &str) -> String {
        let mut all = self.diagnostics.hidden.clone();
        self.token.into_iter().for_each(|token| all.hide(token, "[token]"));
        // Remove invisible characters first, because they can split a secret.
        let plain = plain(error);
        match plain.strip_suffix("..") {
            Some(begun) => format!("{}..", all.mask_cut(begun.to_owned())),
            None => all.mask(plain),
        }
    }

    /// Masks the token in the value of a result. Header values stay, because a result may contain such a value for
    /// another reason.
    fn without_token(&self, value: Value) -> Value {
        match self.token.filter(|token| token.len() >= SHORTEST_TOKEN) {
            Some(token) => with_strings(value, &|text| text.replace(token, "[token]")),
            None => value,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw<'a> {
    #[serde(borrow, default, deserialize_with = "message::list")]
    content: Vec<&'a RawValue>,
    #[serde(borrow)]
    structured_content: Option<&'a RawValue>,
    is_error: Option<bool>,
    #[serde(borrow)]
    result_type: Option<&'a RawValue>,
    #[serde(borrow)]
    task: Option<&'a RawValue>,
}

/// The contents of a result's blocks.
#[derive(Default)]
struct Blocks {
    text: Vec<String>,
    resources: Vec<Value>,
    media: Vec<Media>,
    /// The number of remarks about omitted blocks in `text`.
    remarks: usize,
}

/// Returns the output schema for a tool that publishes none.
pub(super) fn plain_schema() -> Value {
    let text = || json!({"type": "string"});
    let resource = json!({
        "type": "object",
        "properties": {"uri": text(), "name": text(), "mime_type": text(), "text": text()},
        "additionalProperties": false,
    });
    json!({
        "type": "object",
        "properties": {"text": text(), "resources": {"type": "array", "items": resource}},
        "required": ["text"],
        "additionalProperties": false,
    })
}

/// Reads a result. With `is_structured` its value is `structuredContent`, which the schema of the tool describes.
/// Otherwise the value is `{text, resources}` of the blocks. If no block can be read, `structuredContent` is added to
/// `text` as JSON.
pub(super) fn read(text: &str, is_structured: bool, secrets: &Secrets<'_>) -> Result<WithMedia<Value>, ToolError> {
    let invalid = |why: &str| ToolError::of_source(ErrorKind::Invalid, why);
    let raw: Raw<'_> =
        serde_json::from_str(text).map_err(|_| invalid("the response is not a result of `tools/call`"))?;
    let kind = raw.result_type.map(RawValue::get);
    if raw.task.is_some() || kind == Some("\"task\"") {
        // `tasks.rs` polls tasks of SEP-2663 only. This is the older form `{task: ..}`, or a task as the result of a
        // task; the server may still be working on it.
        let why = "the server turned the call into a task in a way that is not supported";
        return Err(ToolError::of_source(ErrorKind::Lost, why));
    }
    match kind {
        None | Some("\"complete\"") => {}
        // The call is not complete: the server waits for another request that contains the input.
        Some("\"input_required\"") => {
            let why = "the server requested input in place of a result, which is not supported";
            return Err(ToolError::of_source(ErrorKind::Tool, why).with_code("protocol_violation"));
        }
        Some(_) => {
            let why = "the server sent a result of an unknown type, which does not show whether the call took effect";
            return Err(ToolError::of_source(ErrorKind::Lost, why));
        }
    }
    let mut blocks = Blocks::default();
    raw.content.iter().take(MAX_BLOCKS).for_each(|block| blocks.add(block.get()));
    if raw.content.len() > MAX_BLOCKS {
        blocks.leave_out("the other blocks of the result, which are too many");
    }
    if raw.is_error == Some(true) {
        let text = secrets.masked(&blocks.text.join("\n"));
        let reported = ToolError::of_source(ErrorKind::Reported, cut(&text, MAX_ERROR_BYTES));
        return Err(reported.with_code("server_reported"));
    }
    let structured = raw.structured_content.map(|value| {
        json::parse_value(value.get(), &Limits::UNBOUNDED)
            .map(|tree| with_strings(tree.to_value(), &plain))
            .map_err(|_| invalid("`structuredContent` cannot be read"))
    });
    let structured = structured.transpose()?;
    let value = match (is_structured, structured) {
        (true, Some(value)) => value,
        (true, None) => return Err(invalid("`structuredContent` is missing")),
        (false, structured) => blocks.value(structured).ok_or_else(|| invalid("no part of the result can be read"))?,
    };
    let value = secrets.without_token(value);
    Ok(blocks.media.into_iter().fold(WithMedia::new(value), WithMedia::media))
}

impl Blocks {
    fn add(&mut self, block: &str) {
        let block = json::parse_value(block, &Limits::UNBOUNDED).map(|tree| tree.to_value()).unwrap_or_default();
        let text = |key: &str| block.get(key).and_then(Value::as_str);
        match text("type") {
            Some("text") => match text("text") {
                Some(text) => self.text.push(plain(text)),
                None => self.leave_out("a text block without text"),
            },
            Some(kind @ ("image" | "audio")) => self.media(text("mimeType"), text("data"), Some(kind)),
            Some("resource_link") => self.resource(&block, None),
            Some("resource") => {
                let resource = block.get("resource").cloned().unwrap_or_default();
                let content = |key: &str| resource.get(key).and_then(Value::as_str);
                match (content("text"), content("blob")) {
                    (Some(text), _) => self.resource(&resource, Some(plain(text))),
                    (None, Some(blob)) => self.media(content("mimeType"), Some(blob), None),
                    (None, None) => self.leave_out("a resource without content"),
                }
            }
            Some(_) => self.leave_out("content of an unknown type"),
            None => self.leave_out("content that cannot be read"),
        }
    }

    /// Adds a file, if its content has the declared type.
    fn media(&mut self, media_type: Option<&str>, data: Option<&str>, expected_kind: Option<&str>) {
        let fits = |media_type: &&str| expected_kind.is_none_or(|kind| media_type.split('/').next() == Some(kind));
        let declared = media_type.filter(fits).zip(data);
        let media = declared.and_then(|(media_type, data)| Media::base64(media_type, data).ok());
        match media {
            Some(media) => self.media.push(media),
            None => self.leave_out("a file whose content does not match its type"),
        }
    }

    /// Adds a resource with its text, or a link to a resource. A link is never fetched.
    fn resource(&mut self, resource: &Value, text: Option<String>) {
        let mut shown = Map::new();
        for (key, as_shown) in [("uri", "uri"), ("name", "name"), ("mimeType", "mime_type")] {
            if let Some(value) = resource.get(key).and_then(Value::as_str) {
                shown.insert(as_shown.to_owned(), plain(value).into());
            }
        }
        shown.extend(text.map(|text| ("text".to_owned(), text.into())));
        self.resources.push(shown.into());
    }

    fn leave_out(&mut self, what: &str) {
        self.remarks += 1;
        self.text.push(format!("[Left out: {what}.]"));
    }

    /// Returns the value of a result, for a tool that publishes no schema. `None` if no part of the result can be read.
    fn value(&mut self, structured: Option<Value>) -> Option<Value> {
        let readable = self.text.len() - self.remarks + self.resources.len() + self.media.len();
        if readable == 0 && self.remarks > 0 && structured.is_none() {
            return None;
        }
        if let (true, Some(structured)) = (readable == 0, structured) {
            self.text.push(structured.to_string());
        }
        let mut value = json!({"text": self.text.join("\n")});
        if let (false, Some(members)) = (self.resources.is_empty(), value.as_object_mut()) {
            members.insert("resources".to_owned(), std::mem::take(&mut self.resources).into());
        }
        Some(value)
    }
}

/// Removes invisible characters and all control characters except tabs and line ends. The text then contains no
/// terminal escape codes, and a model reads the same text as a person who decides.
pub(super) fn plain(text: &str) -> String {
    strip_invisible(text, |one| matches!(one, '\n' | '\t' | '\r'))
}

/// Applies a function to every string and every key of a value.
fn with_strings(value: Value, change: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => change(&text).into(),
        Value::Array(items) => items.into_iter().map(|item| with_strings(item, change)).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(key, value)| (change(&key), with_strings(value, change))).collect()
        }
        other => other,
    }
}

/// Returns the tool error for a request that has no result.
pub(super) fn failed(failure: &RequestError, secrets: &Secrets<'_>) -> ToolError {
    let detail = || match failure.message() {
        Some(message) => format!("{failure}: {}", secrets.masked(message)),
        None => failure.to_string(),
    };
    match failure {
        RequestError::Refused { message, .. } => {
            ToolError::of_source(ErrorKind::Reported, secrets.masked(message)).with_code("server_refused")
        }
        RequestError::TooLarge => ToolError::of_source(ErrorKind::TooLarge, failure.to_string()),
        RequestError::Unreadable => ToolError::of_source(ErrorKind::Invalid, failure.to_string()),
        RequestError::Timeout => ToolError::of_source(ErrorKind::TimedOut, failure.to_string()),
        failure if failure.had_no_effect() => {
            ToolError::of_source(ErrorKind::Tool, detail()).with_code("server_unavailable")
        }
        _ => ToolError::of_source(ErrorKind::Lost, detail()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::source::config::Reach;

    #[test]
    fn a_result_has_no_invisible_characters() {
        let hidden = "a\u{202e}b\u{200b}c\u{e0041}\u{1b}d\n";
        let resource = json!({"type": "resource_link", "uri": hidden, "name": hidden, "mimeType": hidden});
        let embedded = json!({"type": "resource", "resource": {"uri": hidden, "text": hidden}});
        let text = json!({"type": "text", "text": hidden});
        let reach = Reach::Url { url: String::new(), headers: Vec::new(), connection: None };
        let diagnostics = Diagnostics::new(&reach);
        let secrets = Secrets::of(&diagnostics, None);
        let read = |raw: &Value, is_structured| read(&raw.to_string(), is_structured, &secrets).unwrap().into_parts().0;
        let value = read(&json!({"content": [text, resource, embedded]}), false);
        let named = json!({"uri": "abcd\n", "name": "abcd\n", "mime_type": "abcd\n"});
        let embedded = json!({"uri": "abcd\n", "text": "abcd\n"});
        assert_eq!(value, json!({"text": "abcd\n", "resources": [named, embedded]}));
        let value = read(&json!({"structuredContent": {hidden: [hidden, {"x": hidden}]}}), true);
        assert_eq!(value, json!({"abcd\n": ["abcd\n", {"x": "abcd\n"}]}));
        let failed = super::read(&json!({"content": [text], "isError": true}).to_string(), false, &secrets);
        assert_eq!(failed.map(drop).unwrap_err().detail(), "abcd\n");
    }

    /// An error message of a server is bounded. Wherever it is cut, no part of a secret remains at the cut.
    #[test]
    fn an_error_repeats_no_secret_even_where_it_is_cut() {
        let headers = vec![("authorization".to_owned(), Secret::new("Bearer key-0123456789".to_owned()))];
        let reach = Reach::Url { url: String::new(), headers, connection: None };
        let token = Secret::new("sk-abcdefghij".to_owned());
        let diagnostics = Diagnostics::new(&reach);
        let secrets = Secrets::of(&diagnostics, Some(&token));
        let check = |shift: usize, secrets: &Secrets<'_>| {
            let text = format!("{}key-0123456789 sk-abcdefghij sk-abc\u{200b}defghij", " ".repeat(2010 + shift));
            let refused = message::refused(&json!({"code": -1, "message": text}).to_string());
            let detail = failed(&refused, secrets).detail();
            assert!(!detail.contains("key-") && !detail.contains("sk-a"), "{shift}: {}", detail.trim());
        };
        (0..40).for_each(|shift| check(shift, &secrets));
        let env = [("A", "key-0123456789"), ("B", "sk-abcdefghij")].map(|(name, value)| (name.into(), value.into()));
        let reach = Reach::Command { program: String::new(), args: Vec::new(), env: env.into(), folder: None };
        let diagnostics = Diagnostics::new(&reach);
        (0..40).for_each(|shift| check(shift, &Secrets::of(&diagnostics, None)));
    }
}
