//! [`PendingGraph`]: what a graph waits for.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::call::{ArgumentChange, CallId, JsonText, NamedArgument, Question, SafeError};

/// The call that a graph made and that waits for a person. The call of the graph waits with it, and a decision on the one
/// is a decision on the other.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PendingGraph {
    /// The graph and the tool, such as `researcher > notes__delete`.
    pub path: String,
    /// The tool.
    pub tool: String,
    /// The id of the call in the run of the graph.
    pub call_id: CallId,
    /// The question that it asks.
    pub(crate) question: Question,
    /// The arguments with the sensitive ones masked. `None` if the store could not be asked.
    pub shown_arguments: Option<JsonText>,
    /// What the call would do, in the sentence of the tool's author. `None` if the tool has no sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Names that were looked up for values among the arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<NamedArgument>,
    /// What the tool gets that the model of the graph did not write like this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ArgumentChange>,
    /// The rule of the policy that asked for a person. `None` if the store could not be asked.
    pub rule: Option<String>,
    /// Why the last decision did not fit, so that it can be corrected. `None` if there was none.
    pub refused: Option<SafeError>,
    /// The run of the graph.
    pub run_id: Arc<str>,
    /// All calls of the graph that wait; each is decided in its turn. The store knows them, so the document need not.
    #[serde(skip)]
    pub(crate) waiting: Vec<CallId>,
    /// Whether an effect of the graph may have begun.
    pub(crate) begun: bool,
    /// The conversation of the graph.
    pub(crate) document: Arc<str>,
}

// Arguments and what the graph read stay out of logs.
impl fmt::Debug for PendingGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingGraph")
            .field("path", &self.path)
            .field("call_id", &self.call_id)
            .field("rule", &self.rule)
            .finish_non_exhaustive()
    }
}
