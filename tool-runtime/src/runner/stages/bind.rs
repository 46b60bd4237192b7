//! Bind: the connections that the tool borrows, and the context of the call.

use std::any::{Any, TypeId};
use std::sync::Arc;
use std::time::Duration;

use crate::call::{Bounds, Cause, ContextFields, Outcome, ToolContext};
use crate::capability::{ConnectionError, ConnectionRequest, Requirement, Source};
use crate::catalog::Entry;
use crate::contain::discard;
use crate::error::chain;
use crate::hydrate::Hydrated;
use crate::runner::ending::Stop;
use crate::runner::invoke;
use crate::runner::open::OpenCall;
use crate::runner::stages::Waiting;
use crate::runner::stages::reserve::Reserved;
use crate::tool::ToolSpec;

/// A call with everything its tool borrows.
pub(in crate::runner) struct Bound {
    pub(super) reserved: Reserved,
    pub(super) connections: Connections,
    pub(super) context: Arc<ToolContext>,
}

/// The connections of one call. The destructors of their adapters are the application's code, so a panic in one is
/// contained.
#[derive(Default)]
pub(in crate::runner) struct Connections(pub(super) Vec<Connected>);

impl Drop for Connections {
    fn drop(&mut self) {
        self.0.drain(..).for_each(discard);
    }
}

/// An `Arc<Connection<C>>` and the type id of `Connection<C>`.
pub(super) type Connected = (TypeId, Arc<dyn Any + Send + Sync>);

impl Bound {
    /// For a call that does not run now.
    pub(in crate::runner) fn into_hydrated(self) -> Hydrated {
        self.reserved.hydrated
    }
}

/// Resolves the connections of the call. `None` if its tool has none, as most.
#[inline]
pub(in crate::runner) fn connect<'a>(
    open: &'a OpenCall,
    entry: &'a Entry,
    timeout: Option<Duration>,
) -> Option<Waiting<'a, Connections>> {
    let is_connection = |requirement: &Requirement| matches!(requirement.source, Source::Connection(_));
    let any = entry.requirements.iter().any(is_connection);
    any.then(|| Box::pin(resolve_all(open, entry, timeout)) as _)
}

async fn resolve_all(open: &OpenCall, entry: &Entry, timeout: Option<Duration>) -> Result<Connections, Stop> {
    let mut connections = Connections::default();
    for requirement in &entry.requirements {
        if let Source::Connection(kind) = requirement.source {
            let connected = resolve(open, requirement, kind, &entry.spec, timeout).await?;
            connections.0.push(connected);
        }
    }
    Ok(connections)
}

/// Makes the context of the call.
#[inline]
pub(in crate::runner) fn bind(open: &OpenCall, reserved: Reserved, connections: Connections) -> Bound {
    let frozen = &reserved.hydrated.frozen;
    let context = Arc::new(ToolContext(ContextFields {
        bounds: Bounds::new(reserved.timeout, open.cancellation()),
        call: Arc::clone(frozen) as _,
    }));
    Bound { reserved, connections, context }
}

async fn resolve(
    open: &OpenCall,
    requirement: &Requirement,
    kind: &'static str,
    spec: &ToolSpec,
    timeout: Option<Duration>,
) -> Result<Connected, Stop> {
    let run = open.run();
    let options = run.options();
    let tool = spec.name.as_str();
    // The model learns whether there is something for the user to connect; operators learn why.
    let failed = |why: String| Stop::new(Outcome::ConnectionFailed).reason(why, None);
    let Some(id) = options.connections.get(kind) else {
        tracing::error!(tool, kind, wanted = requirement.name, "the run has no connection of this kind");
        let why = format!(
            "`{}` needs a connection of the kind `{kind}`, and the run has none; add `RunOptions::connection(\"{kind}\", ..)`",
            requirement.name
        );
        return Err(Stop::new(Outcome::ConnectionUnavailable).reason(why, None));
    };
    let Some(broker) = &run.shared().broker else {
        return Err(failed("the runner has no broker; add `RunnerBuilder::broker(..)`".to_owned()));
    };
    let (principal, tenant) = (options.principal.as_deref(), options.tenant.as_deref());
    let request = ConnectionRequest { kind, id, principal, tenant, tool, wanted: requirement };
    let bounds = Bounds::new(timeout, open.cancellation());
    let resolved = invoke::contained(Box::pin(broker.resolve(request)), &bounds).await;
    let handle = match resolved {
        Ok(Ok(handle)) => handle,
        Ok(Err(error)) => {
            let why = format!("the broker refused a connection of the kind `{kind}`: {}", chain(&error));
            let outcome = match &error {
                ConnectionError::Unknown | ConnectionError::Forbidden | ConnectionError::Expired => {
                    Outcome::ConnectionUnavailable
                }
                ConnectionError::Failed(_) => Outcome::ConnectionFailed,
            };
            discard(error);
            return Err(Stop::new(outcome).reason(why, Some("ConnectionError")));
        }
        Err(interrupted) if interrupted.cause == Cause::Cancelled => return Err(Stop::new(Outcome::Cancelled)),
        Err(interrupted) => {
            return Err(failed(format!("the broker gave no connection of the kind `{kind}`: {interrupted}")));
        }
    };
    if handle.type_id != requirement.type_id {
        tracing::error!(tool, kind, wanted = requirement.name, "the broker returned a handle of another trait");
        let why = format!(
            "the broker returned a handle of another trait for the kind `{kind}`; the tool borrows `{}`",
            requirement.name
        );
        discard(handle);
        return Err(failed(why));
    }
    Ok((handle.type_id, handle.value))
}
