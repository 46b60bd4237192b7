//! [`ToolInvocationRecord`]: the record of a call, and [`RunSummary`]: the totals of a run's calls.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::call::usage::Usage;
use crate::call::{
    ArgumentChange, ArgumentDigest, CallId, Cause, Decision, DecisionError, Intervention, JsonText, Outcome,
    RecordSeal, Violation,
};
use crate::media::{LeftOut, Media};
use crate::tool::Hash;

/// The record of one call: who made it, the policy's decision, and how it ended. It contains the result after redaction
/// and the arguments with sensitive values masked.
///
/// ```
/// use tool_runtime::store::{RecordFilter, Store};
/// use tool_runtime::{Outcome, RunOptions, ToolCall, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};
///
/// # /// Rolls a die.
/// # #[tool(name = "games__roll", effect = read_only, redact = ["$"])]
/// # fn roll() -> Result<u32, ToolError> { Ok(4) }
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let catalog = ToolCatalog::builder().tool::<roll>().build()?;
/// let runner = ToolRunner::builder(catalog, ToolPolicy::allow(["games__roll"])).build()?;
/// let run = runner.run(RunOptions::new().principal("ada"));
/// run.exec(ToolCall::text("call_1", "games__roll", "{}")).await;
///
/// let records = runner.store().calls(&RecordFilter::run(run.id())).await?;
/// let record = &records[0];
/// assert_eq!((&*record.name, record.outcome, record.executed), ("games__roll", Outcome::Ok, true));
/// assert_eq!(record.decision.as_ref().map(|decision| &*decision.rule), Some("allowed_tools"));
/// assert_eq!(record.result.as_ref().map(|result| result.get()), Some("4"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolInvocationRecord {
    /// The id of the call.
    pub tool_call_id: CallId,
    /// The name as the model wrote it, cut to 128 bytes.
    pub name: Arc<str>,
    /// The hash of the tool's definition. `None` if no tool has this name, or if the call was refused before its
    /// arguments were read.
    pub definition_hash: Option<Hash>,
    /// The arguments, masked.
    pub(crate) arguments: RecordedArguments,
    /// The differences between these arguments and the model's text: trimmed ids, and a repair of the whole text. Each
    /// has a kind and a place, but no values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ArgumentChange>,
    /// The result after redaction; `None` if there is none.
    pub result: Option<JsonText>,
    /// The amount of output that was omitted to keep the result within the tool's limit.
    #[serde(default, skip_serializing_if = "LeftOut::is_none")]
    pub left_out: LeftOut,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) media: Vec<RecordedMedia>,
    /// How the call ended, or a suspension while it waits.
    pub outcome: Outcome,
    pub(crate) cause: Option<Cause>,
    /// The code of the tool's own error, for an `execution_error`; for a `cancelled` call `in_progress` (another call
    /// was causing the effect) or `world_changed` (the precondition changed after each approval). `None` if there is
    /// none.
    pub tool_code: Option<String>,
    /// The message that models and UIs may read; `None` if the call succeeded.
    pub safe_message: Option<String>,
    /// The rules that the arguments, or a value in place of the output, broke. `expected` is empty in each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<Violation>,
    /// Whether the tool began to run, here or at a client.
    pub executed: bool,
    /// When the call arrived.
    pub started_at: Timestamp,
    /// When the call ended; `None` while it waits or runs.
    pub ended_at: Option<Timestamp>,
    /// The id of the run.
    pub run_id: Arc<str>,
    /// The session of the run; `None` if the run names none.
    pub session_id: Option<Arc<str>>,
    /// The conversation of the run; `None` if the run names none.
    pub conversation_id: Option<Arc<str>>,
    /// The principal that the run acts for; `None` if the run names none.
    pub principal: Option<Arc<str>>,
    /// The principal's roles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<Arc<str>>,
    /// The principal's attributes: pairs of a name and a value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<(Arc<str>, Arc<str>)>,
    /// The tenant of the run; `None` if the run names none.
    pub tenant: Option<Arc<str>>,
    /// The key of the effect that must happen only once (the tool's `once`), made from the arguments; `None` for a tool
    /// without such a key, and for a call that ended before its key was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect_key: Option<Arc<str>>,
    /// The source of the call.
    pub caller: Caller,
    /// The decision of the policy, or of a grant (a stored decision for later calls), with its rule. `None` if no
    /// decision was made.
    pub decision: Option<Decision>,
    /// The name and version of the validator; `None` if the arguments were not validated.
    pub validator: Option<Arc<str>>,
    /// How the arguments were repaired; `None` if they were not.
    pub(crate) repair: Option<Box<RecordedRepair>>,
    /// A person's change to the call, or the earlier call that had its effect; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) intervention: Option<Box<Intervention>>,
    /// A grant (a stored decision for later calls) that covered the call but did not count, because its decider may no
    /// longer decide; `None` if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) void_grant: Option<Box<VoidGrant>>,
    /// How the record's hash is computed. `None` before the record is added to the hash chain, and for a record whose
    /// hash covers its whole text. Only an [`AuditRecord`](crate::store::AuditRecord) is serialised with it.
    #[serde(skip)]
    pub(crate) seal: Option<Box<RecordSeal>>,
}

impl ToolInvocationRecord {
    /// Returns the arguments that a person changed before the tool ran, without their values; empty if no argument was
    /// changed.
    #[must_use]
    pub fn edits(&self) -> &[ArgumentChange] {
        self.intervention.as_deref().map_or(&[], Intervention::edits)
    }

    /// Whether a person supplied the result in place of the tool.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        matches!(self.intervention.as_deref(), Some(Intervention::Answered))
    }

    /// Returns the run and the id of an earlier call that already had the same effect. The result is the result of that
    /// call, and the tool did not run again. `None` for every other call.
    #[must_use]
    pub fn earlier_call(&self) -> Option<(&str, &CallId)> {
        self.intervention.as_deref().and_then(Intervention::earlier)
    }

    /// Returns the arguments, with sensitive values masked; `None` if they could not be read.
    #[must_use]
    pub fn shown_arguments(&self) -> Option<&JsonText> {
        self.arguments.shown()
    }

    /// Returns the length in bytes and the digest of arguments that could not be read; `None` if they were read.
    #[must_use]
    pub fn unread_arguments(&self) -> Option<(usize, ArgumentDigest)> {
        self.arguments.unread()
    }

    /// Returns the files that the tool attached to the result, each as its media type, its size in bytes (0 for a URL),
    /// and the SHA-256 of its content or URL. The record has no bytes, names or addresses of files.
    #[must_use]
    pub fn media(&self) -> impl ExactSizeIterator<Item = (&str, usize, Hash)> {
        self.media.iter().map(|media| (&*media.media_type, media.bytes, media.sha256))
    }

    /// Returns the interruption of a tool that had begun: `timeout`; `cancelled` if the run or the caller gave up;
    /// `panicked`; `lost` if its process died, its connection broke off, or its process lost the lease (the exclusive
    /// right to the call); or `prevented` if an earlier attempt broke off without an effect, and the outside system now
    /// refuses that attempt. `None` if it was not interrupted.
    #[must_use]
    pub fn cause(&self) -> Option<&'static str> {
        self.cause.map(Cause::as_str)
    }

    /// Returns the repairer that rewrote the arguments; `None` if they were not repaired.
    #[must_use]
    pub fn repairer(&self) -> Option<&str> {
        self.repair.as_deref().map(|repair| &*repair.repairer)
    }

    /// Returns the digests of the text before and after a repair; `None` if the arguments were not repaired.
    #[must_use]
    pub fn repair_digests(&self) -> Option<[ArgumentDigest; 2]> {
        self.repair.as_deref().map(|repair| [repair.before, repair.after])
    }

    /// Returns the id of a grant (a stored decision for later calls) that covered the call but did not count, and why
    /// its decider may no longer decide on such calls. `None` if there was none.
    #[must_use]
    pub fn void_grant(&self) -> Option<(&str, DecisionError)> {
        self.void_grant.as_deref().map(|grant| (&*grant.id, grant.why))
    }
}

/// A grant that covered a call but did not count, because its decider may no longer decide on such calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct VoidGrant {
    pub(crate) id: Arc<str>,
    /// The reason why its decider may not decide.
    pub(crate) why: DecisionError,
}

/// A file in a record, without its bytes, name and address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RecordedMedia {
    media_type: String,
    bytes: usize,
    sha256: Hash,
}

impl From<&Media> for RecordedMedia {
    fn from(media: &Media) -> Self {
        Self { media_type: media.essence().to_owned(), bytes: media.size(), sha256: media.sha256() }
    }
}

/// The one repair of a call's arguments, in a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RecordedRepair {
    pub(crate) repairer: String,
    /// The digest of the text before.
    pub(crate) before: ArgumentDigest,
    /// The digest of the text after.
    pub(crate) after: ArgumentDigest,
}

/// The one repair of a call's arguments, with plain hashes in place of keyed digests.
#[derive(Debug, Clone)]
pub(crate) struct RepairUse {
    pub(crate) repairer: String,
    /// SHA-256 of the text before.
    pub(crate) before: Hash,
    /// SHA-256 of the text after.
    pub(crate) after: Hash,
}

impl From<&RepairUse> for RecordedRepair {
    fn from(repair: &RepairUse) -> Self {
        let [before, after] = [repair.before, repair.after].map(ArgumentDigest::plain);
        Self { repairer: repair.repairer.clone(), before, after }
    }
}

/// The arguments of a record.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RecordedArguments {
    /// The arguments could be read. Sensitive values are masked.
    Masked(JsonText),
    /// The arguments could not be read.
    Unread {
        /// Their length in bytes.
        length: usize,
        /// The digest of their bytes.
        digest: ArgumentDigest,
    },
}

impl RecordedArguments {
    pub(crate) fn shown(&self) -> Option<&JsonText> {
        match self {
            Self::Masked(arguments) => Some(arguments),
            Self::Unread { .. } => None,
        }
    }

    pub(crate) fn unread(&self) -> Option<(usize, ArgumentDigest)> {
        match self {
            Self::Masked(_) => None,
            Self::Unread { length, digest } => Some((*length, *digest)),
        }
    }
}

/// The source of a run's calls: the agent loop or the application, or a graph (an agent or a script that runs as a
/// tool).
///
/// ```
/// use tool_runtime::RunOptions;
/// use tool_runtime::call::Caller;
///
/// assert_eq!(Caller::default(), Caller::Direct);
/// let caller = Caller::Graph { run: "run-1".to_owned(), name: "researcher".to_owned(), version: "1".to_owned() };
/// let options = RunOptions::new().principal("ada").caller(caller);
/// # drop(options);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Caller {
    /// The agent loop or the application.
    #[default]
    Direct,
    /// A graph that runs as a tool.
    Graph {
        /// The id of the run that calls the graph.
        run: String,
        /// The name of the graph.
        name: String,
        /// The version of the graph.
        version: String,
    },
}

/// The totals of a run's calls.
///
/// [`Run::summary`](crate::Run::summary) returns it; [`Run`](crate::Run) has an example.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunSummary {
    /// The number of calls by outcome.
    pub calls: BTreeMap<Outcome, u64>,
    /// The total time of the calls, in milliseconds, by the clock of the runner.
    pub latency_ms: u64,
    /// Bytes of results after redaction.
    pub result_bytes: u64,
    /// Tokens accounted to the run, by kind.
    pub usage: Usage,
    /// Cost accounted to the run, in the application's own unit.
    pub cost: f64,
}
