//! `audit`: lists, checks and exports records, and anchors their chains: each record has the hash of the record before
//! it in its run, and an anchor has the last hash of each run with new records.

mod lines;
mod open;
mod retention;
mod verify;

pub(crate) use verify::exported;

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use tool_runtime::store::{Anchor, AuditRecord, DecisionKind, Finding, RecordFilter, SealedRecord, Store};
use tool_runtime::{Outcome, ToolInvocationRecord};

use crate::audit::lines::lines;
use crate::exit::{Exit, Failure};
use crate::session::Cli;
use crate::terminal::json;
use crate::{table, terminal, values};

#[derive(Debug, Subcommand)]
pub(crate) enum Audit {
    /// List records, oldest first; --principal and --tenant narrow the list, too
    Show {
        #[command(flatten)]
        source: RecordInput,
        #[command(flatten)]
        which: RecordArgs,
    },
    /// List calls that began and have no record of their end: they still run, or their process ended
    Open {
        /// Only calls of this run
        #[arg(long, value_name = "ID")]
        run: Option<String>,
    },
    /// Check the chains of all runs and their anchors, and report up to a thousand problems
    Verify {
        #[command(flatten)]
        source: RecordInput,
        /// Exported anchors, as JSON lines; each must be unchanged
        #[arg(long, value_name = "FILE")]
        anchors: Option<PathBuf>,
        /// Accept runs whose first records are not in the file
        #[arg(long, requires = "records")]
        part: bool,
        /// Accept purges and erasures that were signed with the key of this id, which is not here: it was rotated, or
        /// the records are in a file. Repeatable
        #[arg(long = "accept-key", value_name = "ID")]
        accepted: Vec<String>,
    },
    /// Print records as JSON lines, which `audit verify --records` checks
    Export {
        #[command(flatten)]
        source: RecordInput,
        #[command(flatten)]
        which: RecordArgs,
        /// Print the anchors instead
        #[arg(long, conflicts_with_all = ["records", "RecordArgs"])]
        anchors: bool,
    },
    /// Anchor the records since the last anchor, and print the new anchors as JSON lines
    Anchor,
    /// Remove old runs: records, calls of the ledger, conversations. A signed record of each removal stays
    Purge(retention::Purge),
    /// Erase the data of --principal in --tenant, in place; the chains verify as before
    Erase {
        /// Erase the data in the runs without a tenant
        #[arg(long)]
        no_tenant: bool,
        #[command(flatten)]
        by: retention::By,
    },
    /// Put, list and lift legal holds
    Hold {
        #[command(subcommand)]
        action: retention::Hold,
    },
}

/// The source of the records.
#[derive(Debug, Args)]
pub(crate) struct RecordInput {
    /// Exported records, as JSON lines; `-` is standard input. By default the records of --store,
    /// or of the data folder
    #[arg(long, value_name = "FILE")]
    pub(crate) records: Option<PathBuf>,
}

/// The selected records.
#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// Only records of this run
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    /// Only records of calls of this tool
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Only records with this outcome, such as `ok` or `policy_denied`, or this decision, such as `approved`
    #[arg(long, value_name = "CODE", value_parser = code)]
    outcome: Option<String>,
    /// Only decisions by this principal
    #[arg(long, value_name = "NAME")]
    decider: Option<String>,
    /// Only calls that ended and decisions made at this time or later: 2026-01-31, or with a time as in
    /// 2026-01-31T08:00:00Z
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<Timestamp>,
    /// Only calls that ended and decisions made before this time
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<Timestamp>,
    /// Only records of this kind: call or decision
    #[arg(long, value_name = "KIND", value_parser = is_decision)]
    kind: Option<bool>,
    /// The maximum number of records; 1000 by default for a table
    #[arg(long, value_name = "N", value_parser = values::at_least_one)]
    limit: Option<usize>,
}

impl RecordArgs {
    /// Returns the filter, with the principal and the tenant of the command line.
    pub(crate) fn filter(self, principal: Option<&str>, tenant: Option<&str>) -> RecordFilter {
        RecordFilter {
            run_id: self.run.map(Arc::from),
            decisions: self.kind,
            tool: self.tool.map(Arc::from),
            code: self.outcome.map(Arc::from),
            principal: principal.map(Arc::from),
            tenant: tenant.map(Arc::from),
            decider: self.decider.map(Arc::from),
            since: self.since,
            until: self.until,
            limit: self.limit,
            ..RecordFilter::default()
        }
    }
}

fn code(text: &str) -> Result<String, String> {
    let outcomes = Outcome::ALL.iter().map(|outcome| outcome.code());
    let decisions = DecisionKind::ALL.iter().map(|decision| decision.code());
    let known: Vec<_> = outcomes.chain(decisions).chain(REMOVALS).collect();
    if known.contains(&text) { Ok(text.to_owned()) } else { Err(format!("write one of {}", known.join(", "))) }
}

/// The codes of removals and legal holds.
const REMOVALS: [&str; 4] = ["purged", "erased", "hold_put", "hold_lifted"];

fn is_decision(text: &str) -> Result<bool, String> {
    match text {
        "call" => Ok(false),
        "decision" => Ok(true),
        _ => Err("write call or decision".to_owned()),
    }
}

fn time(text: &str) -> Result<Timestamp, String> {
    // The length is checked because jiff also parses a date from a text with a time, and would drop the time.
    let day = || {
        let day = text.parse::<jiff::civil::Date>().ok().filter(|_| text.len() == "2026-01-31".len())?;
        day.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|day| day.timestamp())
    };
    let wrong = "write a day, such as 2026-01-31, or a time with its offset, such as 2026-01-31T08:00:00Z";
    text.parse().ok().or_else(day).ok_or_else(|| wrong.to_owned())
}

/// The number of records that are read at a time.
const PAGE: usize = 500;
/// The default maximum number of rows of a table.
const ROWS: usize = 1000;

pub(super) async fn audit(cli: &Cli<'_>, action: Audit) -> Result<Exit, Failure> {
    match action {
        Audit::Show { source, which } => show(cli, &source, which).await,
        Audit::Open { run } => open::open(cli, run).await,
        Audit::Verify { source, anchors, part, accepted } => {
            verify::check(cli, &source, verify::With { anchors, part, accepted }).await
        }
        Audit::Export { anchors: true, .. } => export_anchors(cli).await,
        Audit::Export { source, which, .. } => each(cli, &source, filter(cli, which), print).await,
        Audit::Purge(asked) => retention::purge(cli, asked).await,
        Audit::Erase { no_tenant, by } => retention::erase(cli, no_tenant, &by).await,
        Audit::Hold { action } => retention::hold(cli, action).await,
        Audit::Anchor => {
            let (store, mut printed) = (store(cli).await?, Ok(()));
            let print = |anchor: &Anchor| match json(anchor) {
                Ok(line) => terminal::line(&line),
                Err(failure) => printed = Err(failure),
            };
            let made = store.anchor(print).await?;
            printed?;
            if made == 0 {
                terminal::note("nothing was recorded since the last anchor");
            }
            Ok(Exit::Done)
        }
    }
}

/// Returns the store that has the records of earlier commands, for a command that could also read them from a file.
async fn store_or_file(cli: &Cli<'_>) -> Result<Arc<dyn Store>, Failure> {
    cli.existing_records("`--store URL` or `--records FILE`").await
}

/// Returns the store that has the records of earlier commands.
async fn store(cli: &Cli<'_>) -> Result<Arc<dyn Store>, Failure> {
    cli.existing_records("`--store URL`").await
}

fn filter(cli: &Cli<'_>, which: RecordArgs) -> RecordFilter {
    let named = &cli.settings.named;
    which.filter(named.principal.as_deref(), named.tenant.as_deref())
}

fn print(sealed: &SealedRecord) -> Result<(), Failure> {
    terminal::line(&json(sealed)?);
    Ok(())
}

/// Passes all selected records to a callback. Records of a store are read in pages; an unreadable one is reported on
/// stderr, and the command fails at its end. An unreadable line of a file ends the command.
async fn each(
    cli: &Cli<'_>,
    source: &RecordInput,
    mut filter: RecordFilter,
    mut take: impl FnMut(&SealedRecord) -> Result<(), Failure>,
) -> Result<Exit, Failure> {
    let mut left = filter.limit.unwrap_or(usize::MAX);
    if let Some(path) = &source.records {
        lines(path, |sealed| match left.checked_sub(usize::from(filter.matches(&sealed.record))) {
            Some(now) if now < left => {
                left = now;
                take(&sealed)
            }
            _ => Ok(()),
        })?;
        return Ok(Exit::Done);
    }
    let (store, mut exit) = (store_or_file(cli).await?, Exit::Done);
    while left > 0 {
        filter.limit = Some(left.min(PAGE));
        let Some(records) = filter.next_page(&*store).await? else { break };
        for record in records {
            match record {
                Ok(sealed) => {
                    take(&sealed)?;
                    left -= 1;
                }
                Err(unreadable) => {
                    terminal::broken(&unreadable);
                    exit = Exit::Failed;
                }
            }
        }
    }
    Ok(exit)
}

async fn show(cli: &Cli<'_>, source: &RecordInput, which: RecordArgs) -> Result<Exit, Failure> {
    let mut filter = filter(cli, which);
    if cli.settings.json {
        return each(cli, source, filter, print).await;
    }
    let most = filter.limit.unwrap_or(ROWS);
    // Read one record more than the table shows, to find out whether there are more.
    filter.limit = Some(most.saturating_add(1));
    let mut rows = Vec::new();
    let exit = each(cli, source, filter, |sealed| {
        rows.push(row(sealed));
        Ok(())
    })
    .await?;
    if rows.is_empty() {
        terminal::note("no record");
        return Ok(exit);
    }
    let has_more = rows.len() > most;
    rows.truncate(most);
    table::print(["TIME", "TOOL", "OUTCOME", "PRINCIPAL", "RUN", "NO", "DECIDED BY", "CALL"], &rows);
    if has_more {
        terminal::note(&format!("these are the first {most}; --limit shows more, --since later ones"));
    }
    Ok(exit)
}

fn row(sealed: &SealedRecord) -> [String; 8] {
    let record = &sealed.record;
    let (code, decider) = match (record, record.as_decision()) {
        (AuditRecord::Retention(retention), _) => {
            let count = retention.records();
            let code = if count == 0 { record.code().to_owned() } else { format!("{} ({count})", record.code()) };
            (code, Some(retention.by.principal().to_owned()))
        }
        (_, Some(decision)) => {
            let why = decision.mismatch().map(|why| format!(": {}", why.code())).unwrap_or_default();
            let refused = decision.refused().map(|outcome| format!(" ({outcome}{why})"));
            let counted = decision.approvals.map(|(given, required)| format!(" ({given} of {required})"));
            let decider = decision.decider.as_ref().map(|decider| decider.principal().to_owned());
            let (counted, refused) = (counted.unwrap_or_default(), refused.unwrap_or_default());
            let prefix = if decision.refused().is_some() { "refused: " } else { "" };
            (format!("{prefix}{}{counted}{refused}", record.code()), decider)
        }
        _ => {
            let earlier = record.as_call().and_then(ToolInvocationRecord::earlier_call);
            let earlier = earlier.map(|(run, call)| format!(" (of {run}/{call})")).unwrap_or_default();
            (format!("{}{earlier}", record.code()), None)
        }
    };
    [
        format!("{:.0}", record.at()),
        record.tool().to_owned(),
        code,
        record.principal().map(ToString::to_string).unwrap_or_default(),
        record.run_id().to_string(),
        sealed.sequence.to_string(),
        decider.unwrap_or_default(),
        record.call_id().to_string(),
    ]
    .map(|cell| terminal::safe(&cell))
}

/// Prints all anchors. Reports an unreadable anchor on stderr; the command then fails at its end.
async fn export_anchors(cli: &Cli<'_>) -> Result<Exit, Failure> {
    let (store, mut exit, mut printed) = (store(cli).await?, Exit::Done, Ok(()));
    let print = |read: Result<Anchor, Finding>| match read.map(|anchor| json(&anchor)) {
        Ok(Ok(line)) => terminal::line(&line),
        Ok(Err(failure)) => printed = Err(failure),
        Err(finding) => {
            terminal::broken(&finding);
            exit = Exit::Failed;
        }
    };
    store.anchors(print).await?;
    printed?;
    Ok(exit)
}

#[cfg(test)]
mod tests {
    use tool_runtime::{RunOptions, ToolCatalog, ToolError, ToolPolicy, testing, tool};

    use super::*;

    /// Pays a refund.
    #[tool(name = "audit__refund", effect = external_side_effect, redact = ["$"], once = "refund:{payment}")]
    fn refund(
        /// The payment.
        payment: String,
    ) -> Result<String, ToolError> {
        Ok(payment)
    }

    #[test]
    fn the_result_of_an_earlier_call_is_marked() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let rows: Vec<_> = runtime.block_on(async {
            let catalog = ToolCatalog::builder().tool::<refund>().build().expect("a catalog");
            let options = RunOptions::new().principal("ada").run_id("run-1");
            let policy = ToolPolicy::allow(["audit__refund"]);
            let harness = testing::harness(catalog).policy(policy).options(options);
            for _ in 0..2 {
                harness.call("audit__refund", serde_json::json!({ "payment": "p" })).await.assert_outcome("ok");
            }
            let records = harness.runner().store().records(&RecordFilter::default()).await.expect("records");
            records.iter().map(row).collect()
        });
        assert_eq!(rows.iter().map(|row| &*row[2]).collect::<Vec<_>>(), ["ok", "ok (of run-1/call_1)"]);
    }

    #[test]
    fn days_begin_at_midnight() {
        assert_eq!(time("2026-01-31").unwrap().to_string(), "2026-01-31T00:00:00Z");
        assert_eq!(time("2026-01-31T08:00:00+01:00").unwrap().to_string(), "2026-01-31T07:00:00Z");
        for wrong in ["", "yesterday", "2026-02-30", "2026-01-31T08:00:00", "08:00"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn outcomes_and_decisions_are_known() {
        for known in ["ok", "outcome_unknown", "approved", "remembered", "client_failed"] {
            assert_eq!(code(known).as_deref(), Ok(known));
        }
        assert!(code("allowed").is_err() && is_decision("grant").is_err());
    }
}
