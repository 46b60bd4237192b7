//! The differences between the formats' endpoints: path, headers, and the fields of the body other than tools and
//! messages.

use std::collections::BTreeSet;
use std::sync::Arc;

use reqwest::Url;
use serde_json::{Value, json};

use crate::agent::http::settings::Settings;
use crate::agent::{ModelError, ModelErrorKind, ModelRequest};
use crate::wire::{CodeIn, EncodeOptions, ErrorCode, Format, Message, OfferedTools, RequestInput, event_error};

/// The version of Anthropic's Messages API for the `anthropic` format.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// The client's `user-agent`, unless the application sets another.
pub(super) const USER_AGENT: &str = concat!("tool-runtime/", env!("CARGO_PKG_VERSION"));

/// Headers that determine how the bytes are read. An application cannot set them.
pub(super) const OWN_HEADERS: [&str; 4] = ["accept-encoding", "content-length", "content-type", "transfer-encoding"];

/// The value that a request of the `openai_responses` format lists under `include`.
const ENCRYPTED_REASONING: &str = "reasoning.encrypted_content";

/// Returns the URL of the endpoint: the base URL with its path, or the provider's usual path if it has none, and the
/// operation.
pub(super) fn url(settings: &Settings, base: &str) -> Result<Url, String> {
    let (usual, operation) = match settings.format {
        Format::OpenAiChat => ("v1", "chat/completions".to_owned()),
        Format::OpenAiResponses => ("v1", "responses".to_owned()),
        Format::Anthropic => ("v1", "messages".to_owned()),
        Format::Ollama => ("api", "chat".to_owned()),
        Format::Gemini => {
            let method = if settings.stream { "streamGenerateContent" } else { "generateContent" };
            ("v1beta", format!("{}:{method}", model_path(&settings.model)?))
        }
    };
    let mut url = Url::parse(base).map_err(|error| format!("the base URL cannot be read: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("the base URL has to begin with http:// or https://".to_owned());
    }
    let written = url.path().trim_end_matches('/');
    let is_whole = match settings.format {
        Format::Gemini => written.ends_with(":generateContent") || written.ends_with(":streamGenerateContent"),
        _ => written.ends_with(&format!("/{usual}/{operation}")),
    };
    if is_whole {
        return Err(format!("the base URL ends with the operation; leave `/{operation}` out"));
    }
    let path = match url.path().trim_matches('/') {
        "" => format!("/{usual}/{operation}"),
        path => format!("/{path}/{operation}"),
    };
    url.set_path(&path);
    if settings.format == Format::Gemini && settings.stream {
        url.query_pairs_mut().append_pair("alt", "sse");
    }
    Ok(url)
}

/// Returns the model as a part of the path: `models/NAME`, or the whole name of a resource such as `tunedModels/NAME`.
fn model_path(model: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._@".contains(&byte);
    let is_part = |part: &str| !part.is_empty() && !part.starts_with('.') && part.bytes().all(plain);
    if !model.split('/').all(is_part) {
        return Err("the model's name cannot be a part of a URL".to_owned());
    }
    Ok(if model.contains('/') { model.to_owned() } else { format!("models/{model}") })
}

/// Returns the headers, each with a value that may be secret.
pub(super) fn headers(settings: &Settings) -> Vec<(String, String)> {
    let own = [("content-type", "application/json"), ("accept-encoding", "gzip"), ("user-agent", USER_AGENT)];
    let mut headers: Vec<_> = own.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    if settings.format == Format::Anthropic {
        headers.push(("anthropic-version".to_owned(), ANTHROPIC_VERSION.to_owned()));
    }
    if let Some(key) = &settings.key {
        headers.push(match settings.format {
            Format::Anthropic => ("x-api-key".to_owned(), key.expose().clone()),
            Format::Gemini => ("x-goog-api-key".to_owned(), key.expose().clone()),
            _ => ("authorization".to_owned(), format!("Bearer {}", key.expose())),
        });
    }
    headers.extend(settings.headers.iter().map(|(name, value)| (name.clone(), value.expose().clone())));
    headers
}

/// Returns the encoding options of the tools. A tool that the format cannot express is left out, because the provider
/// would refuse the whole request.
pub(super) fn options(settings: &Settings) -> EncodeOptions {
    EncodeOptions::default()
        .with_strict(settings.strict)
        .with_leave_out_unsupported(true)
        .with_provider_limits(settings.provider_limits)
}

/// Returns the body of a request as JSON text, and the names of its tools. `sealed` requests encrypted reasoning, the
/// only form that a provider returns if it does not store the response.
pub(super) fn body(
    settings: &Settings,
    request: &ModelRequest<'_>,
    tools: &OfferedTools,
    sealed: bool,
) -> Result<(Vec<u8>, Arc<BTreeSet<String>>), ModelError> {
    let format = settings.format;
    let mut asked = request.settings.clone();
    // Only a format that requires a limit gets a default limit, because a limit also cuts off reasoning.
    asked.max_output_tokens =
        asked.max_output_tokens.or_else(|| format.limit(&asked, &settings.model, settings.stream));
    if sealed && let Value::Array(include) = asked.extra.entry("include").or_insert_with(|| json!([])) {
        let reasoning = json!(ENCRYPTED_REASONING);
        if !include.contains(&reasoning) {
            include.push(reasoning);
        }
    }
    let options = options(settings).with_settings(asked);
    let answer = request.answer.map(|answer| (answer, settings.answers));
    let asked = RequestInput { messages: request.messages, model: &settings.model, options: &options, answer };
    let mut body = format.encode_request(tools, &asked).map_err(encode)?;
    for tool in tools.left_out() {
        tracing::warn!(tool, %format, "the format cannot express the tool, so the model does not get it");
    }
    for loss in tools.losses().iter().chain(&body.losses) {
        tracing::debug!(tool = loss.tool.as_deref(), path = loss.path, what = loss.what, "left out by the format");
    }
    // For Gemini, the URL contains the model and selects streaming.
    if format != Format::Gemini {
        body.lead("model", settings.model.as_str());
        body.trail("stream", settings.stream);
    }
    match format {
        Format::OpenAiChat if settings.stream => body.trail("stream_options", json!({"include_usage": true})),
        Format::OpenAiResponses => {
            // Each request contains the whole history, so the provider need not store any of it.
            body.trail("store", false);
            if options.settings.cache != Some(false) {
                body.trail("prompt_cache_key", cache_key(request));
            }
        }
        _ => {}
    }
    Ok((body.write().into_bytes(), body.offered))
}

/// Returns a key that the requests of one conversation share, derived from its instructions and its first message. The
/// key does not depend on the tools, because an agent that picks tools can offer more of them in later requests.
fn cache_key(request: &ModelRequest<'_>) -> String {
    let first = request.messages.iter().position(|message| !matches!(message, Message::System(_)));
    let opening = request.messages.get(..=first.unwrap_or(0)).unwrap_or_default();
    let tools = request.tools.only(std::iter::empty());
    ModelRequest { messages: opening, tools: &tools, ..*request }.prompt_hash("").to_string()
}

/// Whether the provider refused a request because its model has no encrypted reasoning, or because the server does not
/// know the field that requests it. OpenAI answers 400 with `param: "include"`: "Encrypted content is not supported
/// with this model."
pub(super) fn refuses_sealed(error: &ModelError) -> bool {
    let names_it = |detail: &str| {
        ["\"include\"", "'include'", "`include`", "include[", ENCRYPTED_REASONING, "Encrypted content"]
            .iter()
            .any(|word| detail.contains(word))
    };
    matches!(error.kind(), ModelErrorKind::Status(400 | 422)) && names_it(error.detail())
}

/// Returns the provider's message in the body of an error, with its code; the whole body if it has no message.
pub(super) fn message(body: &str) -> String {
    let is_json = body.trim_start().starts_with(['{', '[']);
    let read = is_json.then(|| serde_json::from_str::<Value>(body).ok()).flatten();
    // Gemini writes an array with one error in place of a stream.
    let read = read.map(|read| if let Value::Array(mut all) = read { all.pop().unwrap_or_default() } else { read });
    let error = read.map(|read| event_error(&read.to_string(), CodeIn::CodeOrType));
    match error.and_then(|error| {
        error.message.filter(|message| !message.is_empty()).map(|message| (message, error.provider_code))
    }) {
        Some((message, Some(ErrorCode::Text(code)))) => format!("{message} ({code})"),
        Some((message, Some(ErrorCode::Number(code)))) => format!("{message} ({code})"),
        Some((message, None)) => message,
        None => body.to_owned(),
    }
}

pub(super) fn encode(error: impl std::error::Error + Send + Sync + 'static) -> ModelError {
    ModelError::new(ModelErrorKind::Encode, error.to_string()).with_source(error)
}
