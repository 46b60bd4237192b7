//! One request and its answer, with retries.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Response, StatusCode};
use tokio::time::{Instant, timeout_at};

use crate::agent::http::body::Body;
use crate::agent::http::retry::{self, Again};
use crate::agent::http::{Inner, endpoint};
use crate::agent::{DisplayFn, ModelError, ModelErrorKind};
use crate::error::chain;
use crate::wire::{DecodeOptions, Decoded, Decoder, WireErrorKind};

/// The maximum length of an error's body that is read, and the time limit for reading it.
const ERROR_BYTES: usize = 16 << 10;
const ERROR_TIMEOUT: Duration = Duration::from_secs(5);

/// The error of an attempt without an answer, and whether to try again.
struct Failed {
    error: ModelError,
    again: Again,
}

impl Failed {
    fn for_good(kind: ModelErrorKind, detail: impl Into<String>) -> Self {
        Self { error: ModelError::new(kind, detail), again: Again::Never }
    }

    fn for_now(kind: ModelErrorKind, detail: impl Into<String>) -> Self {
        Self { error: ModelError::new(kind, detail), again: Again::Later }
    }
}

/// The deadline and the retries of one turn. A request in another form, after a refusal of the first one, shares them.
pub(super) struct Attempts {
    deadline: Instant,
    retries: u32,
    silences: u32,
}

impl Attempts {
    pub(super) fn new(timeout: Duration) -> Self {
        Self { deadline: after(timeout), retries: 0, silences: 0 }
    }
}

/// Sends the request and reads the answer. A request is retried only if it got no answer, or an answer with a status
/// that another attempt can change. An answer that began is never requested again, because a part of it was shown.
pub(super) async fn exchange(
    inner: &Inner,
    body: Vec<u8>,
    options: &DecodeOptions,
    attempts: &mut Attempts,
    show: &mut DisplayFn<'_>,
) -> Result<Decoded, ModelError> {
    let headers = headers(inner)?;
    let Attempts { deadline, retries, silences } = attempts;
    loop {
        let request = inner.client.post(inner.url.clone()).headers(headers.clone()).body(body.clone());
        let Failed { error, again } = match answer(inner, request, options, *deadline, show).await {
            Ok(decoded) => return Ok(decoded),
            Err(failed) => failed,
        };
        *silences += u32::from(error.kind() == ModelErrorKind::Timeout);
        let wait = inner.settings.retries.wait(*retries, again);
        let Some(wait) = wait.filter(|wait| *silences < 2 && after(*wait) < *deadline) else {
            return Err(error);
        };
        tracing::debug!(code = error.code(), attempt = *retries, "retrying a request to the model");
        tokio::time::sleep(wait).await;
        *retries += 1;
    }
}

/// Returns the instant after this duration; a year from now if that overflows.
fn after(wait: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(wait).unwrap_or_else(|| now + Duration::from_secs(365 * 24 * 60 * 60))
}

fn headers(inner: &Inner) -> Result<HeaderMap, ModelError> {
    let invalid = |name: &str| ModelError::new(ModelErrorKind::Encode, format!("the header `{name}` cannot be sent"));
    let mut headers = HeaderMap::new();
    for (name, value) in endpoint::headers(&inner.settings) {
        let mut value = HeaderValue::try_from(value).map_err(|_| invalid(&name))?;
        value.set_sensitive(true);
        headers.insert(HeaderName::try_from(&name).map_err(|_| invalid(&name))?, value);
    }
    Ok(headers)
}

/// Makes one attempt. The head and the first byte of the body have to arrive within the time limit for the first byte.
async fn answer(
    inner: &Inner,
    request: reqwest::RequestBuilder,
    options: &DecodeOptions,
    deadline: Instant,
    show: &mut DisplayFn<'_>,
) -> Result<Decoded, Failed> {
    let first_by = deadline.min(after(inner.settings.first_byte()));
    let response = match timeout_at(first_by, request.send()).await {
        Err(_) => return Err(silent()),
        Ok(Err(error)) => {
            let kind = if error.is_timeout() { ModelErrorKind::Timeout } else { ModelErrorKind::Connect };
            return Err(Failed::for_now(kind, chain(&error.without_url())));
        }
        Ok(Ok(response)) => response,
    };
    if !response.status().is_success() {
        let again = retry::asked(response.status().as_u16(), response.headers(), Timestamp::now());
        let mut error = refused(response, deadline).await;
        if let Again::After(wait) = again {
            error = error.with_wait(wait);
        }
        return Err(Failed { error, again });
    }
    let protocol = |detail: &str| Failed::for_good(ModelErrorKind::Protocol, detail);
    let content = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if content.trim_start().to_ascii_lowercase().starts_with("text/html") {
        return Err(protocol("the endpoint answered with a page of HTML"));
    }
    if response.status() == StatusCode::NO_CONTENT {
        return Err(protocol("the endpoint answered without content"));
    }
    let decoder = inner.settings.format.decoder().with_options(options.clone());
    let mut body = Body::new(response, options.max_bytes).map_err(|detail| protocol(&detail))?;
    match timeout_at(first_by, body.chunk()).await {
        Err(_) => Err(silent()),
        Ok(Err(detail)) => Err(protocol(&detail)),
        Ok(Ok(None)) => Err(protocol("the endpoint answered with an empty body")),
        Ok(Ok(Some(chunk))) => Ok(read(inner, decoder, body, chunk, deadline, show).await),
    }
}

fn silent() -> Failed {
    Failed::for_now(ModelErrorKind::Timeout, "the endpoint was silent for longer than allowed")
}

/// Decodes an answer as it arrives. If the answer breaks off, the part that arrived is kept.
async fn read(
    inner: &Inner,
    mut decoder: Decoder,
    mut body: Body,
    mut chunk: Vec<u8>,
    deadline: Instant,
    show: &mut DisplayFn<'_>,
) -> Decoded {
    let broken = loop {
        decoder.push_with(&chunk, &mut *show);
        if body.is_too_long() || decoder.is_closed() {
            break None;
        }
        let idle = after(inner.settings.idle_timeout);
        chunk = match timeout_at(idle.min(deadline), body.chunk()).await {
            Ok(Ok(Some(chunk))) => chunk,
            Ok(Ok(None)) => break None,
            Ok(Err(detail)) => break Some(detail),
            Err(_) if idle < deadline => break Some("the endpoint fell silent within its answer".to_owned()),
            Err(_) => break Some("the turn took longer than allowed".to_owned()),
        };
    };
    let mut decoded = decoder.finish();
    if let (Some(detail), Some(error)) = (broken, &mut decoded.error)
        && error.kind == WireErrorKind::TruncatedStream
    {
        error.message.get_or_insert(detail);
    }
    decoded
}

async fn refused(response: Response, deadline: Instant) -> ModelError {
    let status = response.status();
    if status.is_redirection() {
        return ModelError::redirected(format!("status {}", status.as_u16()));
    }
    let deadline = deadline.min(after(ERROR_TIMEOUT));
    let mut text = Vec::new();
    if let Ok(mut body) = Body::new(response, ERROR_BYTES) {
        while let Ok(Ok(Some(chunk))) = timeout_at(deadline, body.chunk()).await {
            text.extend(chunk.iter().take(ERROR_BYTES.saturating_sub(text.len())));
            if text.len() >= ERROR_BYTES {
                break;
            }
        }
    }
    ModelError::new(ModelErrorKind::Status(status.as_u16()), String::from_utf8_lossy(&text))
}
