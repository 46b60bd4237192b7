//! Converts the result of a call to an answer in MCP.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use rmcp::model::{CallToolResult, ContentBlock, ErrorData, Resource, ResourceContents};
use serde_json::{Map, Value, json};

use crate::call::{Outcome, SafeError, ToolExecResult};
use crate::mcp::serve::error::broken;
use crate::mcp::serve::listing::{Offered, Shape};
use crate::media::{Media, MediaLocation, files};

/// Returns the caller's view of a result. An unknown tool and a tool that the caller may not see get the same answer.
pub(super) fn answer(
    result: &ToolExecResult,
    name: &str,
    offered: &Offered,
    objects_only: bool,
) -> Result<CallToolResult, ErrorData> {
    let outcome = result.outcome();
    match (outcome, result.error()) {
        (Outcome::Unavailable, _) => Err(unknown(name)),
        _ if result.is_concealed() => Err(unknown(name)),
        (Outcome::Ok, _) | (_, None) => success(result, offered, objects_only),
        (Outcome::Panicked | Outcome::InstantiateFailed, _) => Err(broken()),
        // The tool author's sentence goes out unchanged. The remarks and codes next to it are the same as for the
        // application's own model.
        (Outcome::ExecutionError, Some(SafeError { safe_message, .. })) => {
            let said = if safe_message.is_empty() { outcome.safe_message() } else { safe_message };
            let mut failure = failure(said);
            failure.content.extend(result.remarks().chain(codes(result)).map(ContentBlock::text));
            Ok(failure)
        }
        _ => Ok(failure(&result.to_model())),
    }
}

/// Returns the codes of an error as JSON for a model, without the sentences of the tool's author.
fn codes(result: &ToolExecResult) -> Option<String> {
    let mut codes: Map<String, Value> = serde_json::from_str(&result.to_model()).ok()?;
    codes.remove("message");
    codes.remove("note");
    Some(Value::Object(codes).to_string())
}

/// Returns the answer to a request whose call is still suspended after the maximum time for a held request.
pub(super) fn waits() -> CallToolResult {
    unfinished(Outcome::ApprovalRequired.code(), "The call waits for a person's approval. It has not run.")
}

/// Returns the answer to a request that cannot be held until its running call ends.
pub(super) fn works() -> CallToolResult {
    unfinished("in_progress", "The call is running.")
}

fn unfinished(code: &str, said: &str) -> CallToolResult {
    let said = format!(
        "{said} Make the same call again, with the same arguments, to get its result: that is not a second call."
    );
    failure(&json!({"ok": false, "errorCode": code, "message": said}).to_string())
}

/// Returns the remark on a result that was already sent once, in answer to an identical call.
pub(super) fn repeated(at: Timestamp) -> String {
    format!(
        "This call was answered at {at:.0}, and that answer may not have arrived. This is its result again: the call did not \
         run a second time. To make a second call, make the same call again."
    )
}

pub(super) fn unknown(name: &str) -> ErrorData {
    ErrorData::invalid_params(format!("Unknown tool: {}", crate::call::shown(name)), None)
}

/// Returns an error for the caller's model. It has no structured content, because a client would check that against the
/// output schema.
fn failure(text: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

fn success(result: &ToolExecResult, offered: &Offered, objects_only: bool) -> Result<CallToolResult, ErrorData> {
    let value = result.value().map_or("null", |value| value.get());
    let value: Value = serde_json::from_str(value).map_err(|_| broken())?;
    if !offered.fits(&value) {
        // The value is `null` if the person who settled the call, or answered in the tool's place, stated no result.
        let said = if value.is_null() { without_result() } else { result_too_large() };
        return Ok(failure(&said));
    }
    let mut content = Vec::new();
    let shown = result.shown_media();
    if offered.value != Shape::Nothing || shown.is_empty() {
        content.push(ContentBlock::text(match &value {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        }));
    }
    content.extend(shown.iter().map(block));
    content.extend(result.remarks().map(ContentBlock::text));
    let withheld = result.media().len() - shown.len();
    if withheld > 0 {
        content.push(ContentBlock::text(format!("[{} that the tool returned may not be shown.]", files(withheld))));
    }
    let mut answer = CallToolResult::success(content);
    answer.structured_content = match offered.value {
        Shape::Other if objects_only => Some(json!({"result": value})),
        Shape::Object | Shape::Other => Some(value),
        Shape::Unknown if value.is_object() => Some(value),
        Shape::Unknown | Shape::Nothing => None,
    };
    Ok(answer)
}

/// Returns the text for a call that took effect and whose result is unknown.
fn without_result() -> String {
    let said = "The call took effect. Its result is not known. Do not repeat it.";
    json!({"ok": false, "errorCode": Outcome::OutputInvalid, "message": said, "executed": true}).to_string()
}

/// Returns the text for a result that was shortened and no longer matches its schema: the same text as for a call that
/// ends with `result_too_large`.
fn result_too_large() -> String {
    let outcome = Outcome::ResultTooLarge;
    json!({"ok": false, "errorCode": outcome, "message": outcome.safe_message(), "executed": true}).to_string()
}

/// Returns a file as a content block: a resource if it has a URI, a link if it has a URL.
fn block(media: &Media) -> ContentBlock {
    let media_type = media.media_type();
    match (media.source(), media.uri()) {
        (MediaLocation::Base64(data), None) if media_type.starts_with("image/") => {
            ContentBlock::image(&**data, media_type)
        }
        (MediaLocation::Base64(data), None) if media_type.starts_with("audio/") => {
            ContentBlock::audio(&**data, media_type)
        }
        (MediaLocation::Base64(data), uri) => {
            // A file without a URI gets one made of its hash (RFC 6920).
            let uri =
                uri.map_or_else(|| format!("ni:///sha-256;{}", URL_SAFE_NO_PAD.encode(media.sha256())), str::to_owned);
            let contents = match media.text() {
                Some(text) => ResourceContents::text(text, uri),
                None => ResourceContents::blob(&**data, uri),
            };
            ContentBlock::resource(contents.with_mime_type(media_type))
        }
        (MediaLocation::Url(url), _) => {
            let name = media.name().or_else(|| url.rsplit('/').next()).filter(|name| !name.is_empty());
            let mut link = Resource::new(&**url, name.unwrap_or("file"));
            link.mime_type = Some(media_type.to_owned());
            ContentBlock::resource_link(link)
        }
        (MediaLocation::Id { .. }, _) => ContentBlock::text(format!("[{}, stored by a provider]", media.label())),
    }
}
