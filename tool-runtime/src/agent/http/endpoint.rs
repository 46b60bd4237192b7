//! What differs between the endpoints: path, headers, and the fields of the body other than tools and messages.

use std::collections::BTreeMap;

use reqwest::Url;
use serde_json::value::to_raw_value;
use serde_json::{Map, json};

use crate::agent::http::Settings;
use crate::agent::{ModelError, ModelErrorKind, ModelRequest};
use crate::wire::{EncodeOptions, Format, OnUnsupported, SentSchema};

/// The version of the Messages API that the `anthropic` format speaks.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// What the client says it is, unless the application says otherwise.
const USER_AGENT: &str = concat!("tool-runtime/", env!("CARGO_PKG_VERSION"));

/// Headers that decide how the bytes are read, so that an application cannot set them.
pub(super) const OWN_HEADERS: [&str; 4] = ["accept-encoding", "content-length", "content-type", "transfer-encoding"];

/// The most tokens of a turn if the settings name no other limit.
const MAX_OUTPUT_TOKENS: u32 = 4096;

/// The address of the endpoint: the base's path, or the provider's usual one, and the operation.
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

/// The model as a part of the path: `models/NAME`, or the whole name of a resource such as `tunedModels/NAME`.
fn model_path(model: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._@".contains(&byte);
    let is_part = |part: &str| !part.is_empty() && !part.starts_with('.') && part.bytes().all(plain);
    if !model.split('/').all(is_part) {
        return Err("the model's name cannot be a part of a URL".to_owned());
    }
    Ok(if model.contains('/') { model.to_owned() } else { format!("models/{model}") })
}

/// Headers, each with a value that may be secret.
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

/// The tools that a request offers, and which schema of each was sent.
pub(super) type Offered = BTreeMap<String, SentSchema>;

/// The body of a request, as JSON text, and the tools in it. A tool that the format cannot carry is left out, because
/// the provider would refuse the whole request.
pub(super) fn body(settings: &Settings, request: &ModelRequest<'_>) -> Result<(Vec<u8>, Offered), ModelError> {
    let format = settings.format;
    let mut asked = request.settings.clone();
    asked.max_output_tokens.get_or_insert(MAX_OUTPUT_TOKENS);
    let options = EncodeOptions::default().with_strict(settings.strict).with_on_unsupported(OnUnsupported::LeaveOut);
    let options = options.with_settings(asked);
    let tools = format.encode_tools(request.tools.specs(), &options).map_err(encode)?;
    for spec in request.tools.specs().filter(|spec| !tools.tools.contains_key(spec.name.as_str())) {
        tracing::warn!(tool = %spec.name, %format, "the format cannot carry the tool, so the model is not offered it");
    }
    let fields = format.encode_settings(&options.settings).map_err(encode)?;
    for loss in tools.losses.iter().chain(&fields.losses) {
        tracing::debug!(tool = loss.tool.as_deref(), path = loss.path, what = loss.what, "not carried by the format");
    }
    let mut body = Map::new();
    // Gemini has both in the URL.
    if format != Format::Gemini {
        body.insert("model".to_owned(), settings.model.as_str().into());
        body.insert("stream".to_owned(), settings.stream.into());
    }
    match format {
        Format::OpenAiChat if settings.stream => {
            body.insert("stream_options".to_owned(), json!({"include_usage": true}));
        }
        // The whole history goes with each request, so the provider need not keep any of it.
        Format::OpenAiResponses => {
            body.insert("store".to_owned(), false.into());
        }
        _ => {}
    }
    body.extend(fields.body);
    body.extend(tools.body);
    let messages = format.encode_messages(request.messages, Some(&settings.model));
    for loss in &messages.losses {
        tracing::debug!(path = loss.path, what = loss.what, "not carried by the format");
    }
    // The history is passed on as text, so that what the provider wants back stays as it came.
    let mut fields = messages.body;
    for (name, value) in body {
        fields.insert(name, to_raw_value(&value).map_err(encode)?);
    }
    Ok((serde_json::to_vec(&fields).map_err(encode)?, tools.tools))
}

fn encode(error: impl std::error::Error + Send + Sync + 'static) -> ModelError {
    ModelError::new(ModelErrorKind::Encode, error.to_string()).with_source(error)
}
