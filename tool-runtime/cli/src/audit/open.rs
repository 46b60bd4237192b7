//! `audit open`: lists calls that began and have no record of their end.

use tool_runtime::store::{RecordFilter, UnfinishedCall};

use crate::exit::{Exit, Failure};
use crate::session::Cli;
use crate::terminal::json;
use crate::{table, terminal};

/// Lists the calls that have not ended.
pub(super) async fn open(cli: &Cli<'_>, run: Option<String>) -> Result<Exit, Failure> {
    let named = &cli.settings.named;
    let party = |name: &Option<String>| name.as_deref().map(Into::into);
    let (principal, tenant) = (party(&named.principal), party(&named.tenant));
    let filter = RecordFilter { run_id: run.map(Into::into), principal, tenant, ..RecordFilter::default() };
    let (calls, exit) = terminal::readable(super::store(cli).await?.unfinished_calls(&filter).await?);
    if cli.settings.json {
        for call in &calls {
            terminal::line(&json(call)?);
        }
        return Ok(exit);
    }
    if calls.is_empty() {
        terminal::note("every call that began has its record");
        return Ok(exit);
    }
    let rows: Vec<_> = calls.iter().map(open_row).collect();
    table::print(["SINCE", "TOOL", "PRINCIPAL", "RUN", "LEASE UNTIL", "STATE", "CALL"], &rows);
    Ok(exit)
}

fn open_row(call: &UnfinishedCall) -> [String; 7] {
    let state = if call.is_abandoned { "abandoned" } else { "runs" };
    let principal = call.principal.as_deref().unwrap_or_default();
    [
        format!("{:.0}", call.since),
        terminal::safe(&call.tool),
        terminal::safe(principal),
        terminal::safe(&call.run_id),
        format!("{:.0}", call.until),
        state.to_owned(),
        terminal::safe(call.call_id.as_str()),
    ]
}
