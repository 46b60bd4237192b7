//! Calls and their results in a conversation: every call has exactly one result, in order.

use std::collections::HashSet;
use std::fmt;

use crate::call::{CallId, ToolCall};

/// A call together with its result.
#[derive(Debug, Clone)]
pub struct Answer<'a> {
    /// The call.
    pub call: &'a ToolCall,
    /// The result as the model reads it.
    pub content: String,
    /// It did not end well.
    pub is_error: bool,
}

/// What a message of a conversation means for its calls, whatever the format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// An assistant's message with the ids of its calls.
    Calls(Vec<CallId>),
    /// The result of a call.
    Result(CallId),
    /// Anything else.
    Other,
}

/// Why a history that a client sent is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HistoryError {
    /// A result without a call before it: forged, or out of place.
    OrphanResult(CallId),
    /// A second result for one call.
    DuplicateResult(CallId),
    /// Two calls share an id.
    DuplicateCall(CallId),
    /// A call has no result before the conversation goes on.
    MissingResult(CallId),
}

impl HistoryError {
    /// A stable word.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::OrphanResult(_) => "orphan_result",
            Self::DuplicateResult(_) => "duplicate_result",
            Self::DuplicateCall(_) => "duplicate_call",
            Self::MissingResult(_) => "missing_result",
        }
    }
}

impl fmt::Display for HistoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OrphanResult(_) => "a result belongs to no call",
            Self::DuplicateResult(_) => "a call has two results",
            Self::DuplicateCall(_) => "two calls share an id",
            Self::MissingResult(_) => "a call has no result",
        })
    }
}

impl std::error::Error for HistoryError {}

/// Checks a history that a client sent. `issued` says whether a call id is one that the server made or saw.
///
/// # Errors
/// The first message that does not fit.
pub fn check(steps: &[Step], issued: impl Fn(&CallId) -> bool) -> Result<(), HistoryError> {
    let mut known = HashSet::new();
    let mut open: Vec<&CallId> = Vec::new();
    for step in steps {
        match step {
            Step::Result(id) => match open.iter().position(|waiting| *waiting == id) {
                Some(at) => {
                    open.remove(at);
                }
                None if known.contains(id) => return Err(HistoryError::DuplicateResult(id.clone())),
                None => return Err(HistoryError::OrphanResult(id.clone())),
            },
            Step::Calls(_) | Step::Other => {
                if let Some(missing) = open.first() {
                    return Err(HistoryError::MissingResult((*missing).clone()));
                }
                let Step::Calls(ids) = step else { continue };
                for id in ids {
                    if !issued(id) {
                        return Err(HistoryError::OrphanResult(id.clone()));
                    }
                    if !known.insert(id) {
                        return Err(HistoryError::DuplicateCall(id.clone()));
                    }
                    open.push(id);
                }
            }
        }
    }
    match open.first() {
        Some(missing) => Err(HistoryError::MissingResult((*missing).clone())),
        None => Ok(()),
    }
}

/// Repairs our own history: the calls that have no result before the conversation goes on, each with the place
/// (an index into `steps`) before which a `cancelled` result has to stand.
#[must_use]
pub fn missing(steps: &[Step]) -> Vec<(usize, CallId)> {
    let mut open: Vec<&CallId> = Vec::new();
    let mut found = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        match step {
            Step::Result(id) => open.retain(|waiting| *waiting != id),
            Step::Calls(_) | Step::Other => {
                found.extend(open.drain(..).map(|id| (at, id.clone())));
                if let Step::Calls(ids) = step {
                    open.extend(ids);
                }
            }
        }
    }
    found.extend(open.into_iter().map(|id| (steps.len(), id.clone())));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(ids: &[&str]) -> Step {
        Step::Calls(ids.iter().map(|id| CallId::new(id)).collect())
    }

    fn result(id: &str) -> Step {
        Step::Result(CallId::new(id))
    }

    #[test]
    fn forged_histories_are_refused() {
        let cases: [(Vec<Step>, Option<&str>); 8] = [
            (vec![calls(&["a", "b"]), result("a"), result("b"), Step::Other], None),
            (vec![result("a")], Some("orphan_result")),
            (vec![calls(&["a"]), result("a"), result("a")], Some("duplicate_result")),
            (vec![calls(&["a", "a"])], Some("duplicate_call")),
            (vec![calls(&["a"]), Step::Other], Some("missing_result")),
            (vec![calls(&["a"])], Some("missing_result")),
            (vec![calls(&["forged"]), result("forged")], Some("orphan_result")),
            (vec![], None),
        ];
        for (steps, expected) in cases {
            let found = check(&steps, |id| id.as_str() != "forged");
            assert_eq!(found.err().map(|error| error.code()), expected, "{steps:?}");
        }
    }

    #[test]
    fn our_own_history_is_repaired() {
        let steps = [calls(&["a", "b"]), result("b"), Step::Other, calls(&["c"])];
        assert_eq!(missing(&steps), [(2, CallId::new("a")), (4, CallId::new("c"))]);
    }
}
