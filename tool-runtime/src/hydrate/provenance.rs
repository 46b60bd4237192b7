//! The origin of a hydrated call and the changes to it: for the caller that requests them, never for records.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::call::{ArgumentDigest, JsonText, Outcome, RecordedRepair, SafeError, ToolCall, Violation};
use crate::catalog::{CompiledCatalog, ValidatorMode};
use crate::hydrate::frozen::Hydrated;
use crate::json::{self, Limits};
use crate::tool::{Hash, ToolName};

/// The result of hydrating one call: the call with its arguments parsed, validated and built into the tool's type, or
/// the reason why not. [`Run::hydrate`](crate::Run::hydrate) returns it.
///
/// It does not implement `Serialize`, because raw text must not reach records, logs or decisions.
///
/// ```
/// use tool_runtime::{ToolCall, ToolCatalog, ToolError, testing, tool};
///
/// /// Doubles a number.
/// #[tool(name = "math__double", effect = read_only, redact = ["$"])]
/// fn double(
///     /// The number.
///     number: i64,
/// ) -> Result<i64, ToolError> {
///     Ok(2 * number)
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let harness = testing::harness(ToolCatalog::builder().tool::<double>().build()?);
/// let run = harness.run();
/// let call = |id: &str, arguments: &str| ToolCall::text(id, "math__double", arguments);
/// for result in run.hydrate([call("call_1", r#"{"number":21}"#), call("call_2", r#"{"number":"x"}"#)]) {
///     let stage = result.stage();
///     match result.hydrated {
///         // Only the run executes it.
///         Ok(hydrated) => assert_eq!(run.exec_hydrated(hydrated).await.to_model(), "42"),
///         Err(error) => assert_eq!((stage, error.errors[0].pointer.as_str()), (Some("validate"), "/number")),
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[non_exhaustive]
pub struct HydrationResult {
    /// The hydrated tool, or why there is none, as a model may read it: with every violation, located, and without
    /// values.
    pub hydrated: Result<Hydrated, SafeError>,
    pub(super) stage: Option<FailedStage>,
    /// The call as it arrived: its id, the text of its arguments, and where it comes from.
    pub call: ToolCall,
    /// The tool that was called; `None` if no tool of the run has the name.
    pub tool: Option<ToolName>,
    /// The definition of the tool.
    pub definition_hash: Option<Hash>,
    /// The provider's own JSON for the call: the item of Responses, or the members of another format's block other than
    /// id, name and arguments, such as a signature or the caller. `None` if there is nothing more, or if no decoder of
    /// this process produced the call. For observation only: no stage reads it, and no record, document or log contains
    /// it. [`Decoder::with_max_provider_state_bytes`](crate::wire::Decoder::with_max_provider_state_bytes) bounds it.
    pub raw: Option<Arc<str>>,
    /// The text that was parsed instead, if the arguments were repaired.
    pub(super) repaired: Option<Arc<str>>,
    /// The arguments as they were validated: canonical text, every digit kept.
    pub validated: Option<Arc<str>>,
    pub(super) validator: Option<ValidatorUse>,
    /// The repair that changed them. Its digests are plain hashes, without a key.
    pub(super) repair: Option<RecordedRepair>,
}

impl HydrationResult {
    /// A call that is refused before its arguments are read. `message` conceals the exact reason.
    pub(crate) fn refused(call: &ToolCall, stage: FailedStage, outcome: Outcome, message: Option<String>) -> Self {
        let error = HydrationError { stage, outcome, message, violations: Vec::new(), masked: None, lists: false };
        Self::of(call.clone(), Err(error))
    }

    pub(super) fn of(call: ToolCall, hydrated: Result<Hydrated, HydrationError>) -> Self {
        let stage = hydrated.as_ref().err().map(|error| error.stage);
        Self {
            hydrated: hydrated.map_err(SafeError::from),
            stage,
            tool: None,
            definition_hash: None,
            repaired: None,
            raw: call.raw().cloned(),
            call,
            validated: None,
            validator: None,
            repair: None,
        }
    }

    /// Returns the stage that failed: `resolve`, `parse`, `validate` or `instantiate`; `None` if the call was hydrated.
    #[must_use]
    pub fn stage(&self) -> Option<&'static str> {
        self.stage.map(|stage| match stage {
            FailedStage::Resolve => "resolve",
            FailedStage::Parse => "parse",
            FailedStage::Validate => "validate",
            FailedStage::Instantiate => "instantiate",
        })
    }

    /// Returns the arguments as they were parsed, after a repair if there was one; `None` if they could not be parsed.
    #[must_use]
    pub fn parsed(&self) -> Option<serde_json::Value> {
        let text = self.repaired.as_deref().unwrap_or(self.call.arguments());
        json::parse(text, &Limits::UNBOUNDED).ok().map(|tree| tree.to_value())
    }

    /// Returns the name and the version of the validator that checked the arguments, as records have them; `None` if
    /// they were not validated.
    #[must_use]
    pub fn validator(&self) -> Option<String> {
        self.validator.as_ref().map(|used| format!("{} {}", used.name, used.version))
    }

    /// Returns the duration of the validation, including the compilation of the schema if this was the tool's first
    /// call in lazy mode; `None` if the arguments were not validated.
    #[must_use]
    pub fn validation_time(&self) -> Option<Duration> {
        self.validator.as_ref().map(|used| used.took)
    }

    /// Whether this call compiled the schema, or an earlier one, because [`warm`](crate::ToolRunner::warm) had not done
    /// so ahead of any call.
    #[must_use]
    pub fn is_compiled_lazily(&self) -> bool {
        self.validator.as_ref().is_some_and(|used| used.is_lazy)
    }

    /// Returns the repairer that rewrote the arguments; `None` if they were not repaired.
    #[must_use]
    pub fn repairer(&self) -> Option<&str> {
        self.repair.as_ref().map(|repair| &*repair.repairer)
    }

    /// Returns the plain hashes, without a key, of the text before and after a repair; `None` if the arguments were not
    /// repaired.
    #[must_use]
    pub fn repair_digests(&self) -> Option<[ArgumentDigest; 2]> {
        self.repair.as_ref().map(|repair| [repair.before, repair.after])
    }
}

impl fmt::Debug for HydrationResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HydrationResult")
            .field("tool_call_id", &self.call.id)
            .field("hydrated", &self.hydrated)
            .finish_non_exhaustive()
    }
}

/// The stage at which hydration stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailedStage {
    /// No tool of this name, or not in this run.
    Resolve,
    /// Not one JSON object within the limits.
    Parse,
    /// Schema and semantic rules.
    Validate,
    /// The typed value.
    Instantiate,
}

/// Why a call could not be hydrated. Safe for a model: its text holds no values.
#[derive(Debug, Clone)]
pub(crate) struct HydrationError {
    pub(crate) stage: FailedStage,
    /// The outcome that the call will have.
    pub(crate) outcome: Outcome,
    /// A sentence, where the outcome's own is not enough.
    pub(crate) message: Option<String>,
    /// Every violation, located.
    pub(crate) violations: Vec<Violation>,
    /// The arguments for the record, when they could be read and the tool has no sensitive ones.
    pub(crate) masked: Option<JsonText>,
    /// Whether a violation names a tool that lists the missing ids.
    pub(crate) lists: bool,
}

impl HydrationError {
    /// Returns the sentence for a model.
    pub(crate) fn text(&self) -> &str {
        self.message.as_deref().unwrap_or(self.outcome.safe_message())
    }

    #[cold]
    pub(super) fn parse(outcome: Outcome, message: String) -> Self {
        Self {
            stage: FailedStage::Parse,
            outcome,
            message: Some(message),
            violations: Vec::new(),
            masked: None,
            lists: false,
        }
    }

    #[cold]
    pub(super) fn unparsed(error: &json::ParseError) -> Self {
        let mut unparsed = Self::parse(error.outcome(), format!("The arguments could not be read: {error}."));
        // JSON of another type is read well enough to say which rule of the schema it breaks.
        if error.kind == json::ParseErrorKind::NotAnObject {
            unparsed.violations.push(Violation::new("", "type", "one JSON object"));
        }
        unparsed
    }

    #[cold]
    pub(super) fn invalid(violations: Vec<Violation>) -> Self {
        Self {
            stage: FailedStage::Validate,
            outcome: Outcome::ValidationError,
            message: None,
            violations,
            masked: None,
            lists: false,
        }
    }

    /// A type that is narrower than any schema refuses like a schema, and so does the type of a tool without one; any
    /// other refusal is a defect of the tool.
    #[cold]
    pub(super) fn unbuilt(error: &json::DeError, has_schema: bool) -> Self {
        if error.is_narrower() || !has_schema {
            return Self::invalid(vec![error.violation()]);
        }
        Self::instantiate(Outcome::InstantiateFailed.safe_message())
    }

    #[cold]
    pub(super) fn instantiate(message: &str) -> Self {
        Self {
            stage: FailedStage::Instantiate,
            outcome: Outcome::InstantiateFailed,
            message: Some(message.to_owned()),
            violations: Vec::new(),
            masked: None,
            lists: false,
        }
    }
}

impl From<HydrationError> for SafeError {
    fn from(error: HydrationError) -> Self {
        let safe = Self::new(error.outcome, error.text());
        Self { errors: error.violations, ..safe }
    }
}

/// The validator that checked a call.
#[derive(Debug, Clone)]
pub(super) struct ValidatorUse {
    name: Arc<str>,
    version: Arc<str>,
    is_lazy: bool,
    took: Duration,
}

impl ValidatorUse {
    pub(super) fn new(compiled: &CompiledCatalog, mode: ValidatorMode, took: Duration) -> Self {
        Self {
            name: Arc::clone(&compiled.name),
            version: Arc::clone(&compiled.version),
            is_lazy: mode == ValidatorMode::Lazy,
            took,
        }
    }
}
