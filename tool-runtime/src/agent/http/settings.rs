//! [`Settings`]: the settings of a model behind an endpoint.

use std::time::Duration;

use crate::agent::http::retry::Retries;
use crate::capability::Secret;
use crate::wire::{AnswerMode, Format};

/// The form of a request and its time limits.
pub(super) struct Settings {
    pub(super) format: Format,
    pub(super) model: String,
    pub(super) key: Option<Secret<String>>,
    pub(super) headers: Vec<(String, Secret<String>)>,
    pub(super) stream: bool,
    pub(super) strict: bool,
    pub(super) answers: AnswerMode,
    pub(super) provider_limits: bool,
    pub(super) max_response_bytes: usize,
    pub(super) first_byte_timeout: Option<Duration>,
    pub(super) idle_timeout: Duration,
    pub(super) timeout: Duration,
    pub(super) retries: Retries,
}

impl Settings {
    pub(super) fn new(format: Format, model: String) -> Self {
        Self {
            format,
            model,
            key: None,
            headers: Vec::new(),
            stream: true,
            strict: false,
            answers: AnswerMode::Schema,
            provider_limits: true,
            max_response_bytes: 32 << 20,
            first_byte_timeout: None,
            idle_timeout: Duration::from_secs(60),
            timeout: Duration::from_secs(600),
            retries: Retries::default(),
        }
    }

    pub(super) fn first_byte(&self) -> Duration {
        let default = if self.stream { Duration::from_secs(60) } else { self.timeout };
        self.first_byte_timeout.unwrap_or(default).min(self.timeout)
    }
}
