//! Resumes a stream that ends before the answer, because the server ended it (SEP-1699) or the connection broke. The
//! client requests the rest with the id of the last event, and never repeats the original request.

use std::time::Duration;

use reqwest::Response;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue};

use crate::mcp::source::config::STATELESS;
use crate::mcp::source::error::RequestError;
use crate::mcp::source::http::Http;
use crate::wire::EventStream;

/// The maximum number of attempts in a row that bring no new event. The time limit of the request covers all attempts.
const ATTEMPTS: u32 = 6;

/// How long to wait before the first attempt, unless the server sets another time. Each further attempt in a row waits
/// twice as long as the one before.
const RETRY: Duration = Duration::from_secs(1);

/// The shortest wait, even if the server sets a shorter one.
const SHORTEST: Duration = Duration::from_millis(50);

/// The place at which a stream ended, and the wait that its server wants before a resumption.
#[derive(Default)]
pub(super) struct StreamEnd {
    /// The id of the last complete event.
    last: Option<HeaderValue>,
    retry: Option<Duration>,
}

impl StreamEnd {
    pub(super) fn is_now(&mut self, events: &EventStream) {
        if let Some(id) = events.last_id() {
            self.last = HeaderValue::from_bytes(id).ok();
        }
        self.retry = events.retry().map(Duration::from_millis).or(self.retry);
    }

    /// Returns how long to wait before an attempt.
    fn wait(&self, attempt: u32) -> Duration {
        let wait = self.retry.unwrap_or(RETRY).max(SHORTEST);
        wait.saturating_mul(1 << attempt.min(ATTEMPTS))
    }
}

impl Http {
    /// Reads the answer to a request from its stream, and from the streams that continue it.
    pub(super) async fn whole(&self, id: u64, mut response: Response) -> Result<Box<str>, RequestError> {
        let (mut place, mut attempt) = (StreamEnd::default(), 0);
        loop {
            let before = place.last.clone();
            if let Some(answer) = self.stream(id, &mut response, &mut place).await? {
                return Ok(answer);
            }
            attempt = if place.last == before { attempt } else { 0 };
            response = loop {
                if attempt >= ATTEMPTS {
                    return Err(RequestError::Closed);
                }
                let wait = place.wait(attempt);
                attempt += 1;
                if let Some(rest) = self.rest(&place, wait).await? {
                    break rest;
                }
            };
        }
    }

    /// Requests the rest of a stream, after a wait. `None` if the server cannot be reached now.
    async fn rest(&self, place: &StreamEnd, wait: Duration) -> Result<Option<Response>, RequestError> {
        // In the stateless revision a request ends with its stream, and without an event id the rest cannot be
        // requested.
        let is_stateless = self.session().version.as_ref().is_some_and(|version| version == STATELESS);
        let last = place.last.clone().filter(|_| !is_stateless).ok_or(RequestError::Closed)?;
        tokio::time::sleep(wait).await;
        let request = self.described(self.0.client.get(self.0.url.clone()));
        let request = request.header(ACCEPT, "text/event-stream").header("last-event-id", last);
        let Ok(response) = request.send().await else { return Ok(None) };
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        match response.status().as_u16() {
            200 if kind.starts_with("text/event-stream") => Ok(Some(response)),
            429 | 500..=599 => Ok(None),
            404 if self.session().id.is_some() => {
                self.session().is_gone = true;
                Err(RequestError::Closed)
            }
            _ => Err(RequestError::Closed),
        }
    }
}
