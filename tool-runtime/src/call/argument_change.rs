//! [`ArgumentChange`]: a change to the arguments of a call.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::call::JsonText;

/// A change at one place in the arguments of a call. Sensitive values are masked before and after.
///
/// ```
/// use tool_runtime::call::Decider;
/// use tool_runtime::runner::ApprovalDecision;
/// use tool_runtime::{ToolCatalog, ToolEffect, ToolError, ToolPolicy, testing, tool};
///
/// /// Sets the credit limit.
/// #[tool(name = "accounts__limit", effect = state_change, redact = ["$"])]
/// fn limit(
///     /// The limit.
///     limit: u32,
/// ) -> Result<u32, ToolError> {
///     Ok(limit)
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let policy = ToolPolicy::allow(["accounts__limit"]).with_approval_for_effects([ToolEffect::StateChange]);
/// let harness = testing::harness(ToolCatalog::builder().tool::<limit>().build()?).policy(policy);
/// let waits = harness.call("accounts__limit", serde_json::json!({ "limit": 900 })).await;
/// let edited = ApprovalDecision::ApproveEdited(r#"{"limit":500}"#.to_owned());
/// let ended = harness.decide(&waits, edited, &Decider::new("grace")).await;
///
/// let change = &ended.edits()[0];
/// assert_eq!((change.kind(), change.pointer.as_str()), ("edited", "/limit"));
/// assert_eq!(change.before.as_ref().map(|value| value.get()), Some("900"));
/// assert_eq!(change.after.as_ref().map(|value| value.get()), Some("500"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ArgumentChange {
    pub(crate) kind: ArgumentChangeKind,
    /// The place, as a JSON Pointer. Empty for a repair, which changes the text as a whole.
    pub pointer: String,
    /// The value before; `None` if it was absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<JsonText>,
    /// The value after; `None` if it was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<JsonText>,
}

/// The reason why an argument differs from the model's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ArgumentChangeKind {
    /// The text could not be read, and a repairer rewrote it. The change shows the piece of the text that differs; both
    /// sides are [`None`] for a tool with sensitive arguments.
    Repaired,
    /// White space around an id was removed.
    Trimmed,
    /// The model left out the argument, so it has its default.
    Defaulted,
    /// A person edited the argument.
    Edited,
}

impl ArgumentChangeKind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Repaired => "repaired",
            Self::Trimmed => "trimmed",
            Self::Defaulted => "defaulted",
            Self::Edited => "edited",
        }
    }
}

impl ArgumentChange {
    pub(crate) const fn new(
        kind: ArgumentChangeKind,
        pointer: String,
        before: Option<JsonText>,
        after: Option<JsonText>,
    ) -> Self {
        Self { kind, pointer, before, after }
    }

    /// Returns the reason as the word in documents: `repaired`, `trimmed`, `defaulted` or `edited`. A repair shows the
    /// piece of the text that differs; `before` and `after` are [`None`] for a tool with sensitive arguments.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        self.kind.as_str()
    }

    /// Returns the change without values, for a record.
    pub(crate) fn place(&self) -> Self {
        Self::new(self.kind, self.pointer.clone(), None, None)
    }
}

/// One line for a person: `defaulted /pages: (left out) -> 1`, or `trimmed /id` for a change without values.
impl fmt::Display for ArgumentChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<JsonText>| value.as_ref().map_or("(left out)".to_owned(), ToString::to_string);
        match (self.kind, &self.before, &self.after) {
            (ArgumentChangeKind::Repaired, None, None) => f.write_str("repaired (the text is not shown)"),
            (ArgumentChangeKind::Repaired, before, after) => {
                write!(f, "repaired: {} -> {}", shown(before), shown(after))
            }
            (kind, None, None) => write!(f, "{} {}", kind.as_str(), self.pointer),
            (kind, before, after) => {
                write!(f, "{} {}: {} -> {}", kind.as_str(), self.pointer, shown(before), shown(after))
            }
        }
    }
}

// Values of arguments stay out of logs.
impl fmt::Debug for ArgumentChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArgumentChange")
            .field("kind", &self.kind)
            .field("pointer", &self.pointer)
            .finish_non_exhaustive()
    }
}
