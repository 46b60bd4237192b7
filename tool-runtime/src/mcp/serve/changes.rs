//! Changes of the list, for clients that ask to hear of them (`subscriptions/listen`).
//!
//! A catalog does not change, and neither does what a run may see. Where a catalog has tools of servers, though, what a
//! later run may see does: since 2026-07-28 each request over HTTP is a run of its own.

use std::time::Duration;

use rmcp::model::ErrorData;
use rmcp::service::SubscriptionContext;
use tokio::time::sleep;

use crate::mcp::serve::Served;
use crate::mcp::serve::handler::full;
use crate::runner::RunOptions;

/// How often is looked.
const INTERVAL: Duration = Duration::from_secs(1);

/// Says when what the party may see changes, until the client cancels it or the server closes. `is_one_run` is true for a
/// connection whose list stays as it is.
pub(super) async fn listen(
    served: &Served,
    party: &RunOptions,
    context: &SubscriptionContext,
    is_one_run: bool,
) -> Result<(), ErrorData> {
    let _room = served.calls.listen().map_err(full)?;
    let catalog = served.runner.catalog();
    let seen = || {
        let run = served.runner.run(party.clone());
        run.catalog().specs().map(|spec| spec.name.clone()).collect::<Vec<_>>()
    };
    // Counted first, so that a change in between is one.
    let (mut changes, mut known) = (catalog.changes(), seen());
    loop {
        tokio::select! {
            () = context.cancelled() => return Ok(()),
            () = served.calls.closing().cancelled() => return Ok(()),
            () = sleep(INTERVAL), if !is_one_run => {}
        }
        let now = catalog.changes();
        if now == changes {
            continue;
        }
        changes = now;
        let now = seen();
        // A client that is gone cancels it.
        if now != known && context.sink().notify_tool_list_changed().await.is_ok() {
            known = now;
        }
    }
}
