//! [`PendingCall`]: a call that is suspended for a person or a client, as a versioned document.
//!
//! The file is long because most of its lines document the fields that an approver may need.

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

/// A suspended call. It continues only in a run of the same principal and tenant, with the same caller and attributes.
/// The tool's definition, the digest of the arguments and the revision of the policy must be unchanged, and the run
/// must have no role or tool that it lacked before. The clock must not be more than a minute before
/// [`created_at`](Self::created_at), and the call must not have expired. The session and the conversation are not
/// compared.
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
    /// [`PendingCall::VERSION`]. It is the first member, so that a reader detects another version before it reads
    /// anything else.
    #[serde(deserialize_with = "version")]
    pub version: u32,
    /// The id of the call.
    pub call_id: CallId,
    /// The tool.
    pub tool: ToolName,
    /// The hash of the definition that the model saw.
    pub definition_hash: Hash,
    pub(crate) arguments: FrozenArguments,
    /// SHA-256 of the [exact arguments](Self::arguments). A decision is bound to this digest. Records never contain it.
    pub argument_digest: Hash,
    /// The digest of the exact arguments for records and lists: an HMAC with the store's key. Every call that the
    /// runner stores has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record_digest: Option<ArgumentDigest>,
    /// The arguments to show to a person, with sensitive ones masked.
    pub shown_arguments: JsonText,
    /// The explanation for a person: the sentence of the tool's author with the shown arguments in it, the
    /// precondition, and sentences about earlier calls of unknown outcome and about an approval that had no effect,
    /// because the precondition or a looked-up name had changed, or the precondition could not be read. `None` if there
    /// is nothing to explain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Names that the application looked up for values among the arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<NamedArgument>,
    /// The differences between the model's arguments and the arguments that the tool receives: defaults, trimmed ids,
    /// repairs and edits.
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
    /// The tools to which the run is limited. `None` if the run sets no such limit.
    pub tools: Option<BTreeSet<Box<str>>>,
    /// The hash of the policy that required the decision.
    pub policy_revision: Hash,
    /// The rule of the policy that required the decision.
    pub rule: Option<String>,
    /// The labels that the run had when the call was suspended.
    pub labels: Vec<Arc<str>>,
    /// Labels that the run gained after the suspension. Every process considers them at the next decision.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) gained: Vec<Arc<str>>,
    /// The id of the run.
    pub run_id: Arc<str>,
    /// The session of the run.
    pub session_id: Option<Arc<str>>,
    /// The conversation of the run.
    pub conversation_id: Option<Arc<str>>,
    /// The caller that made the call.
    pub caller: Caller,
    /// The repair of the arguments. `None` if they were not repaired.
    pub(crate) repair: Option<RecordedRepair>,
    /// When the call arrived.
    pub started_at: Timestamp,
    /// When the call was suspended.
    pub created_at: Timestamp,
    /// The time from which the call can no longer be resumed.
    pub expires_at: Timestamp,
    /// Whether the call waits for a person or for a client.
    pub suspension: Suspension,
    /// The payload for the client that executes the call, with only the parts that the tool's `prepare` list names.
    /// `None` for an approval.
    pub prepared: Option<JsonText>,
    /// The call for which a suspended graph waits. `None` if the tool is not a graph (an agent or a script that runs
    /// as a tool).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<Box<PendingGraph>>,
    /// Earlier calls of the same effect whose outcome is unknown, or was unknown when this call was suspended.
    /// [`summary`](Self::summary) begins with sentences about them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) unknown: Vec<UnknownCall>,
    /// The number of different deciders who have to approve the call.
    #[serde(default = "crate::call::one_decider", skip_serializing_if = "is_one")]
    pub(crate) required: u32,
    /// The deciders who have approved the current question of a call that needs several approvals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) approvals: Vec<Decider>,
    /// The model's own arguments, if a decider edited the arguments of a call that needs several approvals. `None` if
    /// no decider edited them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) replaced: Option<Box<ReplacedArguments>>,
    /// The statements of the tool's precondition, the looked-up names that are shown only in part, and the number of
    /// approvals that did not count. [`summary`](Self::summary) has the statements in words. `None` if there is none of
    /// these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) world: Option<Box<World>>,
}

/// The model's own arguments, which a decider replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReplacedArguments {
    pub(crate) arguments: FrozenArguments,
    /// The number of times that deciders replaced the arguments.
    pub(crate) times: u32,
}

impl PendingCall {
    /// Returns the exact arguments that the tool would receive, as canonical JSON text, which keeps every digit of a
    /// number. They can be sensitive.
    #[must_use]
    pub fn arguments(&self) -> &str {
        self.arguments.as_str()
    }

    /// The version of the document that this library writes, and the only one that it reads.
    pub const VERSION: u32 = 1;

    /// Whether the call has expired at a time.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        now >= self.expires_at
    }

    /// Returns the current question of the call. A decision on the call has to refer to this question.
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
            // Sensitive arguments are masked, so only their keyed digest distinguishes the replacements.
            (unknown, Some(replaced), world) => {
                Question::of(&self.call_id, &(asked, unknown, world, replaced.times, self.record_digest))
            }
        }
    }

    /// Returns the deciders who have approved the call so far, and the number of different deciders who have to approve
    /// it. An approval applies to one question: when the question changes, earlier approvals are dropped.
    pub fn approvals(&self) -> (&[Decider], u32) {
        (&self.approvals, self.required)
    }

    /// Returns a sentence with the number of approvals of a call that needs several approvals. `None` for any other
    /// call.
    #[cfg(feature = "mcp-server")]
    pub(crate) fn approval_status(&self) -> Option<String> {
        (self.required > 1).then(|| format!("It needs {} approvals and has {}.", self.required, self.approvals.len()))
    }

    /// Whether this person has approved the call, and approvals of other people are still missing.
    pub(crate) fn needs_others_than(&self, decider: &Decider) -> bool {
        self.is_approved_by(decider) && !self.is_last_approval(decider)
    }

    /// Whether this person has approved the current question of the call.
    pub(crate) fn is_approved_by(&self, decider: &Decider) -> bool {
        self.approvals.iter().any(|other| other.is_same_person(decider))
    }

    /// Whether the call has all required approvals, if this decider's approval is counted.
    pub(crate) fn is_last_approval(&self, decider: &Decider) -> bool {
        let others = self.approvals.iter().filter(|other| !other.is_same_person(decider)).count();
        u32::try_from(others).unwrap_or(u32::MAX) >= self.required.saturating_sub(1)
    }

    /// Returns the model's own arguments, even if a decider replaced them.
    pub(crate) fn of_model(&self) -> &FrozenArguments {
        self.replaced.as_ref().map_or(&self.arguments, |replaced| &replaced.arguments)
    }

    /// Whether the model's own arguments have this SHA-256.
    pub(crate) fn is_of(&self, arguments: Hash) -> bool {
        Hash::sha256(self.of_model().as_str()) == arguments
    }

    /// Whether both documents are the same call of the model. Their definitions and policies may differ.
    pub(crate) fn is_same_call(&self, other: &Self) -> bool {
        let inner = |call: &Self| call.graph.as_ref().map(|graph| graph.call_id.clone());
        self.tool == other.tool
            && self.suspension == other.suspension
            && self.of_model() == other.of_model()
            && inner(self) == inner(other)
    }

    /// Whether both documents are the same call of the model, suspended for the same reason under the same definition
    /// and policy. Their times, preconditions, edits and earlier calls of unknown outcome may differ.
    pub(crate) fn repeats(&self, earlier: &Self) -> bool {
        // `arguments` differ if a decider replaced them, so the model's own arguments are compared.
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

    /// Replaces the earlier calls of the same effect in the question. Drops the approvals of the previous question.
    pub(crate) fn ask_about(&mut self, unknown: Vec<UnknownCall>) {
        let before = about(&self.unknown);
        let sentence = self.summary.take().unwrap_or_default();
        let sentence = sentence.strip_prefix(&*before).unwrap_or(&sentence).trim_start();
        let summary = format!("{} {sentence}", about(&unknown));
        self.summary = Some(summary.trim().to_owned()).filter(|summary| !summary.is_empty());
        self.unknown = unknown;
        self.approvals.clear();
    }

    /// Sets the author's sentence about the call, and the state on which the approval depends.
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

    /// Returns the author's sentence about the call, without the sentences that the library adds.
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

    /// Returns the labels of the run at the suspension, followed by the labels that it gained later.
    pub(crate) fn all_labels(&self) -> impl Iterator<Item = &Arc<str>> + Clone {
        self.labels.iter().chain(&self.gained)
    }

    /// Whether the call lacks at least one of these labels.
    pub(crate) fn lacks(&self, labels: &[Arc<str>]) -> bool {
        labels.iter().any(|label| !self.has(label))
    }

    /// Adds the labels of another copy of the call, because its run may have gained labels after this copy was read.
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

    /// Returns the tool on which a person decides: for a waiting graph, the tool of the call for which it waits.
    pub(crate) fn decided_tool(&self) -> &str {
        self.graph.as_ref().map_or(self.tool.as_str(), |graph| &graph.tool)
    }

    /// Returns the explanation of the call on which a person decides: the sentence, the differences from the model's
    /// arguments, and the names.
    pub(crate) fn decided_explanation(&self) -> (Option<&str>, &[ArgumentChange], &[NamedArgument]) {
        match &self.graph {
            Some(graph) => (graph.summary.as_deref(), &graph.changes, &graph.names),
            None => (self.summary.as_deref(), &self.changes, &self.names),
        }
    }

    /// Whether both documents are the same suspension. Another call may have been suspended under the same id.
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

/// The maximum number of earlier calls that a sentence names.
const NAMED: usize = 3;
/// The maximum number of characters of an id in such a sentence.
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

/// Returns the sentence about earlier calls whose outcomes are in one state, in the past tense if `was` is set. `None`
/// if there are none.
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

/// The exact arguments of a call as canonical JSON text, which keeps every digit. `Debug` omits them, because they can
/// be sensitive.
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
