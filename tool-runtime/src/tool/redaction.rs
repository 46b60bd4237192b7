//! [`Redaction`]: the allowlist of a tool, as data.

use serde::{Deserialize, Serialize};

/// The allowlist of a tool: what is not named is stripped from whatever leaves the runner.
///
/// Paths name leaves (scalars and arrays of scalars) with dots; arrays are passed through, `*` stands for the
/// values of a map and `$` for the whole output when that is a scalar or an array of scalars.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Redaction {
    /// Leaves that everyone may see: the model, the UI, telemetry, records.
    pub allow: Vec<String>,
    /// Leaves that only the model sees besides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub model: Vec<String>,
    /// For client tools: leaves of the prepared payload that go to the client.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prepare: Vec<String>,
}
