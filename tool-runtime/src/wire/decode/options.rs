//! [`DecodeOptions`]: the limits of a decoder, and the properties of the request that it needs.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::wire::ToolChoice;

/// The limits of a decoder, and the properties of the request that it needs.
#[derive(Debug, Clone)]
pub(crate) struct DecodeOptions {
    pub(crate) max_bytes: usize,
    pub(crate) max_frame_bytes: usize,
    pub(crate) max_calls: usize,
    pub(crate) max_provider_state_bytes: usize,
    /// The model that provider state records; `None` takes the model that the response names.
    pub(crate) model: Option<String>,
    pub(crate) choice: ToolChoice,
    /// The names of the tools that the request offered; `None` if they are unknown.
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
