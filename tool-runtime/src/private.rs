//! The items that expansions of `#[tool]` and `#[capability]` name. They are not public API.
//!
//! Other crates see the module under a name that contains the version of the package, so that macros and runtime of
//! different releases fail to compile together. Nothing here hands out a [`Cap`] (a borrowed capability), a context or
//! a permit without a `Bindings`, which only the runner creates.

mod assert;
mod borrow;
mod function;
mod nullable;
mod output;
mod probe;
mod recorded;

#[cfg(test)]
#[allow(clippy::pedantic, reason = "the tools here have the shapes that authors write, good or not")]
mod tests;

use std::future::pending;
use std::panic::resume_unwind;

pub use ::{inventory, schemars, serde};

pub use crate::call::Violation;
pub use crate::capability::ConnectionKind;
pub use crate::capability::cap::Cap;
pub use crate::capability::capabilities::Capabilities;
pub use crate::capability::injected::{AllowedIn, Directly, Injected, ThroughConnection, Within};
pub use crate::capability::recording::Recorder;
pub use crate::capability::requirement::{InjectedFrom, Requirement};
pub use crate::component::bindings::Bindings;
pub use crate::component::declaration::Declaration;
pub use crate::component::list::CapabilityList;
pub use crate::component::tool::{Named, Tool, Visitor};
pub use crate::component::{Call, Precondition, Reconciled, ToolComponent};
pub use crate::error::IntoToolError;
pub use crate::error::tool_error::ToolError;
pub use crate::registration::authored::Registration;
pub use crate::registration::definition::definition;
pub use crate::tool::level::{EffectLevel, ExternalSideEffect, ReadOnly, StateChange};
pub use crate::tool::location::Location;
pub use crate::tool::spec::Execution;
pub use crate::tool::spec::NoSchemaMode;
pub use crate::tool::spec::OnceScope;
pub use assert::{
    assert_account, assert_allowed, assert_argument, assert_default, assert_described, assert_known, assert_optional,
    assert_parsed_argument, assert_reach, assert_secret_argument, assert_struct, validated,
};
pub use borrow::{BorrowProbe, NotInjected};
pub use function::{Borrowed, Called, FnTool, call, returned};
pub use nullable::nullable;
pub use output::ToolReturn;
pub use probe::{AnswerProbe, Borrows, ComponentProbe, FutureProbe, Otherwise, ReachProbe};
pub use recorded::{DebugProbe, NotDebug};
pub use tool_runtime_macros::Attributes;

/// The result of reading a definition without a catalog.
pub type Definition = Result<crate::tool::ToolSpec, crate::error::BuildError>;

/// Returns the definition of the tool that a path names.
///
/// # Errors
/// The name or a schema of the tool is not allowed.
pub fn definition_of<N: Named>() -> Definition {
    struct Define;

    impl Visitor for Define {
        type Answer = Definition;

        fn visit<T: Tool>(self) -> Definition {
            definition::<T>()
        }
    }

    N::visit(Define)
}

/// Returns the location of an attribute, from the values of `module_path!`, `file!`, `line!` and `column!` there.
#[must_use]
pub const fn location(module: &'static str, file: &'static str, line: u32, column: u32) -> Location {
    Location { krate: first_segment(module), module, file, line, column }
}

const fn first_segment(module: &'static str) -> &'static str {
    let bytes = module.as_bytes();
    let mut end = 0;
    while end < bytes.len() {
        if bytes[end] == b':' {
            return module.split_at(end).0;
        }
        end += 1;
    }
    module
}

/// Runs a blocking body on a separate thread, inside the caller's span. Its panic becomes the caller's panic.
pub async fn blocking<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> T {
    let span = tracing::Span::current();
    let error = match tokio::task::spawn_blocking(move || span.in_scope(body)).await {
        Ok(value) => return value,
        Err(error) => error,
    };
    match error.try_into_panic() {
        Ok(payload) => resume_unwind(payload),
        // The body never began, because the tokio runtime is shutting down and drops this future next.
        Err(_) => pending().await,
    }
}
