//! [`ToolEffect`]: how far a tool or a capability reaches.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How far a tool or a capability reaches. The order is the order of reach.
///
/// ```
/// use tool_runtime::ToolEffect;
///
/// assert!(ToolEffect::ReadOnly < ToolEffect::ExternalSideEffect);
/// assert_eq!("state_change".parse(), Ok(ToolEffect::StateChange));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolEffect {
    /// Pure computation, or reading data.
    ReadOnly,
    /// Changes the application's own state: rows, files.
    StateChange,
    /// Reaches outside the application: mail, payments, other services.
    ExternalSideEffect,
}

impl ToolEffect {
    /// Returns the name used in policies, records and attributes.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read_only",
            Self::StateChange => "state_change",
            Self::ExternalSideEffect => "external_side_effect",
        }
    }
}

impl fmt::Display for ToolEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The text is not the name of an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct EffectError;

impl fmt::Display for EffectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown effect; write `read_only`, `state_change` or `external_side_effect`")
    }
}

impl std::error::Error for EffectError {}

impl FromStr for ToolEffect {
    type Err = EffectError;

    fn from_str(text: &str) -> Result<Self, EffectError> {
        match text {
            "read_only" => Ok(Self::ReadOnly),
            "state_change" => Ok(Self::StateChange),
            "external_side_effect" => Ok(Self::ExternalSideEffect),
            _ => Err(EffectError),
        }
    }
}
