//! The types around a call: its id and arguments, context, outcome, result, record and events.
//!
//! In the order of a call: [`ToolCall`] is the call as the model wrote it. [`ToolContext`] gives the running tool its
//! ids and deadline. [`ToolExecResult`] is the result, with its [`Outcome`], and [`ToolInvocationRecord`] is the record
//! in the store. [`Event`]s report the call while it runs. A call that waits has a [`Question`] for a [`Decider`].

mod argument_change;
mod call_id;
mod client_answer;
pub(crate) mod context;
mod decider;
mod decision;
mod decision_error;
mod digest;
pub(crate) mod event;
mod file;
mod intervention;
mod json_text;
mod message;
mod named_argument;
pub(crate) mod outcome;
mod pending_graph;
mod question;
pub(crate) mod record;
mod record_seal;
pub(crate) mod result;
mod safe_error;
mod suspension;
pub(crate) mod tool_call;
pub(crate) mod usage;
mod violation;
mod world;

pub use argument_change::ArgumentChange;
pub(crate) use argument_change::ArgumentChangeKind;
pub use call_id::CallId;
pub use client_answer::ClientAnswer;
pub(crate) use context::ToolContext;
pub(crate) use context::{Bounds, Ends, HydratedCall, RunFields, context_of, ledger_key};
pub use decider::Decider;
pub use decision::{Decision, Verdict};
pub use decision_error::DecisionError;
pub use digest::{ArgumentDigest, DigestKey};
pub(crate) use event::Event;
pub(crate) use event::EventSink;
pub(crate) use intervention::Intervention;
pub use json_text::JsonText;
pub(crate) use json_text::RAW;
pub(crate) use message::NO_SUCH_TOOL;
pub use named_argument::NamedArgument;
pub(crate) use outcome::Cause;
pub(crate) use outcome::Outcome;
pub use pending_graph::PendingGraph;
pub(crate) use pending_graph::one_decider;
pub use question::Question;
pub(crate) use record::ToolInvocationRecord;
pub use record::{Caller, RunSummary};
pub(crate) use record::{RecordedArguments, RecordedRepair, RepairUse, VoidGrant};
pub(crate) use record_seal::RecordSeal;
pub(crate) use result::ToolExecResult;
pub(crate) use result::{Delivered, Failed};
pub use safe_error::SafeError;
pub use suspension::Suspension;
pub(crate) use tool_call::ToolCall;
pub(crate) use tool_call::{Arguments, IdSource, SHOWN_BYTES, shown};
pub use violation::Violation;
pub(crate) use world::{Difference, Names, RecordedWorld, Stated, World};

pub use crate::media::attachments::LeftOut;

#[cfg(test)]
mod tests;
