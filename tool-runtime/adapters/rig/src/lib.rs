//! The tools of [tool-runtime](https://docs.rs/tool-runtime) as tools of [rig](https://docs.rs/rig-core).
//!
//! rig keeps the conversation, and [`tools`] converts the tools of a [`Run`]. The run decides, runs, redacts and
//! records each call.
//!
//! ```
//! use rig_core::tool::DynamicTool;
//! use tool_runtime::{RunOptions, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};
//!
//! /// Adds two numbers.
//! #[tool(name = "math__add", effect = read_only, redact = ["$"])]
//! fn add(
//!     /// The first.
//!     a: i64,
//!     /// The second.
//!     b: i64,
//! ) -> Result<i64, ToolError> {
//!     Ok(a + b)
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let catalog = ToolCatalog::builder().tool::<add>().build()?;
//! let runner = ToolRunner::builder(catalog, ToolPolicy::allow(["math__add"])).build()?;
//! let tools: Vec<DynamicTool> = tool_runtime_rig::tools(&runner.run(RunOptions::new().principal("ada")));
//! assert_eq!(tools[0].name().as_str(), "math__add");
//! # Ok(())
//! # }
//! ```
//!
//! rig parses a model's arguments before this package gets them. Its parser drops some mistakes, such as a repeated key
//! or the last digits of a long number, so the gate cannot refuse these. If a call waits for a person or a client, the
//! model gets a refusal; [`Run::resume`] finishes the call later, outside rig's conversation.

use rig_core::message::ToolName;
use rig_core::tool::{DynamicTool, ToolErrorKind, ToolExecutionError, ToolOutput};
use serde_json::Value;

use tool_runtime::call::CallId;
use tool_runtime::{Outcome, Run, ToolCall, ToolExecResult, ToolSpec};

/// Returns the tools that the run may use. Every call goes through the run's gate.
#[must_use]
pub fn tools(run: &Run) -> Vec<DynamicTool> {
    run.catalog().specs().filter_map(|spec| tool(run, spec)).collect()
}

/// Converts a tool. `None` for an empty name or a schema that is not JSON, which no tool of a catalog has.
fn tool(run: &Run, spec: &ToolSpec) -> Option<DynamicTool> {
    let rig_name = ToolName::new(spec.name.as_str()).ok()?;
    let schema = serde_json::from_str(spec.input_schema.as_str()).ok()?;
    let (run, name) = (run.clone(), spec.name.to_string());
    Some(DynamicTool::new(rig_name, spec.description.to_string(), schema, move |arguments: Value| {
        // rig does not pass on the provider's id of the call.
        let call = ToolCall::object(CallId::generate(), name.clone(), arguments.to_string());
        let result = run.exec(call);
        Box::pin(async move { answer(&result.await) })
    }))
}

/// Returns the result for rig. A file appears as text or is described in a sentence, because some of rig's providers
/// refuse an image in a result, others omit it, and rig's telemetry writes it into spans. An error has the outcome's
/// code, for rig's own policies.
fn answer(result: &ToolExecResult) -> Result<ToolOutput, ToolExecutionError> {
    if result.is_ok() {
        return Ok(ToolOutput::text(result.to_model_text()));
    }
    let outcome = result.outcome();
    let error = match kind(outcome) {
        ToolErrorKind::PermissionDenied => ToolExecutionError::refused(result.to_model()),
        kind => ToolExecutionError::new(kind, result.to_model()),
    };
    // rig must not retry a call whose effect may have begun.
    Err(error.with_code(outcome.code()).with_retryable(false))
}

const fn kind(outcome: Outcome) -> ToolErrorKind {
    match outcome {
        Outcome::InvalidJson | Outcome::ValidationError | Outcome::InstantiateFailed | Outcome::IncompleteCall => {
            ToolErrorKind::InvalidArgs
        }
        Outcome::Unavailable => ToolErrorKind::NotFound,
        Outcome::PolicyDenied
        | Outcome::ApprovalRequired
        | Outcome::ApprovalDenied
        | Outcome::ApprovalMismatch
        | Outcome::ApprovalExpired
        | Outcome::ClientRequired => ToolErrorKind::PermissionDenied,
        Outcome::Timeout => ToolErrorKind::Timeout,
        Outcome::Cancelled => ToolErrorKind::Cancelled,
        _ => ToolErrorKind::Other,
    }
}
