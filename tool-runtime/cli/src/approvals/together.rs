//! Decides several calls in stored runs together: either all decisions are posted, or none.

use std::sync::Arc;

use tool_runtime::agent::RunQueue;
use tool_runtime::call::{Question, Suspension};
use tool_runtime::runner::{ApprovalDecision, ResumeError};
use tool_runtime::store::{PendingCall, Store as _};

use crate::approvals::decision::By;
use crate::approvals::posted::{done, follow, last_record, no_model, refused};
use crate::approvals::waiting::DecidedIn;
use crate::approvals::{LocatedCall, asking, for_client, waiting};
use crate::endpoint::Endpoint;
use crate::exit::{Exit, Failure};
use crate::session::Cli;
use crate::terminal;

/// The id of a call as the user typed it, the call, and the question to decide.
type Named = (String, PendingCall, Question);

pub(super) async fn decide(
    cli: &Cli<'_>,
    ids: Vec<String>,
    decision: &ApprovalDecision,
    by: &By,
    endpoint: &Endpoint,
) -> Result<Exit, Failure> {
    no_model(endpoint)?;
    let calls = find(cli, ids, decision, by).await?;
    let gate = cli.open().await?;
    let store = Arc::clone(&gate.store);
    let (mut seen, mut decisions, mut decider) = (Vec::new(), Vec::new(), None);
    for (id, call, question) in &calls {
        if call.is_expired(store.now().await?) {
            return Err(waiting::unknown(id));
        }
        decider = Some(cli.named_decider(call, &by.who)?);
        seen.push(last_record(&*store, call).await?);
        decisions.push((Arc::clone(&call.run_id), question.clone(), decision.clone()));
    }
    let Some(decider) = decider else { return Ok(Exit::Done) };
    let decided = RunQueue::new(&gate.runner).decide_all(&decisions, &decider).await;
    let decided = decided.map_err(|(question, error)| {
        let named = calls.iter().find(|(.., asked)| Some(asked) == question.as_ref());
        let Some((id, ..)) = named else { return Failure::from(&error) };
        let failure = match error {
            ResumeError::UnknownRun => alone(id),
            error => refused(id, error),
        };
        Failure { message: format!("{}: {}; no call is decided", terminal::safe(id), failure.message), ..failure }
    })?;
    let mut exits = Vec::new();
    for ((noted, seen), (_, call, question)) in decided.into_iter().zip(seen).zip(&calls) {
        exits.push(match noted {
            Some(result) => done(cli, false, &result)?,
            None => follow(cli, &*store, (call, question), seen, (decision.kind(), by.wait)).await?,
        });
    }
    Ok(exits.into_iter().find(|exit| *exit != Exit::Done).unwrap_or(Exit::Done))
}

/// Finds the calls. Each id must name a different call that waits for a person in a run of workers or servers.
async fn find(cli: &Cli<'_>, ids: Vec<String>, decision: &ApprovalDecision, by: &By) -> Result<Vec<Named>, Failure> {
    let mut calls: Vec<Named> = Vec::new();
    for id in ids {
        let (LocatedCall { call, place, .. }, question) = asking(cli, &id, Some(decision), by).await?;
        if calls.iter().any(|(_, other, _)| other.run_id == call.run_id && other.call_id == call.call_id) {
            return Err(Failure::usage(format!("the call `{}` is named twice", terminal::safe(&id))));
        }
        if call.suspension == Suspension::Client {
            return Err(for_client(cli));
        }
        if !matches!(place, DecidedIn::Run(_)) {
            return Err(alone(&id));
        }
        calls.push((id, call, question));
    }
    Ok(calls)
}

/// Returns the failure for a call whose decision only this process can carry out, so that it has to be decided alone.
fn alone(id: &str) -> Failure {
    let id = terminal::safe(id);
    let text =
        format!("no worker or server has the run of `{id}`, so its decision is carried out here; decide it alone");
    Failure::usage(text).code("not_shared")
}
