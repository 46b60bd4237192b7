//! `approvals`: the calls that wait in saved conversations are listed, shown and decided.

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::agent::ClientAnswer;
use crate::call::{ArgumentChange, CallId, Decider, NamedArgument, Outcome, Suspension};
use crate::cli::args::{Approvals, Endpoint};
use crate::cli::attend::cancellable;
use crate::cli::call::json;
use crate::cli::chat::{self, Talk};
use crate::cli::describe::describe;
use crate::cli::exit::{Exit, Failure};
use crate::cli::saved::{Desk, Document, Kept};
use crate::cli::session::Cli;
use crate::cli::{input, table, terminal};
use crate::runner::{ApprovalDecision, RunSnapshot};
use crate::store::{Clock as _, PendingCall, SystemClock};

/// What a person decides, or what a client answers.
enum Decision {
    Approval(ApprovalDecision),
    /// The answer of the person or client that the call waits for.
    Answer(String),
}

pub(super) async fn approvals(cli: &Cli<'_>, action: Approvals) -> Result<Exit, Failure> {
    let (id, decision, by, endpoint) = match action {
        Approvals::List => return list(cli),
        Approvals::Show { id, unmask } => return show(cli, &id, unmask),
        Approvals::Approve { id, by, endpoint } => (id, Decision::Approval(ApprovalDecision::Approve), by, endpoint),
        Approvals::Edit { id, arguments, by, endpoint } => {
            let edited = ApprovalDecision::ApproveEdited(input::json_value(&arguments)?);
            (id, Decision::Approval(edited), by, endpoint)
        }
        Approvals::Deny { id, message, by, endpoint } => {
            (id, Decision::Approval(ApprovalDecision::Deny(message)), by, endpoint)
        }
        Approvals::Answer { id, output, by, endpoint } => {
            (id, Decision::Answer(input::json_value(&output)?), by, endpoint)
        }
    };
    let decider = cli.decider(by.decider.as_deref(), by.reason.as_deref());
    Box::pin(decide(cli, &id, decision, &decider, &endpoint)).await
}

/// A waiting call as `--json` prints it.
#[derive(Serialize)]
struct Row<'a> {
    id: &'a str,
    conversation: &'a str,
    title: &'a str,
    tool: &'a str,
    /// For a graph, the call that it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    waits_for: Suspension,
    rule: Option<&'a str>,
    principal: Option<&'a str>,
    tenant: Option<&'a str>,
    created_at: String,
    expires_at: String,
    /// Nobody can approve it any more.
    expired: bool,
    arguments: Arc<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    changes: &'a [ArgumentChange],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    names: &'a [NamedArgument],
}

impl<'a> Row<'a> {
    fn of((conversation, title): (&'a str, &'a str), call: &'a PendingCall) -> Self {
        let (summary, changes, names) = call.decided_explanation();
        Self {
            id: call.call_id.as_str(),
            conversation,
            title,
            tool: call.tool.as_str(),
            waits_for: call.suspension,
            path: call.graph.as_ref().map(|graph| &*graph.path),
            rule: call.decided_rule(),
            principal: call.principal.as_deref(),
            tenant: call.tenant.as_deref(),
            created_at: format!("{:.0}", call.created_at),
            expires_at: format!("{:.0}", call.expires_at),
            expired: call.expires_at <= SystemClock.now(),
            arguments: match &call.graph {
                Some(graph) => graph.shown_arguments.clone().unwrap_or_else(|| RawValue::NULL.to_owned().into()),
                None => Arc::clone(&call.shown_arguments),
            },
            summary,
            changes,
            names,
        }
    }
}

fn list(cli: &Cli<'_>) -> Result<Exit, Failure> {
    let saved = Desk::of(cli).all()?;
    let mut rows: Vec<_> = saved
        .iter()
        .flat_map(|saved| saved.document.waiting().map(|call| Row::of((&saved.id, &saved.title), call)))
        .collect();
    rows.sort_by(|one, other| one.created_at.cmp(&other.created_at));
    if cli.settings.json {
        terminal::line(&json(&rows)?);
    } else if rows.is_empty() {
        terminal::note("no call waits");
    } else {
        let cells: Vec<_> = rows
            .iter()
            .map(|row| {
                let waits_for = match row.waits_for {
                    Suspension::Approval => "a person",
                    Suspension::Client => "its client",
                };
                let expires = if row.expired { "expired" } else { &row.expires_at };
                [row.id, row.tool, waits_for, expires, row.conversation].map(terminal::safe)
            })
            .collect();
        table::print(["CALL", "TOOL", "WAITS FOR", "EXPIRES", "CONVERSATION"], &cells);
    }
    Ok(Exit::Done)
}

fn show(cli: &Cli<'_>, id: &str, unmask: bool) -> Result<Exit, Failure> {
    let (kept, document, call) = find(cli, id)?;
    let Some(call) = document.waiting().find(|waiting| waiting.call_id == call) else { return Err(unknown(id)) };
    if cli.settings.json {
        let mut row = Row::of((&kept.id, &kept.title), call);
        if unmask && let Ok(whole) = RawValue::from_string(call.arguments.as_str().to_owned()) {
            row.arguments = whole.into();
        }
        terminal::line(&json(&row)?);
        return Ok(Exit::Done);
    }
    terminal::line(&terminal::bold(&format!("{} {}", terminal::safe(call.tool.as_str()), call.call_id)));
    describe(&cli.catalog()?, call, unmask).iter().for_each(|line| terminal::line(line));
    terminal::line(&format!("   (in {}: {})", kept.id, terminal::safe(&kept.title)));
    Ok(Exit::Done)
}

/// The document and the call that an id names: a call, `CONVERSATION/CALL`, or a conversation with one waiting call.
fn find(cli: &Cli<'_>, id: &str) -> Result<(Kept, Document, CallId), Failure> {
    let desk = Desk::of(cli);
    let mut found = Vec::new();
    for saved in desk.all()? {
        for call in saved.document.waiting() {
            let full = format!("{}/{}", saved.id, call.call_id);
            if id == call.call_id.as_str() || id == saved.id || id == full {
                found.push((saved.id.clone(), call.call_id.clone(), full));
            }
        }
    }
    match found.as_slice() {
        [(conversation, call, _)] => {
            let (kept, document) = desk.open(conversation)?;
            Ok((kept, document, call.clone()))
        }
        [] => Err(unknown(id)),
        several => {
            let names: Vec<_> = several.iter().map(|(_, _, full)| terminal::safe(full)).collect();
            Err(Failure::usage(format!(
                "`{}` names several calls; write one of {}",
                terminal::safe(id),
                names.join(", ")
            )))
        }
    }
}

fn unknown(id: &str) -> Failure {
    let id = terminal::safe(id);
    Failure::usage(format!("no call `{id}` waits; it may have been decided already (see `approvals list`)"))
        .code("not_pending")
}

async fn decide(
    cli: &Cli<'_>,
    id: &str,
    decision: Decision,
    decider: &Decider,
    endpoint: &Endpoint,
) -> Result<Exit, Failure> {
    let (kept, document, call) = find(cli, id)?;
    let pending = document.waiting().find(|waiting| waiting.call_id == call).cloned().ok_or_else(|| unknown(id))?;
    let decision = match (decision, pending.suspension) {
        (Decision::Approval(_), Suspension::Client) => {
            let app = cli.app.name;
            return Err(Failure::usage(format!(
                "this call waits for its client, not for a person: {app} approvals answer"
            )));
        }
        (Decision::Answer(output), Suspension::Approval) => Decision::Approval(ApprovalDecision::Respond(output)),
        (decision, _) => decision,
    };
    match document {
        Document::Call(snapshot) => finish_call(cli, kept, *snapshot, &pending, decision, decider).await,
        Document::Chat(saved) => {
            let agent = chat::agent(&cli.settings.endpoint(endpoint))?;
            let offline = agent.is_none();
            let gate = cli.open().await?;
            let options = gate.options_of(&pending, Some(chat::events(cli)));
            let agent = agent.unwrap_or_else(chat::offline);
            let conversation =
                agent.restore(&gate.runner, options, *saved).await.map_err(|error| Failure::from(&error))?;
            let mut talk = Talk::new(cli, gate, conversation, kept);
            match decision {
                Decision::Approval(decision) => talk.resolve(&call, decision, decider, offline).await?,
                Decision::Answer(output) => {
                    talk.reply(ClientAnswer::value(call.as_str(), output), offline).await?;
                }
            }
            Ok(talk.exit())
        }
    }
}

/// Decides a call of the command `call`, which has no conversation to continue.
async fn finish_call(
    cli: &Cli<'_>,
    mut kept: Kept,
    snapshot: RunSnapshot,
    pending: &PendingCall,
    decision: Decision,
    decider: &Decider,
) -> Result<Exit, Failure> {
    let (gate, call) = (cli.open().await?, &pending.call_id);
    let run =
        gate.runner.restore(snapshot, gate.options_of(pending, None)).await.map_err(|error| Failure::from(&error))?;
    kept.claim()?;
    let result = match decision {
        Decision::Approval(decision) => cancellable(&run, run.resume(call.as_str(), decision, decider)).await,
        Decision::Answer(output) => cancellable(&run, run.client_result(call.as_str(), &output)).await,
    };
    let result = match result {
        Ok(result) => result,
        Err(error) => {
            kept.release();
            return Err(Failure::from(&error));
        }
    };
    // A decision that does not fit leaves the call waiting, so that it can be corrected.
    let waits =
        matches!(result.outcome(), Outcome::ClientRequired | Outcome::ApprovalRequired | Outcome::ApprovalMismatch);
    if waits {
        kept.save(Document::Call(Box::new(run.snapshot().await?)))?;
    } else {
        kept.finish()?;
    }
    if cli.settings.json {
        terminal::line(&json(&result)?);
    } else {
        terminal::line(&terminal::safe_lines(&result.to_model()));
    }
    let broken = result.error().is_some_and(|error| !error.errors.is_empty());
    Ok(if result.outcome() == Outcome::ApprovalMismatch && broken { Exit::Invalid } else { Exit::of(result.outcome()) })
}
