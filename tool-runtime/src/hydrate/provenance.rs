//! The origin of a hydrated call and its changes. They are for the caller that requests them, never for records.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::call::{ArgumentDigest, JsonText, Outcome, RecordedRepair, SafeError, ToolCall, Violation};
use crate::catalog::{CompiledCatalog, ValidatorMode};
use crate::hydrate::frozen::Hydrated;
use crate::json::{self, Limits};
use crate::tool::{Hash, ToolName};

/// The result of hydrating one call: the call with its typed arguments, or the error.
/// [`Run::hydrate`](crate::Run::hydrate) returns it.
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
    /// The hydrated call; or an error that a model may read, with the place of every violation and without values.
    pub hydrated: Result<Hydrated, SafeError>,
    pub(super) stage: Option<FailedStage>,
    /// The call as it arrived: its id, its argument text and its origin.
    pub call: ToolCall,
    /// The tool that was called; `None` if no tool of the run has the name.
    pub tool: Option<ToolName>,
    /// The hash of the tool's definition; `None` if no tool of the run has the name.
    pub definition_hash: Option<Hash>,
    /// The provider's JSON for the call: the item of Responses, or in other formats the members of the block other than
    /// id, name and arguments, such as a signature or the caller. `None` if there are no more members, or if no decoder
    /// of this process read the call. It is for observation only: no stage reads it, and no record, document or log
    /// contains it. Its maximum size is
    /// [`Decoder::with_max_provider_state_bytes`](crate::wire::Decoder::with_max_provider_state_bytes).
    pub raw: Option<Arc<str>>,
    /// The repaired argument text; `None` if the arguments were not repaired.
    pub(super) repaired: Option<Arc<str>>,
    /// The validated arguments as canonical text with every digit; `None` if the call was not hydrated.
    pub validated: Option<Arc<str>>,
    pub(super) validator: Option<ValidatorUse>,
    /// The repair of the arguments. Its digests are plain hashes, without a key.
    pub(super) repair: Option<RecordedRepair>,
}

impl HydrationResult {
    /// Creates the result of a call that is refused before its arguments are read. `message` replaces the outcome's
    /// message.
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

    /// Returns the parsed arguments, after a repair if there was one; `None` if they could not be parsed.
    #[must_use]
    pub fn parsed(&self) -> Option<serde_json::Value> {
        let text = self.repaired.as_deref().unwrap_or(self.call.arguments());
        json::parse(text, &Limits::UNBOUNDED).ok().map(|tree| tree.to_value())
    }

    /// Returns the name and the version of the validator that checked the arguments, in the form that records use;
    /// `None` if they were not validated.
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

    /// Returns whether the schema was compiled during a call, this one or an earlier one.
    /// [`warm`](crate::ToolRunner::warm) compiles it before the first call.
    #[must_use]
    pub fn is_compiled_lazily(&self) -> bool {
        self.validator.as_ref().is_some_and(|used| used.is_lazy)
    }

    /// Returns the name of the repairer that rewrote the arguments; `None` if they were not repaired.
    #[must_use]
    pub fn repairer(&self) -> Option<&str> {
        self.repair.as_ref().map(|repair| &*repair.repairer)
    }

    /// Returns the plain hashes, without a key, of the text before and after the repair; `None` if there was no repair.
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

/// The stage at which hydration failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailedStage {
    /// No tool of the run has this name.
    Resolve,
    /// The arguments are not one JSON object within the limits.
    Parse,
    /// The arguments break the schema or a semantic rule.
    Validate,
    /// The typed value could not be built.
    Instantiate,
}

/// The reason why a call could not be hydrated. It is safe for a model, because it contains no values.
#[derive(Debug, Clone)]
pub(crate) struct HydrationError {
    pub(crate) stage: FailedStage,
    /// The outcome of the call.
    pub(crate) outcome: Outcome,
    /// A message that replaces that of the outcome; `None` if the outcome's message is enough.
    pub(crate) message: Option<String>,
    /// All violations, with their places.
    pub(crate) violations: Vec<Violation>,
    /// The arguments for the record; `None` if they could not be parsed or the tool has sensitive arguments.
    pub(crate) masked: Option<JsonText>,
    /// Whether a hint names a tool that lists the ids.
    pub(crate) lists: bool,
}

impl HydrationError {
    /// Returns the message for the model.
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
        // Other JSON types are valid JSON, so the error can name the broken rule.
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

    /// The error of a type that refused a value. If the type accepts less than a schema can express, or the tool has no
    /// schema, the arguments are at fault. Otherwise the tool is.
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
