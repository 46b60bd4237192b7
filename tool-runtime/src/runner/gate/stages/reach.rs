//! Reach: checks that the server of a discovered tool answers and still publishes the definition that the policy pins.

use std::time::Duration;

use crate::call::{Bounds, Cause, Decision, Ends, Outcome, Verdict};
use crate::catalog::Entry;
use crate::registration::{NotReady, Published};
use crate::runner::gate::ending::Stop;
use crate::runner::gate::invoke;
use crate::runner::gate::open::OpenCall;
use crate::runner::gate::stages::StageFuture;

/// The message of `connection_failed` for a tool without an account.
const NO_ANSWER: &str = "The server of this tool does not answer. The user can do nothing about it: try again later.";

/// Checks the tool's server before the call begins. `None` for a tool without a server.
#[inline]
pub(in crate::runner) fn reach<'a>(
    open: &'a mut OpenCall,
    entry: &'a Entry,
    timeout: Option<Duration>,
) -> Option<StageFuture<'a, ()>> {
    let server = entry.published.as_deref()?;
    Some(Box::pin(look_at(server, open, entry, timeout)))
}

async fn look_at(
    server: &dyn Published,
    open: &mut OpenCall,
    entry: &Entry,
    timeout: Option<Duration>,
) -> Result<(), Stop> {
    let ends = Ends::default();
    let bounds = Bounds::new(timeout, open.cancellation(), &ends);
    // In addition to the timeouts of the server, the timeout of the call applies if it has one.
    let failed = |why: String| Err(Stop::new(Outcome::ConnectionFailed).message(NO_ANSWER).reason(why, None));
    match invoke::contained(server.ready(), bounds).await {
        Ok(Ok(())) => {}
        Ok(Err(NotReady(why))) => return failed(why),
        Err(interrupted) if interrupted.cause == Cause::Cancelled => return Err(Stop::new(Outcome::Cancelled)),
        Err(interrupted) => return failed(format!("the check of the server did not end: {interrupted}")),
    }
    // Read after `ready`: connecting again can replace the published definition.
    if entry.policy_resource().pin.is_some() {
        return Ok(());
    }
    let rule = format!("tools.{}.pin", entry.spec.name).into();
    open.draft.decided(Some(Decision { verdict: Verdict::Deny, rule }));
    Err(Stop::new(Outcome::PolicyDenied).reason("the server publishes another definition of the tool, or none", None))
}
