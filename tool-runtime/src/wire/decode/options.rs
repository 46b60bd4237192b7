//! [`DecodeOptions`]: the limits of a decoder, and the facts about the request that it needs.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::wire::ToolChoice;

/// The limits of a decoder, and the facts about the request that it needs.
///
/// ```
/// use tool_runtime::wire::{DecodeOptions, Format};
///
/// let options = DecodeOptions::default().with_max_bytes(1 << 20).with_offered(["core__add"]);
/// let mut decoder = Format::Ollama.decoder(options);
/// decoder.push(br#"{"message":{"tool_calls":[{"function":{"name":"core__ad","arguments":{}}}]},"done":true}"#);
/// let decoded = decoder.finish();
/// // The gate refuses the call, as it refuses every unknown name.
/// assert!(!decoded.calls[0].offered);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DecodeOptions {
    /// The most bytes of one response; 32 MiB by default.
    pub max_bytes: usize,
    /// The most bytes of one frame of a stream; 8 MiB by default.
    pub max_frame_bytes: usize,
    /// The most calls of one response; 1,024 by default.
    pub max_calls: usize,
    /// The most bytes of provider state, such as encrypted reasoning; 8 MiB by default.
    pub max_provider_state_bytes: usize,
    /// The model that the request named, which the parts keep; `None` keeps the one that the response names.
    pub model: Option<String>,
    /// The choice that the request sent; a call outside it is flagged.
    pub choice: ToolChoice,
    /// The names of the tools that the request offered; `None` if they are not known.
    pub offered: Option<Arc<BTreeSet<String>>>,
}

impl Default for DecodeOptions {
    fn default() -> Self {
        Self {
            max_bytes: 32 << 20,
            max_frame_bytes: 8 << 20,
            max_calls: 1024,
            max_provider_state_bytes: 8 << 20,
            model: None,
            choice: ToolChoice::Auto,
            offered: None,
        }
    }
}

impl DecodeOptions {
    /// Sets the most bytes of one response; 32 MiB by default.
    #[must_use]
    pub const fn with_max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets the most bytes of one frame; 8 MiB by default.
    #[must_use]
    pub const fn with_max_frame_bytes(mut self, bytes: usize) -> Self {
        self.max_frame_bytes = bytes;
        self
    }

    /// Sets the most calls of one response; 1,024 by default.
    #[must_use]
    pub const fn with_max_calls(mut self, calls: usize) -> Self {
        self.max_calls = calls;
        self
    }

    /// Sets the most bytes of provider state; 8 MiB by default.
    #[must_use]
    pub const fn with_max_provider_state_bytes(mut self, bytes: usize) -> Self {
        self.max_provider_state_bytes = bytes;
        self
    }

    /// Sets the model that the request named; provider state keeps it.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sets the choice that the request sent; a call outside it is flagged.
    #[must_use]
    pub fn with_choice(mut self, choice: ToolChoice) -> Self {
        self.choice = choice;
        self
    }

    /// Sets the names of the tools that the request offered.
    #[must_use]
    pub fn with_offered<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.offered = Some(Arc::new(names.into_iter().map(Into::into).collect()));
        self
    }
}
