//! What differs between the endpoints: path, headers, and the fields of the body other than tools and messages.

use std::collections::BTreeMap;

use reqwest::Url;
use serde_json::{Map, Value, json};

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
pub(super) fn url(format: Format, base: &str) -> Result<Url, String> {
    let (usual, operation) = match format {
        Format::OpenAiChat => ("v1", "chat/completions"),
        Format::OpenAiResponses => ("v1", "responses"),
        Format::Anthropic => ("v1", "messages"),
        Format::Ollama => ("api", "chat"),
        Format::Gemini => return Err(format!("{format} can be written, not read")),
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
    Ok(url)
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
    let mut body = Map::from_iter([
        ("model".to_owned(), Value::from(settings.model.as_str())),
        ("stream".to_owned(), Value::from(settings.stream)),
    ]);
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
    body.extend(format.encode_messages(request.messages));
    Ok((serde_json::to_vec(&body).map_err(encode)?, tools.tools))
}

fn encode(error: impl std::error::Error + Send + Sync + 'static) -> ModelError {
    ModelError::new(ModelErrorKind::Encode, error.to_string()).with_source(error)
}
