//! Tools that are built at run time: [`DynamicTool`] with a [`DynamicHandler`]. Tools of [`#[tool]`](macro@crate::tool)
//! register themselves.

// `Behaviour` and `Instance` erase the type of a tool, whether authored or dynamic. Only their implementation in `shim`
// is compiled once for each tool.

pub(crate) mod authored;
pub(crate) mod definition;
mod dynamic;
mod graph;
mod handled;
mod published;
mod server;
mod shim;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub(crate) use authored::Registration;
pub(crate) use definition::{Checked, Described, Schemas};
pub use dynamic::DynamicTool;
pub(crate) use graph::GraphDeclaration;
pub use handled::DynamicHandler;
#[cfg(feature = "mcp-client")]
pub(crate) use handled::{AccountHandler, OnAccount};
pub(crate) use published::{NotReady, Published};
pub(crate) use server::ToolServer;

use crate::call::{PendingGraph, Violation};
use crate::capability::{Capabilities, Requirement};
use crate::component::{Bindings, Precondition};
use crate::error::ToolError;
use crate::json::{DeError, Tree};
use crate::redact::{ProjectError, Projected, Projector};

/// A tool without its type: it returns its requirements, and parses arguments into an [`Instance`].
pub(crate) trait Behaviour: Send + Sync {
    fn requirements(&self) -> Vec<Requirement>;
    fn instantiate(&self, arguments: &Tree<'_>) -> Result<Box<dyn Instance>, DeError>;

    /// Whether the tool can look up the outcome of an attempt whose end was not recorded.
    fn may_reconcile(&self) -> bool {
        false
    }

    /// Whether the tool has a precondition.
    fn states(&self) -> bool {
        false
    }
}

/// The future of a running tool. It yields the output, written through the allowlist (projected).
pub(crate) type Running = Pin<Box<dyn Future<Output = Result<Projected, RunFailure>> + Send>>;

/// The future of a tool's precondition.
pub(crate) type Stating = Pin<Box<dyn Future<Output = Result<Precondition, ToolError>> + Send>>;

/// A tool with its arguments, ready to run once.
pub(crate) trait Instance: Send {
    /// Runs the author's `validate` hook.
    fn validate(&self) -> Result<(), Violation> {
        Ok(())
    }

    /// Starts the tool; `None` if one of its capabilities is unbound. The output is written through the allowlist
    /// inside the future, so that the unredacted form never leaves it.
    fn run(
        self: Box<Self>,
        purpose: Purpose,
        bindings: Bindings<'_>,
        projector: Arc<Projector>,
        max_bytes: usize,
    ) -> Option<Running>;

    /// Starts the precondition of the call. `None` if the tool has no precondition; see [`Behaviour::states`].
    fn precondition(self: Box<Self>, capabilities: Capabilities) -> Option<Stating> {
        drop(capabilities);
        None
    }
}

/// The purpose of starting a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To do its work.
    Work,
    /// To reconcile an earlier attempt.
    Reconcile,
}

/// The reason why the execution of a tool returned no value.
pub(crate) enum RunFailure {
    /// An earlier attempt had no effect and cannot have one.
    Prevented,
    /// The outcome of an earlier attempt is unknown.
    Unknown,
    Tool(ToolError),
    /// The server of the tool gave no answer while the tool ran, so it is unknown whether the tool took effect.
    Lost(ToolError),
    /// The server refused the account, and did nothing.
    Unauthorized(ToolError),
    Output(ProjectError),
    /// The tool is a graph (an agent or a script that runs as a tool), and one of its calls waits for a person.
    Waits(Box<PendingGraph>),
}

impl RunFailure {
    /// Returns the failure of a graph that cannot continue because of an error in the library. If the graph has begun
    /// calls, its outcome is unknown, so that the model does not repeat the call.
    pub(crate) fn broken(error: impl Into<Box<dyn std::error::Error + Send + Sync>>, begun: bool) -> Self {
        let error = ToolError::internal(error);
        if begun { Self::Lost(error) } else { Self::Tool(error) }
    }
}
