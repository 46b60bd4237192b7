//! [`DecodeOptions`]: the limits of a decoder, and the facts about the request that it needs, with the methods of
//! [`Decoder`] that set them.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::wire::ToolChoice;
use crate::wire::decode::Decoder;

/// The limits of a decoder, and the facts about the request that it needs.
#[derive(Debug, Clone)]
pub(crate) struct DecodeOptions {
    pub(crate) max_bytes: usize,
    pub(crate) max_frame_bytes: usize,
    pub(crate) max_calls: usize,
    pub(crate) max_provider_state_bytes: usize,
    /// The model that the request named, which the parts keep; `None` keeps the one that the response names.
    pub(crate) model: Option<String>,
    pub(crate) choice: ToolChoice,
    /// The names of the tools that the request offered; `None` if they are not known.
    pub(crate) offered: Option<Arc<BTreeSet<String>>>,
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

/// Settings, before the first bytes.
impl Decoder {
    /// Sets the most bytes of one response; 32 MiB by default.
    #[must_use]
    pub fn with_max_bytes(mut self, bytes: usize) -> Self {
        self.options.max_bytes = bytes;
        self
    }

    /// Sets the most bytes of one frame of a stream; 8 MiB by default.
    #[must_use]
    pub fn with_max_frame_bytes(mut self, bytes: usize) -> Self {
        self.options.max_frame_bytes = bytes;
        self
    }

    /// Sets the most calls of one response; 1,024 by default.
    #[must_use]
    pub fn with_max_calls(mut self, calls: usize) -> Self {
        self.options.max_calls = calls;
        self.turn.limit(&self.options);
        self
    }

    /// Sets the most bytes of provider state, such as encrypted reasoning; 8 MiB by default.
    #[must_use]
    pub fn with_max_provider_state_bytes(mut self, bytes: usize) -> Self {
        self.options.max_provider_state_bytes = bytes;
        self.turn.limit(&self.options);
        self
    }

    /// Sets the model that the request named, which provider state keeps; by default the one that the response names.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<String>) -> Self {
        self.options.model = Some(model.into());
        self
    }

    /// Sets the choice that the request sent; a call outside it is flagged.
    #[must_use]
    pub fn with_choice(mut self, choice: ToolChoice) -> Self {
        self.options.choice = choice;
        self
    }

    /// Sets the names of the tools that the request offered.
    ///
    /// ```
    /// use tool_runtime::wire::Format;
    ///
    /// let mut decoder = Format::Ollama.decoder().with_offered(["core__add"]);
    /// decoder.push(br#"{"message":{"tool_calls":[{"function":{"name":"core__ad","arguments":{}}}]},"done":true}"#);
    /// let decoded = decoder.finish();
    /// // The gate refuses the call, as it refuses every unknown name.
    /// assert!(!decoded.calls[0].offered);
    /// ```
    #[must_use]
    pub fn with_offered<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.options.offered = Some(Arc::new(names.into_iter().map(Into::into).collect()));
        self
    }

    /// Sets all at once.
    #[cfg(feature = "http")]
    pub(crate) fn with_options(mut self, options: DecodeOptions) -> Self {
        self.turn.limit(&options);
        self.options = options;
        self
    }
}
