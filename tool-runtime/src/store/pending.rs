//! [`PendingCall`]: a call that is suspended for a person or a client, as a versioned document.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};

use crate::call::{
    ArgumentChange, ArgumentDigest, CallId, Caller, Decider, JsonText, NamedArgument, PendingGraph, Question,
    RecordedRepair, Suspension, World,
};
use crate::store::document::{KnownOutcome, UnknownCall};
use crate::text::quoted;
use crate::tool::{Hash, ToolName};

/// A suspended call. Before it continues, everything in it is compared with the present: principal, tenant, roles,
/// attributes, tools, the tool's definition, the arguments, the policy and the time.
///
/// ```
/// use tool_runtime::store::{RecordFilter, Store};
/// use tool_runtime::{ToolCatalog, ToolEffect, ToolError, ToolPolicy, testing, tool};
///
/// # /// Deletes the note.
/// # #[tool(name = "notes__delete", effect = state_change, redact = ["$"])]
/// # fn delete() -> Result<String, ToolError> { Ok("deleted".to_owned()) }
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let policy = ToolPolicy::allow(["notes__delete"]).with_approval_for_effects([ToolEffect::StateChange]);
/// let harness = testing::harness(ToolCatalog::builder().tool::<delete>().build()?).policy(policy);
/// let waits = harness.call("notes__delete", serde_json::json!({})).await;
///
/// for call in harness.runner().store().pending_calls(&RecordFilter::default()).await? {
///     let call = call?;
///     assert_eq!((call.tool.as_str(), call.shown_arguments.get()), ("notes__delete", "{}"));
///     assert_eq!(Some(&call.question()), waits.question());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PendingCall {
    /// [`PendingCall::VERSION`]. The first member, so that a reader detects another version before it reads anything
    /// else.
    #[serde(deserialize_with = "version")]
    pub version: u32,
    /// The id of the call.
    pub call_id: CallId,
    /// The tool.
    pub tool: ToolName,
    /// The definition that the model saw.
    pub definition_hash: Hash,
    pub(crate) arguments: FrozenArguments,
    /// SHA-256 of the frozen arguments. A decision is bound to it; it never appears in a record.
    pub argument_digest: Hash,
    /// The digest of the frozen arguments for records and lists. `None` if the call was suspended before digests had
    /// keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record_digest: Option<ArgumentDigest>,
    /// The arguments for a person to read, with sensitive ones masked.
    pub shown_arguments: JsonText,
    /// The effect of the call, as a sentence of the tool's author with the shown arguments in it. `None` if the tool
    /// has no such sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Names that were looked up for values among the arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<NamedArgument>,
    /// The differences between the model's arguments and those that the tool receives: defaults, trimmed ids, repairs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ArgumentChange>,
    /// The principal that the run acts for.
    pub principal: Option<Arc<str>>,
    /// The tenant of the run.
    pub tenant: Option<Arc<str>>,
    /// The roles of the principal.
    pub roles: Vec<Arc<str>>,
    /// The attributes of the principal: pairs of a name and a value.
    pub attributes: Vec<(Arc<str>, Arc<str>)>,
    /// The tools of the run; `None` if the run does not narrow them.
    pub tools: Option<BTreeSet<Box<str>>>,
    /// The policy that required the decision.
    pub policy_revision: Hash,
    /// The policy's rule that required it.
    pub rule: Option<String>,
    /// The labels of the run when it was suspended.
    pub labels: Vec<Arc<str>>,
    /// The labels that the run gained since. The next decision is compared with them too, in every process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) gained: Vec<Arc<str>>,
    /// The run.
    pub run_id: Arc<str>,
    /// The session.
    pub session_id: Option<Arc<str>>,
    /// The conversation.
    pub conversation_id: Option<Arc<str>>,
    /// The caller.
    pub caller: Caller,
    /// How the arguments were repaired; `None` if they were not.
    pub(crate) repair: Option<RecordedRepair>,
    /// When the call arrived.
    pub started_at: Timestamp,
    /// When it was suspended.
    pub created_at: Timestamp,
    /// The moment from which it can no longer be resumed.
    pub expires_at: Timestamp,
    /// The reason why it is suspended.
    pub suspension: Suspension,
    /// The arguments for the client that executes the call: a projection by the tool's `prepare` list.
    pub prepared: Option<JsonText>,
    /// The call that a graph waits for; `None` for every other tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<Box<PendingGraph>>,
    /// Earlier calls of the same effect whose outcome is unknown, or was when the call was suspended.
    /// [`summary`](Self::summary) begins with them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) unknown: Vec<UnknownCall>,
    /// How many different deciders have to approve the call.
    #[serde(default = "crate::call::one_decider", skip_serializing_if = "is_one")]
    pub(crate) required: u32,
    /// The deciders who approved the call as its question shows it, of several that have to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) approvals: Vec<Decider>,
    /// The arguments of the model, if a decider replaced them while the call needs several approvals. `None` if they
    /// were not replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) replaced: Option<Box<ReplacedArguments>>,
    /// The precondition of the call. [`summary`](Self::summary) has it in words. `None` if its tool has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) world: Option<Box<World>>,
}

/// The arguments of the model that a decider replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReplacedArguments {
    pub(crate) arguments: FrozenArguments,
    /// How many times they were replaced.
    pub(crate) times: u32,
}

impl PendingCall {
    /// Returns the exact arguments that the tool would receive, as canonical JSON text, which keeps every digit. They
    /// can be sensitive.
    #[must_use]
    pub fn arguments(&self) -> &str {
        self.arguments.as_str()
    }

    /// The version of the document that this library writes, and the only one that it reads.
    pub const VERSION: u32 = 1;

    /// Whether the call has expired.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        now >= self.expires_at
    }

    /// Returns the question that the call poses as it is suspended now. A decision on the call carries it.
    #[must_use]
    pub fn question(&self) -> Question {
        let inner = self.graph.as_ref().map(|graph| &graph.question);
        let party = (&self.run_id, &self.tenant, &self.principal);
        let shown = (&self.tool, self.definition_hash, &self.shown_arguments);
        let asked = (party, self.suspension, self.created_at, shown, inner);
        let unknown: Vec<_> = self.unknown.iter().map(UnknownCall::shown).collect();
        match (&*unknown, &self.replaced, &self.world) {
            ([], None, None) => Question::of(&self.call_id, &asked),
            (unknown, None, None) => Question::of(&self.call_id, &(asked, unknown)),
            (unknown, None, Some(world)) => Question::of(&self.call_id, &(asked, unknown, world)),
            // Sensitive arguments are masked, so their keyed digest shows that they were replaced.
            (unknown, Some(replaced), world) => {
                Question::of(&self.call_id, &(asked, unknown, world, replaced.times, self.record_digest))
            }
        }
    }

    /// Returns the deciders who have approved the call so far, and how many different deciders have to approve it. An
    /// approval counts for one question: it is dropped if the call asks another one.
    pub fn approvals(&self) -> (&[Decider], u32) {
        (&self.approvals, self.required)
    }

    /// Returns a sentence on the approvals of a call that needs several. `None` for any other call.
    #[cfg(feature = "mcp-server")]
    pub(crate) fn approval_status(&self) -> Option<String> {
        (self.required > 1).then(|| format!("It needs {} approvals and has {}.", self.required, self.approvals.len()))
    }

    /// Whether another approval of this person would change nothing.
    pub(crate) fn needs_others_than(&self, decider: &Decider) -> bool {
        self.is_approved_by(decider) && !self.is_last_approval(decider)
    }

    /// Whether this person has approved the call as its question shows it.
    pub(crate) fn is_approved_by(&self, decider: &Decider) -> bool {
        self.approvals.iter().any(|other| other.is_same_person(decider))
    }

    /// Whether the call has all of its approvals, with that of this decider.
    pub(crate) fn is_last_approval(&self, decider: &Decider) -> bool {
        let others = self.approvals.iter().filter(|other| !other.is_same_person(decider)).count();
        u32::try_from(others).unwrap_or(u32::MAX) >= self.required.saturating_sub(1)
    }

    /// Returns the arguments of the model.
    pub(crate) fn of_model(&self) -> &FrozenArguments {
        self.replaced.as_ref().map_or(&self.arguments, |replaced| &replaced.arguments)
    }

    /// Whether the model wrote these arguments, by their digest.
    pub(crate) fn is_of(&self, arguments: Hash) -> bool {
        Hash::sha256(self.of_model().as_str()) == arguments
    }

    /// Whether both are the same call of the model, under any definition and policy.
    pub(crate) fn is_same_call(&self, other: &Self) -> bool {
        let inner = |call: &Self| call.graph.as_ref().map(|graph| graph.call_id.clone());
        self.tool == other.tool
            && self.suspension == other.suspension
            && self.of_model() == other.of_model()
            && inner(self) == inner(other)
    }

    /// Whether both are the same call of the model, suspended for the same reason, at any time.
    pub(crate) fn repeats(&self, earlier: &Self) -> bool {
        // A decider may have replaced the arguments.
        let of_model = earlier.of_model();
        let earlier = Self {
            created_at: self.created_at,
            unknown: self.unknown.clone(),
            world: self.world.clone(),
            arguments: self.arguments.clone(),
            argument_digest: self.argument_digest,
            replaced: self.replaced.clone(),
            ..earlier.clone()
        };
        self.is_same(&earlier) && self.tool == earlier.tool && self.of_model() == of_model
    }

    /// Adds earlier calls of the same effect to the question, in place of those that it named before. Approvals of the
    /// other question are dropped.
    pub(crate) fn ask_about(&mut self, unknown: Vec<UnknownCall>) {
        let before = about(&self.unknown);
        let sentence = self.summary.take().unwrap_or_default();
        let sentence = sentence.strip_prefix(&*before).unwrap_or(&sentence).trim_start();
        let summary = format!("{} {sentence}", about(&unknown));
        self.summary = Some(summary.trim().to_owned()).filter(|summary| !summary.is_empty());
        self.unknown = unknown;
        self.approvals.clear();
    }

    /// Sets the author's sentence about the call, together with what the call depends on.
    pub(crate) fn explain(&mut self, sentence: Option<String>, world: World) {
        let statement = world.statement();
        let is_open = |sentence: &String| statement.is_some() && !sentence.ends_with(['.', '!', '?']);
        let sentence = sentence.map(|sentence| if is_open(&sentence) { sentence + "." } else { sentence });
        let parts = [world.renewal(), sentence, statement].into_iter().flatten().collect::<Vec<_>>();
        self.summary = (!parts.is_empty()).then(|| parts.join(" "));
        self.world = (!world.is_empty()).then(|| Box::new(world));
        let unknown = std::mem::take(&mut self.unknown);
        self.ask_about(unknown);
    }

    /// Returns the author's sentence about the call, without what the library adds to it.
    pub(crate) fn sentence(&self) -> Option<&str> {
        let summary = self.summary.as_deref()?;
        let without = |text, prefix: &str| str::strip_prefix(text, prefix).unwrap_or(text).trim_start();
        let sentence = without(summary, &about(&self.unknown));
        let (renewal, statement) = self.world.as_deref().map(|world| (world.renewal(), world.statement())).unzip();
        let sentence = without(sentence, &renewal.flatten().unwrap_or_default());
        let statement = statement.flatten().unwrap_or_default();
        let sentence = sentence.strip_suffix(&*statement).unwrap_or(sentence).trim_end();
        (!sentence.is_empty()).then_some(sentence)
    }

    /// Returns the labels of the run at the suspension, and those that it gained since.
    pub(crate) fn all_labels(&self) -> impl Iterator<Item = &Arc<str>> + Clone {
        self.labels.iter().chain(&self.gained)
    }

    /// Whether the call does not have one of the run's labels.
    pub(crate) fn lacks(&self, labels: &[Arc<str>]) -> bool {
        labels.iter().any(|label| !self.has(label))
    }

    /// Adds the labels of another copy of the call, whose run may have gained some since this one was read.
    pub(crate) fn gain_those_of(&mut self, other: &Self) {
        let labels = other.all_labels().cloned().collect::<Vec<_>>();
        self.gain(&labels);
    }

    /// Adds labels that the run gained.
    pub(crate) fn gain(&mut self, labels: &[Arc<str>]) {
        for label in labels {
            if !self.has(label) {
                self.gained.push(Arc::clone(label));
            }
        }
    }

    fn has(&self, label: &Arc<str>) -> bool {
        self.all_labels().any(|known| known == label)
    }

    /// Returns the tool that a decision is about: for a graph that waits with a call, the tool of that call.
    pub(crate) fn decided_tool(&self) -> &str {
        self.graph.as_ref().map_or(self.tool.as_str(), |graph| &graph.tool)
    }

    /// Returns the explanation of the call that a decision is about: the sentence, the differences from the model's
    /// arguments, and the names.
    pub(crate) fn decided_explanation(&self) -> (Option<&str>, &[ArgumentChange], &[NamedArgument]) {
        match &self.graph {
            Some(graph) => (graph.summary.as_deref(), &graph.changes, &graph.names),
            None => (self.summary.as_deref(), &self.changes, &self.names),
        }
    }

    /// Whether this is the call that was compared, and not another one that was suspended under its id since.
    pub(crate) fn is_same(&self, compared: &Self) -> bool {
        let of = |call: &Self| (call.suspension, call.created_at, call.definition_hash, call.policy_revision);
        let [next, compared_next] = [self, compared].map(|call| call.graph.as_ref().map(|graph| &graph.call_id));
        of(self) == of(compared)
            && next == compared_next
            && self.principal == compared.principal
            && self.tenant == compared.tenant
            && self.arguments == compared.arguments
            && self.argument_digest == compared.argument_digest
            && self.unknown == compared.unknown
            && self.replaced == compared.replaced
            && self.world == compared.world
    }
}

/// How many earlier calls the sentence names.
const NAMED: usize = 3;
/// The maximum number of characters of an id in the sentence.
const ID: usize = 80;

/// Returns the sentences about earlier calls whose outcome is or was unknown. Empty if there are none.
fn about(earlier: &[UnknownCall]) -> String {
    let states = [
        (None, "an unknown outcome"),
        (Some(KnownOutcome::TookEffect), "an unknown outcome, and took effect"),
        (Some(KnownOutcome::DidNotHappen), "an unknown outcome, and did not happen"),
        (
            Some(KnownOutcome::Deleted),
            "an unknown outcome, which was settled, and its record is no longer in the store",
        ),
    ];
    let sentences = states.map(|(known, state)| {
        let of_state: Vec<_> = earlier.iter().filter(|call| call.known == known).collect();
        about_some(&of_state, known.is_some(), state)
    });
    sentences.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// Returns the sentence about earlier calls whose outcomes are in one state. `None` if there are none.
fn about_some(earlier: &[&UnknownCall], was: bool, state: &str) -> Option<String> {
    let named = earlier.iter().take(NAMED).map(|call| {
        let (id, run) = (quoted(call.call_id.as_str(), ID), quoted(&call.run_id, ID));
        let cause = call.cause.map_or_else(String::new, |cause| format!(", {}", cause.as_str()));
        format!("call {id} of run {run} ({}{cause})", call.since)
    });
    let named = named.collect::<Vec<_>>().join(", ");
    let same = if earlier.iter().any(|call| call.is_once) { "effect key" } else { "arguments" };
    let (one, several) = if was { ("had", "had") } else { ("has", "have") };
    match earlier.len() {
        0 => None,
        1 => Some(format!("A call with the same {same} {one} {state}: {named}.")),
        many if many <= NAMED => Some(format!("Calls with the same {same} {several} {state}: {named}.")),
        many => {
            let more = many - NAMED;
            Some(format!("Calls with the same {same} {several} {state}: {named} and {more} more."))
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_one(number: &u32) -> bool {
    *number == 1
}

fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        PendingCall::VERSION => Ok(PendingCall::VERSION),
        _ => Err(serde::de::Error::custom("the pending call was written by another version of the library")),
    }
}

/// Frozen arguments as canonical JSON text, which keeps every digit. `Debug` is blank, because they can be sensitive.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct FrozenArguments(Arc<str>);

impl FrozenArguments {
    /// Wraps canonical text.
    pub(crate) fn new(canonical: impl Into<Arc<str>>) -> Self {
        Self(canonical.into())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for FrozenArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FrozenArguments(..)")
    }
}
