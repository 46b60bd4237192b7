//! Where a hydrated call came from and what was done to it: for the caller that asks, never for records.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use crate::call::{CallId, Origin, Outcome, RepairUse, ToolCall, Violation};
use crate::hydrate::Hydrated;
use crate::json;
use crate::schema::validator::Validator;

/// What hydration made of one call. It has no `Serialize`: raw text must not reach records, logs or decisions.
#[non_exhaustive]
pub struct HydrationResult {
    /// The hydrated tool, or why there is none.
    pub hydrated: Result<Hydrated, HydrationError>,
    /// Where it came from.
    pub provenance: Provenance,
}

impl HydrationResult {
    pub(crate) fn refused(call: &ToolCall, stage: FailedStage, outcome: Outcome) -> Self {
        let provenance = Provenance::of(call);
        Self {
            hydrated: Err(HydrationError { stage, outcome, message: None, violations: Vec::new(), masked: None }),
            provenance,
        }
    }
}

impl fmt::Debug for HydrationResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HydrationResult").field("hydrated", &self.hydrated).finish_non_exhaustive()
    }
}

/// The stage at which hydration stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailedStage {
    /// No tool of this name, or not in this run.
    Resolve,
    /// Not one JSON object within the limits.
    Parse,
    /// Schema and semantic rules.
    Validate,
    /// The typed value.
    Instantiate,
}

/// Why a call could not be hydrated. Safe for a model: what it shows holds no values.
#[derive(Clone)]
#[non_exhaustive]
pub struct HydrationError {
    /// The stage that failed.
    pub stage: FailedStage,
    /// The outcome that the call will have.
    pub outcome: Outcome,
    /// A sentence, where the outcome's own is not enough.
    pub message: Option<String>,
    /// Every violation, located.
    pub violations: Vec<Violation>,
    /// The arguments for the record, when they could be read and the tool has no sensitive ones.
    pub(crate) masked: Option<Arc<RawValue>>,
}

impl HydrationError {
    pub(super) fn parse(outcome: Outcome, message: String) -> Self {
        Self { stage: FailedStage::Parse, outcome, message: Some(message), violations: Vec::new(), masked: None }
    }

    pub(super) fn unparsed(error: &json::ParseError) -> Self {
        let mut unparsed = Self::parse(error.outcome(), format!("The arguments could not be read: {error}."));
        // JSON of another type is read well enough to say which rule of the schema it breaks.
        if error.kind == json::ParseErrorKind::NotAnObject {
            unparsed.violations.push(Violation::new("", "type", "one JSON object"));
        }
        unparsed
    }

    pub(super) fn invalid(violations: Vec<Violation>) -> Self {
        Self {
            stage: FailedStage::Validate,
            outcome: Outcome::ValidationError,
            message: None,
            violations,
            masked: None,
        }
    }

    /// A type that is narrower than any schema can say refuses like a schema; anything else is the tool's defect.
    pub(super) fn unbuilt(error: &json::DeError) -> Self {
        if error.is_narrower() {
            return Self::invalid(vec![error.violation()]);
        }
        Self::instantiate("The tool could not read arguments that its schema allows. Do not try again.")
    }

    pub(super) fn instantiate(message: &str) -> Self {
        Self {
            stage: FailedStage::Instantiate,
            outcome: Outcome::InstantiateFailed,
            message: Some(message.to_owned()),
            violations: Vec::new(),
            masked: None,
        }
    }
}

impl fmt::Display for HydrationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message.as_deref().unwrap_or(self.outcome.safe_message()))
    }
}

impl fmt::Debug for HydrationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HydrationError")
            .field("stage", &self.stage)
            .field("outcome", &self.outcome)
            .field("message", &self.message)
            .field("violations", &self.violations)
            .finish_non_exhaustive()
    }
}

impl std::error::Error for HydrationError {}

/// Where a call came from and what was done to its arguments.
#[non_exhaustive]
pub struct Provenance {
    /// The id of the call.
    pub tool_call_id: CallId,
    /// Provider, its id of the call, the response and the frame.
    pub origin: Origin,
    /// The arguments exactly as they arrived.
    pub raw_arguments: String,
    /// The arguments as they were validated: canonical text, every digit kept.
    pub validated: Option<Arc<str>>,
    /// Who validated them.
    pub validator: Option<ValidatorUse>,
    /// What repaired them.
    pub repair: Option<RepairUse>,
}

impl Provenance {
    pub(super) fn of(call: &ToolCall) -> Self {
        Self {
            tool_call_id: call.id.clone(),
            origin: call.origin.clone(),
            raw_arguments: call.arguments.as_str().to_owned(),
            validated: None,
            validator: None,
            repair: None,
        }
    }

    /// The arguments as they were parsed, when they are JSON as they arrived.
    #[must_use]
    pub fn parsed(&self) -> Option<serde_json::Value> {
        serde_json::from_str(&self.raw_arguments).ok()
    }
}

impl fmt::Debug for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provenance").field("tool_call_id", &self.tool_call_id).finish_non_exhaustive()
    }
}

/// The validator that checked a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValidatorUse {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// How long it took, compiling the schema included when this was the tool's first call.
    pub took: Duration,
}

impl ValidatorUse {
    pub(super) fn new(validator: &dyn Validator, took: Duration) -> Self {
        Self { name: validator.name().to_owned(), version: validator.version().to_owned(), took }
    }

    /// Name and version, for records.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{} {}", self.name, self.version)
    }
}
