//! [`CallMessage`]: a call in a history.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::call::CallId;
use crate::json;
use crate::wire::history::ProviderState;

/// A call in a history.
///
/// [`Message`](crate::wire::Message) has an example.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CallMessage {
    /// The id of the call.
    pub id: CallId,
    /// The name as the model wrote it.
    pub name: String,
    arguments: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    provider_state: Option<ProviderState>,
}

impl CallMessage {
    /// Creates a call with its arguments as JSON text.
    ///
    /// Arguments that the runner cannot parse (not an object, half a surrogate pair, a repeated key, nested more than
    /// 64 levels deep) are left out: every format sends `{}` instead, because servers that parse them would refuse the
    /// whole conversation.
    #[must_use]
    pub fn new(id: impl Into<CallId>, name: impl Into<String>, arguments: &str) -> Self {
        let text = object_text(arguments);
        let limits = json::Limits { bytes: usize::MAX, ..json::Limits::default() };
        let is_readable = json::parse(text, &limits).is_ok();
        Self { id: id.into(), name: name.into(), arguments: is_readable.then(|| text.to_owned()), provider_state: None }
    }

    /// Returns the arguments as the model wrote them, without surrounding white space; `{}` if they could not be
    /// parsed. The unchanged text keeps a server's prompt cache valid.
    #[must_use]
    pub fn arguments(&self) -> &str {
        self.arguments.as_deref().unwrap_or("{}")
    }

    /// Removes the arguments, for example those of a call that was cut off.
    pub(crate) fn without_arguments(self) -> Self {
        Self { arguments: None, ..self }
    }

    /// Whether the runner can parse the arguments.
    pub(crate) const fn is_readable(&self) -> bool {
        self.arguments.is_some()
    }

    pub(crate) fn with_provider_state(mut self, provider_state: Option<ProviderState>) -> Self {
        self.provider_state = provider_state;
        self
    }

    /// Returns the data that the provider wants back with this call, such as a signature; `None` if there is none.
    #[must_use]
    pub const fn provider_state(&self) -> Option<&ProviderState> {
        self.provider_state.as_ref()
    }

    /// Whether both are the same call. Arguments are compared as JSON values, because clients reorder keys.
    pub(in crate::wire) fn means(&self, other: &Self) -> bool {
        let value = |call: &Self| serde_json::from_str::<serde_json::Value>(call.arguments()).ok();
        let same_text = self.arguments == other.arguments;
        self.id == other.id && self.name == other.name && (same_text || value(self) == value(other))
    }
}

/// The text without surrounding white space; `{}` if it is empty.
pub(crate) fn object_text(text: &str) -> &str {
    match text.trim_matches([' ', '\t', '\n', '\r']) {
        "" => "{}",
        text => text,
    }
}

// Arguments stay out of logs.
impl fmt::Debug for CallMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallMessage").field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}
