//! What a call is: its id and arguments, its context, its outcome, the result, the record and the events.

mod context;
mod event;
mod message;
mod outcome;
mod record;
mod result;
mod tool_call;
mod violation;

pub(crate) use context::ContextFields;
pub use context::ToolContext;
pub use event::{Event, EventSink};
pub(crate) use message::NO_SUCH_TOOL;
pub use outcome::{Cause, Outcome};
pub use record::{Caller, Decided, RecordedArguments, RunSummary, ToolInvocationRecord};
pub(crate) use result::Detail;
pub use result::{SafeError, ToolExecResult};
pub use tool_call::{Arguments, CallId, IdSource, Origin, ToolCall};
pub(crate) use tool_call::{SHOWN_BYTES, shown};
pub use violation::Violation;
