//! Reach: whether the server of a discovered tool answers, and still publishes what the policy pins.

use std::time::Duration;

use crate::call::{Bounds, Cause, Decision, Outcome, Verdict};
use crate::catalog::Entry;
use crate::registration::NotReady;
use crate::runner::ending::Stop;
use crate::runner::invoke;
use crate::runner::open::OpenCall;

/// Looks at the tool's server, before anything of the call begins. Every other tool is there.
pub(in crate::runner) async fn reach(
    open: &mut OpenCall,
    entry: &Entry,
    timeout: Option<Duration>,
) -> Result<(), Stop> {
    let Some(server) = &entry.published else { return Ok(()) };
    let bounds = Bounds::new(timeout, &open.run().options().cancellation);
    // The server's own limits of time hold, and the call's where it has one.
    let failed = |why: String| Err(Stop::new(Outcome::ConnectionFailed).reason(why, None));
    match invoke::contained(server.ready(), &bounds).await {
        Ok(Ok(())) => {}
        Ok(Err(NotReady(why))) => return failed(why),
        Err(interrupted) if interrupted.cause == Cause::Cancelled => return Err(Stop::new(Outcome::Cancelled)),
        Err(interrupted) => return failed(format!("the server was looked at, and {interrupted}")),
    }
    if entry.subject().pin.is_some() {
        return Ok(());
    }
    let rule = format!("tools.{}.pin", entry.spec.name).into();
    open.draft.decided(Some(Decision { verdict: Verdict::Deny, rule }));
    Err(Stop::new(Outcome::PolicyDenied).reason("the server publishes another definition of the tool, or none", None))
}
