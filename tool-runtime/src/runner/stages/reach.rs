//! Reach: whether the server of a discovered tool answers, and still publishes what the policy pins.

use crate::call::{Bounds, Cause, Decision, Outcome, Verdict};
use crate::registration::NotReady;
use crate::runner::ending::Stop;
use crate::runner::invoke;
use crate::runner::open::OpenCall;
use crate::runner::stages::reserve::Reserved;

/// Looks at the tool's server, before anything of the call begins. Every other tool is there.
pub(in crate::runner) async fn reach(open: &mut OpenCall, reserved: Reserved) -> Result<Reserved, Stop> {
    let entry = &reserved.hydrated.frozen.entry;
    let Some(server) = &entry.published else { return Ok(reserved) };
    let bounds = Bounds::new(reserved.timeout, &open.run().options().cancellation);
    // The server's own limits of time hold, and the call's where it has one.
    let failed = |why: String| Err(Stop::new(Outcome::ConnectionFailed).reason(why, None));
    match invoke::contained(server.ready(), &bounds).await {
        Ok(Ok(())) => {}
        Ok(Err(NotReady(why))) => return failed(why),
        Err(interrupted) if interrupted.cause == Cause::Cancelled => return Err(Stop::new(Outcome::Cancelled)),
        Err(interrupted) => return failed(format!("the server was looked at, and {interrupted}")),
    }
    if entry.subject().pin.is_some() {
        return Ok(reserved);
    }
    let rule = format!("tools.{}.pin", entry.spec.name).into();
    open.draft.decided(Some(Decision { verdict: Verdict::Deny, rule }));
    Err(Stop::new(Outcome::PolicyDenied).reason("the server publishes another definition of the tool, or none", None))
}
