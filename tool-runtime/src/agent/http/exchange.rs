//! One request and its answer, repeated where that helps.

use jiff::Timestamp;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Response, StatusCode};

use crate::agent::http::{Inner, endpoint, retry};
use crate::agent::{ModelError, ModelErrorKind, Show};
use crate::wire::{DecodeOptions, Decoded};

/// How much of an error's body operators get to read.
const ERROR_BYTES: usize = 16 << 10;

/// Sends the request and reads the answer. Only a request that got no answer, or one of a kind that another attempt
/// may change, is repeated; an answer that began is never asked for again.
pub(super) async fn exchange(inner: &Inner, body: Vec<u8>, show: &mut Show<'_>) -> Result<Decoded, ModelError> {
    let headers = headers(inner)?;
    let mut attempt = 0;
    loop {
        let request = inner.client.post(inner.url.clone()).headers(headers.clone()).body(body.clone());
        let (error, asked) = match request.send().await {
            Ok(response) if response.status().is_success() => return read(inner, response, show).await,
            Ok(response) => {
                let asked = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
                let asked = asked.and_then(|value| retry::after(value, Timestamp::now()));
                let status = response.status();
                let error = refused(response).await;
                if !retry::is_worth_it(status.as_u16()) {
                    return Err(error);
                }
                (error, asked)
            }
            Err(error) => (unsent(error), None),
        };
        let Some(wait) = inner.settings.retries.wait(attempt, asked) else { return Err(error) };
        tracing::debug!(code = error.code(), attempt, "a request to the model is repeated");
        tokio::time::sleep(wait).await;
        attempt += 1;
    }
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

fn unsent(error: reqwest::Error) -> ModelError {
    let kind = if error.is_timeout() { ModelErrorKind::Timeout } else { ModelErrorKind::Connect };
    ModelError::new(kind, chain(&error.without_url()))
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

async fn refused(mut response: Response) -> ModelError {
    let status = response.status();
    if status.is_redirection() {
        return ModelError::new(ModelErrorKind::Redirect, format!("status {}", status.as_u16()));
    }
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        let room = ERROR_BYTES.saturating_sub(body.len());
        body.extend(chunk.iter().take(room));
        if body.len() >= ERROR_BYTES {
            break;
        }
    }
    ModelError::new(ModelErrorKind::Status(status.as_u16()), String::from_utf8_lossy(&body))
}

/// The answer, decoded while it arrives. A connection that breaks ends the answer where it broke.
async fn read(inner: &Inner, mut response: Response, show: &mut Show<'_>) -> Result<Decoded, ModelError> {
    let protocol = |detail: &str| ModelError::new(ModelErrorKind::Protocol, detail);
    let content = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if content.trim_start().to_ascii_lowercase().starts_with("text/html") {
        return Err(protocol("the endpoint answered with a page of HTML"));
    }
    if response.status() == StatusCode::NO_CONTENT {
        return Err(protocol("the endpoint answered without content"));
    }
    let limit = inner.settings.max_response_bytes;
    let options = DecodeOptions::default().with_max_bytes(limit);
    let format = inner.settings.format;
    let mut decoder = format.decoder(options).ok_or_else(|| protocol("the format can only be written"))?;
    let mut taken = 0_usize;
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) => {
                taken = taken.saturating_add(chunk.len());
                decoder.push_with(&chunk, &mut *show);
                if taken > limit || decoder.is_closed() {
                    break;
                }
            }
            Ok(None) => break,
            Err(error) => {
                tracing::debug!(detail = chain(&error.without_url()), "the answer broke off");
                break;
            }
        }
    }
    if taken == 0 {
        return Err(protocol("the endpoint answered with an empty body"));
    }
    Ok(decoder.finish())
}
