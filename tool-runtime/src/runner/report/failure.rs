//! [`Failure`]: the full reason of a failure, for operators.

use std::fmt;
use std::sync::Arc;

use crate::call::CallId;
use crate::contain::{caught, discard};

/// A failure of a tool, a connection, a store, a model, or another part of the application. The sink of
/// [`RunnerBuilder::failures`](crate::runner::RunnerBuilder::failures) receives it.
///
/// The text can contain values, so records, events, logs and models never receive it. A log line has the code, the
/// tool, the ids and the type of the error.
///
/// ```
/// use tool_runtime::{RunOptions, ToolCall, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};
///
/// /// Reads the archive.
/// #[tool(name = "archive__read", effect = read_only, redact = ["$"])]
/// fn read() -> Result<String, ToolError> {
///     Err(ToolError::internal("disk 7 is gone"))
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let (sender, failures) = std::sync::mpsc::channel();
/// let catalog = ToolCatalog::builder().tool::<read>().build()?;
/// let runner = ToolRunner::builder(catalog, ToolPolicy::allow(["archive__read"]))
///     .failures(move |failure| drop(sender.send((failure.code.to_owned(), failure.text.to_owned()))))
///     .build()?;
/// let result = runner.run(RunOptions::new()).exec(ToolCall::text("call_1", "archive__read", "{}")).await;
/// assert!(!result.to_model().contains("disk 7"));
/// assert_eq!(failures.recv()?, ("execution_error".to_owned(), "disk 7 is gone".to_owned()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Failure<'a> {
    /// The stable code of an outcome (such as `execution_error`), of a store's error (such as `store_unavailable`) or
    /// of a model's error, or one of these: `part_panicked` for a panic in a store, clock, validator, repairer, broker
    /// or sink of the application; `name_unavailable` for a failed look-up of an argument's name; `decider_tenant` for
    /// a decision from another tenant; `other_version` for a worker that skips runs of another version.
    pub code: &'a str,
    /// The tool, if the failure belongs to a call.
    pub tool: Option<&'a str>,
    /// The call, if the failure belongs to one.
    pub call_id: Option<&'a CallId>,
    /// The run, if the failure belongs to one.
    pub run_id: Option<&'a str>,
    /// The session of the run.
    pub session_id: Option<&'a str>,
    /// The conversation of the run.
    pub conversation_id: Option<&'a str>,
    /// The name of the error's type, where it is known.
    pub error_type: Option<&'static str>,
    /// Whether a record could not be kept, so that the store lacks an event that happened.
    pub is_record_lost: bool,
    /// The error and its causes, or the message of the panic; at most 16 KiB.
    pub text: &'a str,
}

impl<'a> Failure<'a> {
    /// Creates a failure that belongs to no run.
    pub(in crate::runner) const fn of_none(code: &'a str, text: &'a str) -> Self {
        Self {
            code,
            tool: None,
            call_id: None,
            run_id: None,
            session_id: None,
            conversation_id: None,
            error_type: None,
            is_record_lost: false,
            text,
        }
    }
}

// `text` can contain values.
impl fmt::Debug for Failure<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failure")
            .field("code", &self.code)
            .field("tool", &self.tool)
            .field("call_id", &self.call_id)
            .field("run_id", &self.run_id)
            .field("error_type", &self.error_type)
            .finish_non_exhaustive()
    }
}

/// The closure of the application that receives failures.
pub(in crate::runner) type FailureSink = Arc<dyn Fn(&Failure<'_>) + Send + Sync>;

/// The sink of a runner, if the application set one.
#[derive(Clone, Default)]
pub(in crate::runner) struct Failures(pub(in crate::runner) Option<FailureSink>);

impl Drop for Failures {
    fn drop(&mut self) {
        discard(self.0.take());
    }
}

impl Failures {
    /// Logs a failure once, without its text, and passes the whole failure to the sink.
    #[cold]
    pub(in crate::runner) fn report(&self, what: fmt::Arguments<'_>, failure: &Failure<'_>) {
        tracing::error!(
            code = failure.code,
            tool = failure.tool,
            // Recorded as a string, which subscribers escape, because the model chose the id.
            call = failure.call_id.map(CallId::as_str),
            run = failure.run_id,
            session = failure.session_id,
            conversation = failure.conversation_id,
            error.r#type = failure.error_type,
            "{what}"
        );
        if let Some(sink) = &self.0
            && caught(|| sink(failure)).is_none()
        {
            tracing::error!(code = failure.code, "the failure sink panicked");
        }
    }

    /// Reports a panic in a part of the application: `part` is its name, `text` the panic's message.
    #[cold]
    pub(in crate::runner) fn panicked(&self, part: &'static str, text: &str) {
        let text = format!("{part}: {text}");
        let failure = Failure::of_none("part_panicked", &text);
        self.report(format_args!("a part of the application panicked: {part}"), &failure);
    }
}
