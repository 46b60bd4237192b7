//! What differs between the endpoints: path, headers, and the parts of the body beside tools and messages.

use reqwest::Url;
use serde_json::{Map, Value, json};

use crate::agent::http::Settings;
use crate::agent::{ModelError, ModelErrorKind, ModelRequest};
use crate::wire::{EncodeOptions, Format};

/// The version of the Messages API that the `anthropic` format speaks.
const ANTHROPIC_VERSION: &str = "2023-06-01";

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
    let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
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

/// The body of a request, as JSON text.
pub(super) fn body(settings: &Settings, request: &ModelRequest<'_>) -> Result<Vec<u8>, ModelError> {
    let encode = |detail: String| ModelError::new(ModelErrorKind::Encode, detail);
    let format = settings.format;
    let mut options = EncodeOptions::default().with_strict(settings.strict && has_strict(format));
    // Ollama has no word for it.
    options.parallel = request.parallel.filter(|_| format != Format::Ollama);
    let tools = format.encode_tools(request.tools.specs(), &options).map_err(|error| encode(error.to_string()))?;
    for loss in &tools.losses {
        tracing::debug!(tool = loss.tool.as_deref(), path = loss.path, what = loss.what, "not carried by the format");
    }
    let mut body = Map::from_iter([
        ("model".to_owned(), Value::from(settings.model.as_str())),
        ("stream".to_owned(), Value::from(settings.stream)),
    ]);
    let tokens = settings.max_output_tokens;
    match format {
        Format::OpenAiChat => {
            body.insert("max_completion_tokens".to_owned(), tokens.into());
            if settings.stream {
                body.insert("stream_options".to_owned(), json!({"include_usage": true}));
            }
        }
        Format::OpenAiResponses => {
            body.insert("max_output_tokens".to_owned(), tokens.into());
            // The whole history goes with each request, so the provider need not keep any of it.
            body.insert("store".to_owned(), false.into());
        }
        Format::Anthropic => {
            body.insert("max_tokens".to_owned(), tokens.into());
        }
        Format::Ollama => {
            body.insert("options".to_owned(), json!({"num_predict": tokens}));
        }
        Format::Gemini => {}
    }
    body.extend(tools.body);
    body.extend(format.encode_messages(request.messages));
    serde_json::to_vec(&body).map_err(|error| encode(error.to_string()))
}

/// The formats whose providers take closed copies of the schemas.
pub(super) const fn has_strict(format: Format) -> bool {
    matches!(format, Format::OpenAiChat | Format::OpenAiResponses)
}
