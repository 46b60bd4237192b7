//! [`Redaction`]: the allowlist of a tool, as data.

use serde::{Deserialize, Serialize};

/// The allowlist of a tool. A leaf that it does not name never leaves the runner.
///
/// A path names a leaf, which is a scalar or an array of scalars. It consists of serialized names, joined by dots:
///
/// | path | names |
/// | --- | --- |
/// | `id` | the field `id` |
/// | `owner.name` | the field `name` of the object `owner` |
/// | `items.title` | the field `title` of each object in the array `items` |
/// | `stock.*` | each value of the map `stock`, whose keys are shown too |
/// | `by_day.*.count` | the field `count` of each value of the map `by_day` |
/// | `$` | the whole output, if it is a scalar or an array of scalars |
/// | `$media` | the images and files attached to the output, see [`WithMedia`](crate::WithMedia) |
///
/// ```
/// use tool_runtime::{ToolError, definition, tool};
///
/// /// Adds two numbers.
/// #[tool(name = "math__add", effect = read_only, redact = ["$"])]
/// fn add(
///     /// The first.
///     a: i64,
///     /// The second.
///     b: i64,
/// ) -> Result<i64, ToolError> {
///     Ok(a.saturating_add(b))
/// }
///
/// assert_eq!(definition!(add)?.redaction.allow, ["$"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Redaction {
    /// Leaves that everyone may see: the model, the UI, telemetry, records.
    pub allow: Vec<String>,
    /// Additional leaves that only the model sees.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub model: Vec<String>,
    /// For client tools: leaves of the prepared payload that go to the client.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prepare: Vec<String>,
}
