//! Bind: resolves the connections that the tool borrows, and makes the context of the call.

use std::any::{Any, TypeId};
use std::sync::Arc;
use std::time::Duration;

use crate::call::{Bounds, Cause, Ends, HydratedCall, Outcome, ToolContext, context_of};
use crate::capability::{ConnectionError, ConnectionRequest, InjectedFrom, Requirement};
use crate::catalog::Entry;
use crate::contain::discard;
use crate::error::chain;
use crate::hydrate::Hydrated;
use crate::runner::gate::ending::Stop;
use crate::runner::gate::invoke;
use crate::runner::gate::open::OpenCall;
use crate::runner::gate::stages::StageFuture;
use crate::runner::gate::stages::earlier::EarlierCall;
use crate::runner::gate::stages::reserve::Reserved;
use crate::tool::ToolSpec;

/// A call with the connections that its tool borrows.
pub(in crate::runner) struct Bound {
    pub(super) reserved: Reserved,
    pub(super) connections: Connections,
    /// An earlier call with the same effect and an unknown outcome. If it is set, the tool does not run for this call,
    /// but asks the outside system whether the earlier call took effect.
    pub(super) earlier: Option<Arc<EarlierCall>>,
}

/// The connections of one call. Catches panics in the destructors of their adapters, which are the application's code.
#[derive(Default)]
pub(in crate::runner) struct Connections(pub(in crate::runner) Vec<Connected>);

impl Drop for Connections {
    fn drop(&mut self) {
        self.0.drain(..).for_each(discard);
    }
}

/// An `Arc<Connection<C>>` and the type id of `Connection<C>`.
pub(in crate::runner) type Connected = (TypeId, Arc<dyn Any + Send + Sync>);

impl Bound {
    /// Returns the context of the call for its tool.
    pub(super) fn context(&self, open: &OpenCall) -> ToolContext {
        let call = match &self.earlier {
            Some(earlier) => Arc::clone(earlier) as Arc<dyn HydratedCall>,
            None => Arc::clone(&self.reserved.hydrated.frozen) as _,
        };
        let client = open.client.as_ref().map(|client| Arc::clone(&client.cancellation));
        context_of(call, self.reserved.timeout, client)
    }

    /// Returns the name of the tool.
    pub(super) fn tool(&self) -> &str {
        self.reserved.hydrated.frozen.entry.spec.name.as_str()
    }

    /// Returns the limits of the tool's work: its timeout, the cancellation, and the token that fires on a timeout.
    pub(super) fn bounds<'a>(&'a self, open: &'a OpenCall) -> Bounds<'a> {
        Bounds::new(self.reserved.timeout, open.cancellation(), &self.reserved.hydrated.frozen.ends)
    }

    /// Returns the hydrated call of a call that does not run now.
    pub(in crate::runner) fn into_hydrated(self) -> Hydrated {
        self.reserved.hydrated
    }
}

/// Resolves the connections of the call. `None` if its tool has none, which is the usual case.
#[inline]
pub(in crate::runner) fn connect<'a>(
    open: &'a OpenCall,
    entry: &'a Entry,
    timeout: Option<Duration>,
) -> Option<StageFuture<'a, Connections>> {
    let any = entry.requirements.iter().any(Requirement::is_connection);
    any.then(|| Box::pin(resolve_all(open, entry, timeout)) as _)
}

async fn resolve_all(open: &OpenCall, entry: &Entry, timeout: Option<Duration>) -> Result<Connections, Stop> {
    let mut connections = Connections::default();
    for requirement in &entry.requirements {
        if let InjectedFrom::Connection(kind) = requirement.source {
            let connected = resolve(open, requirement, kind, &entry.spec, timeout).await?;
            connections.0.push(connected);
        }
    }
    Ok(connections)
}

/// Adds the connections to a reserved call.
#[inline]
pub(in crate::runner) const fn bind(reserved: Reserved, connections: Connections) -> Bound {
    Bound { reserved, connections, earlier: None }
}

/// Resolves one connection of the run for the tool.
pub(in crate::runner) async fn resolve(
    open: &OpenCall,
    requirement: &Requirement,
    kind: &'static str,
    spec: &ToolSpec,
    timeout: Option<Duration>,
) -> Result<Connected, Stop> {
    let run = open.run();
    let options = run.options();
    let tool = spec.name.as_str();
    // The model learns whether the user has to connect an account; operators learn the reason.
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
    let ends = Ends::default();
    let bounds = Bounds::new(timeout, open.cancellation(), &ends);
    let resolved = invoke::contained(Box::pin(broker.resolve(request)), bounds).await;
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
