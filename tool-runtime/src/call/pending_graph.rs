//! [`PendingGraph`]: the call for which a graph waits.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::call::{ArgumentChange, CallId, Decider, JsonText, NamedArgument, Question, SafeError};

/// A waiting call that a graph (an agent or a script that runs as a tool) made. The call of the graph waits too; a
/// decision on the call of the graph decides both.
///
/// [`PendingCall::graph`](crate::store::PendingCall::graph) contains it. [`Graph`](crate::agent::Graph) has an example
/// of a graph.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PendingGraph {
    /// The graph and the tool, such as `researcher > notes__delete`.
    pub path: String,
    /// The name of the called tool.
    pub tool: String,
    /// The id of the call in the run of the graph.
    pub call_id: CallId,
    /// The question that the graph's call asks.
    pub(crate) question: Question,
    /// The arguments, with sensitive values masked. `None` if the store could not be read.
    pub shown_arguments: Option<JsonText>,
    /// The sentences about this call for the person who decides: the tool's `summary`, its precondition, and earlier
    /// calls of the same effect with an unknown outcome. `None` if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Names that were looked up for values among the arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<NamedArgument>,
    /// The differences between the arguments that the graph's model wrote and those that the tool gets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ArgumentChange>,
    /// The rule of the policy that required approval. `None` if the store could not be read.
    pub rule: Option<String>,
    /// The reason why the last decision was refused, so that it can be corrected. `None` if no decision was refused.
    pub refused: Option<SafeError>,
    /// How many different deciders have to approve the call.
    #[serde(default = "one_decider")]
    pub(crate) required: u32,
    /// The deciders who had approved the call before its graph waited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) approvals: Vec<Decider>,
    /// The id of the graph's run.
    pub run_id: Arc<str>,
    /// All waiting calls of the graph; each is decided in turn. The document omits them, because the store has them.
    #[serde(skip)]
    pub(crate) waiting: Vec<CallId>,
    /// Whether an effect of the graph may have begun.
    pub(crate) begun: bool,
    /// The conversation of the graph, as JSON.
    pub(crate) document: Arc<str>,
}

/// The number of deciders in a document that does not state it.
pub(crate) const fn one_decider() -> u32 {
    1
}

// The graph's arguments and data stay out of logs.
impl fmt::Debug for PendingGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingGraph")
            .field("path", &self.path)
            .field("call_id", &self.call_id)
            .field("rule", &self.rule)
            .finish_non_exhaustive()
    }
}
