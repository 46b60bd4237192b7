//! [`ToolEffect`]: how far the effects of a tool or a capability reach.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::ParseError;

/// How far the effects of a tool or a capability reach, in ascending order.
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
    /// Every effect, in the order of reach.
    pub const ALL: [Self; 3] = [Self::ReadOnly, Self::StateChange, Self::ExternalSideEffect];

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

impl FromStr for ToolEffect {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut effects = Self::ALL.iter().copied();
        effects.find(|effect| effect.as_str() == text).ok_or_else(|| {
            ParseError::none_of("unknown_effect", "effect", Self::ALL.iter().map(|effect| effect.as_str()))
        })
    }
}
