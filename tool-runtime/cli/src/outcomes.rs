//! `outcomes`: lists and settles the calls whose outcome is unknown.

use clap::{ArgGroup, Args, Subcommand};
use serde::Serialize;
use tool_runtime::agent::RunQueue;
use tool_runtime::call::CallId;
use tool_runtime::runner::ResumeError;
use tool_runtime::store::{RecordFilter, Store};
use tool_runtime::{Outcome, Reconciled, ToolExecResult, ToolInvocationRecord};

use crate::exit::{Exit, Failure};
use crate::session::{Cli, DeciderArgs};
use crate::terminal::json;
use crate::{input, table, terminal};

#[derive(Debug, Subcommand)]
pub(crate) enum Outcomes {
    /// List the tenant's calls of unknown outcome that are not settled, oldest first
    List,
    /// Settle the outcome of a call: its effect happened, did not happen, or the tool finds out. A record names the
    /// person who settles it
    Settle(Settle),
}

/// The settlement of a call.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("outcome").required(true).args(["happened", "did_not_happen", "reconcile"])))]
pub(crate) struct Settle {
    /// The call, as `outcomes list` prints it; RUN/CALL if several calls have this id
    id: String,
    /// The call took effect, with this result: a JSON value that fits the tool's output, `-` for standard input,
    /// `@FILE` for a file
    #[arg(long, value_name = "RESULT")]
    happened: Option<String>,
    /// The call had no effect
    #[arg(long)]
    did_not_happen: bool,
    /// Let the tool reconcile the call: it asks the outside system whether the call took effect
    #[arg(long)]
    reconcile: bool,
    #[command(flatten)]
    who: DeciderArgs,
}

/// A call of unknown outcome, as `--json` prints it.
#[derive(Serialize)]
struct OutcomeRow<'a> {
    call: &'a str,
    run: &'a str,
    tool: &'a str,
    principal: Option<&'a str>,
    tenant: Option<&'a str>,
    since: String,
    cause: Option<&'static str>,
    arguments: Option<&'a tool_runtime::call::JsonText>,
    effect_key: Option<&'a str>,
}

impl<'a> OutcomeRow<'a> {
    fn of(record: &'a ToolInvocationRecord) -> Self {
        Self {
            call: record.tool_call_id.as_str(),
            run: &record.run_id,
            tool: &record.name,
            principal: record.principal.as_deref(),
            tenant: record.tenant.as_deref(),
            since: format!("{:.0}", record.ended_at.unwrap_or(record.started_at)),
            cause: record.cause(),
            arguments: record.shown_arguments(),
            effect_key: record.effect_key.as_deref(),
        }
    }

    fn cells(&self) -> [String; 7] {
        let arguments = self.arguments.map_or("", |arguments| arguments.get());
        let texts = [self.tool, self.principal.unwrap_or_default(), self.run, arguments, self.call];
        let [tool, principal, run, arguments, call] = texts.map(terminal::safe);
        let cause = self.cause.unwrap_or_default().to_owned();
        [self.since.clone(), tool, cause, principal, run, arguments, call]
    }
}

/// The settled outcome, as `--json` prints it.
#[derive(Serialize)]
struct Report<'a> {
    call: &'a str,
    run: &'a str,
    outcome: Outcome,
}

pub(super) async fn outcomes(cli: &Cli<'_>, action: Outcomes) -> Result<Exit, Failure> {
    let store = cli.existing_records("`--store URL`").await?;
    let tenant = cli.party().tenant;
    let (calls, exit) = terminal::readable(store.unsettled_calls(&RecordFilter::default()).await?);
    let (calls, foreign): (Vec<_>, Vec<_>) = calls.into_iter().partition(|record| record.tenant == tenant);
    match action {
        Outcomes::List => {
            list(cli, &calls)?;
            note_open(&*store, tenant.as_deref()).await?;
            Ok(exit)
        }
        Outcomes::Settle(asked) => Box::pin(settle(cli, &calls, &foreign, asked)).await,
    }
}

fn list(cli: &Cli<'_>, calls: &[ToolInvocationRecord]) -> Result<(), Failure> {
    let rows: Vec<_> = calls.iter().map(OutcomeRow::of).collect();
    let heading = ["SINCE", "TOOL", "CAUSE", "PRINCIPAL", "RUN", "ARGUMENTS", "CALL"];
    table::list(cli, &rows, "the outcome of every call is known or settled", heading, OutcomeRow::cells)
}

/// Prints a note about calls whose process died. The list does not contain them, because they have no end yet.
async fn note_open(store: &dyn Store, tenant: Option<&str>) -> Result<(), Failure> {
    let open = store.unfinished_calls(&RecordFilter::default()).await?;
    let theirs = open.iter().flatten().filter(|call| call.is_abandoned && call.tenant.as_deref() == tenant);
    let count = theirs.count();
    if count > 0 {
        let what = "calls whose process died before they ended";
        terminal::note(&format!("{what}: {count}; see `audit open` and `store sweep`"));
    }
    Ok(())
}

async fn settle(
    cli: &Cli<'_>,
    calls: &[ToolInvocationRecord],
    foreign: &[ToolInvocationRecord],
    asked: Settle,
) -> Result<Exit, Failure> {
    let id = &asked.id;
    let shown = terminal::safe(id);
    let is_it = |record: &&ToolInvocationRecord| {
        let call = record.tool_call_id.as_str();
        call == id || id.strip_suffix(call).and_then(|run| run.strip_suffix('/')) == Some(&*record.run_id)
    };
    let found: Vec<_> = calls.iter().filter(is_it).collect();
    let record = match found.as_slice() {
        [record] => *record,
        [] => {
            let foreign: Vec<_> = foreign.iter().filter(is_it).collect();
            if let [record] = foreign.as_slice() {
                refuse(cli, record, &asked).await?;
            }
            let text = format!("no call `{shown}` has an unknown outcome (see `outcomes list`)");
            return Err(Failure::usage(text).code("not_found"));
        }
        _ => {
            let text = format!("several calls have the id `{shown}`; write RUN/CALL");
            return Err(Failure::usage(text).code("ambiguous"));
        }
    };
    let outcome = match &asked.happened {
        Some(result) => Reconciled::TookEffect(input::json_value(result)?),
        None if asked.did_not_happen => Reconciled::Prevented,
        None => Reconciled::Unknown,
    };
    let decider = cli.decider(asked.who.decider.as_deref(), asked.who.reason.as_deref());
    if asked.who.decider.is_none() && Some(decider.principal()) == record.principal.as_deref() {
        let name = terminal::safe(decider.principal());
        return Err(Failure::usage(format!(
            "the run acts for {name}; name the person who settles the call: --as NAME"
        )));
    }
    let gate = cli.open().await?;
    let queue = RunQueue::new(&gate.runner).options(gate.connected(tool_runtime::RunOptions::new()));
    let call = CallId::new(record.tool_call_id.as_str());
    let (tenant, principal) = (record.tenant.as_deref(), record.principal.as_deref());
    let settled = queue.settle(&record.run_id, tenant, principal, &call, outcome, &decider).await;
    let result = settled.map_err(|error| match error {
        ResumeError::NotWaiting(_) => {
            Failure::usage(format!("the call `{shown}` was settled before")).code("not_found")
        }
        error => Failure::from(&error),
    })?;
    say(cli, record, &result)
}

/// Refuses to settle a call of another tenant. The run of the call records the refusal and reports it to operators. The
/// person gets the same failure as for a call that does not exist.
async fn refuse(cli: &Cli<'_>, record: &ToolInvocationRecord, asked: &Settle) -> Result<(), Failure> {
    let decider = cli.decider(asked.who.decider.as_deref(), asked.who.reason.as_deref());
    let (party, call) = (cli.party(), CallId::new(record.tool_call_id.as_str()));
    let queue = RunQueue::new(&cli.open().await?.runner);
    let (tenant, principal) = (party.tenant.as_deref(), party.principal.as_deref());
    // The result is not parsed, because an error about it would reveal that the call exists.
    let outcome = match asked.happened {
        Some(_) => Reconciled::TookEffect(String::new()),
        None if asked.did_not_happen => Reconciled::Prevented,
        None => Reconciled::Unknown,
    };
    match queue.settle(&record.run_id, tenant, principal, &call, outcome, &decider).await {
        Err(ResumeError::Store(error)) => Err(error.into()),
        _ => Ok(()),
    }
}

fn say(cli: &Cli<'_>, record: &ToolInvocationRecord, result: &ToolExecResult) -> Result<Exit, Failure> {
    let outcome = result.outcome();
    let call = terminal::safe(record.tool_call_id.as_str());
    if outcome == Outcome::ApprovalMismatch {
        let text = format!("the result does not fit the output of `{}`", terminal::safe(&record.name));
        return Err(Failure::usage(text).code(outcome.code()));
    }
    if cli.settings.json {
        let (call, run) = (record.tool_call_id.as_str(), &*record.run_id);
        terminal::line(&json(&Report { call, run, outcome })?);
    } else {
        terminal::line(&match outcome {
            Outcome::Ok => format!("settled: {call} happened"),
            Outcome::OutcomeUnknown => format!("the tool cannot tell: the outcome of {call} is still unknown"),
            _ => format!("settled: {call} did not happen"),
        });
    }
    Ok(if outcome == Outcome::OutcomeUnknown { Exit::Failed } else { Exit::Done })
}
