//! `approvals`: lists, shows and decides waiting calls.
//!
//! If the call is in the data folder (the files of the command line), or no other process can continue its run, this
//! process carries out the decision. Otherwise it posts the decision to the run, and the process that holds the run, or
//! takes it next, carries it out. A client's answer to a call of the store is always posted; it is refused if the store
//! does not have the run.

mod decision;
mod here;
mod posted;
mod rows;
mod together;
mod waiting;

pub(super) use posted::refused;
pub(super) use rows::who_decides;
pub(super) use waiting::{LocatedCall, find, unknown};

use std::sync::Arc;

use clap::Subcommand;
use tool_runtime::call::{DecisionError, Question, Suspension};
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::{DecisionKind, Key, PendingCall, RecordFilter, Store};

use crate::approvals::decision::{By, Decision};
use crate::approvals::waiting::DecidedIn;
use crate::endpoint::Endpoint;
use crate::exit::{Exit, Failure};
use crate::saved::ConversationFiles;
use crate::session::Cli;
use crate::{input, terminal};

#[derive(Debug, Subcommand)]
pub(crate) enum Approvals {
    /// List the waiting calls of the data folder and, with --store, of the tenant; oldest first
    List,
    /// Show a waiting call: its effect, its principal, why it waits, and its arguments
    Show {
        /// The call, as `approvals list` prints it; RUN/CALL if several calls have this id
        id: String,
        /// Show the values of sensitive arguments too
        #[arg(long)]
        unmask: bool,
    },
    /// Let calls run with their arguments unchanged
    Approve {
        /// The call; several calls in runs of the store are decided together, all of them or none
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
        #[command(flatten)]
        by: By,
        #[command(flatten)]
        endpoint: Endpoint,
    },
    /// Let the call run with other arguments, which are validated first
    Edit {
        /// The call
        id: String,
        /// All arguments as JSON, `-` for standard input, `@FILE` for a file
        arguments: String,
        #[command(flatten)]
        by: By,
        #[command(flatten)]
        endpoint: Endpoint,
    },
    /// Refuse the call
    Deny {
        /// The call
        id: String,
        /// The reason that the model reads
        message: Option<String>,
        /// Another call to refuse for this reason; calls in runs of the store are refused together, all of them or none
        #[arg(long, value_name = "ID")]
        also: Vec<String>,
        #[command(flatten)]
        by: By,
        #[command(flatten)]
        endpoint: Endpoint,
    },
    /// Give the result in place of the tool, or as the client that executed the call
    Answer {
        /// The call
        id: String,
        /// The output as JSON, `-` for standard input, `@FILE` for a file
        output: String,
        #[command(flatten)]
        by: By,
        #[command(flatten)]
        endpoint: Endpoint,
    },
}

pub(super) async fn approvals(cli: &Cli<'_>, action: Approvals) -> Result<Exit, Failure> {
    let (id, decision, by, endpoint) = match action {
        Approvals::List => return rows::list(cli).await,
        Approvals::Show { id, unmask } => return rows::show(cli, &id, unmask).await,
        Approvals::Approve { ids, by, endpoint } => {
            return Box::pin(approve_or_deny(cli, ids, ApprovalDecision::Approve, &by, &endpoint)).await;
        }
        Approvals::Edit { id, arguments, by, endpoint } => {
            let edited = ApprovalDecision::ApproveEdited(input::json_value(&arguments)?);
            (id, Decision::Approval(edited), by, endpoint)
        }
        Approvals::Deny { id, message, also, by, endpoint } => {
            let ids = std::iter::once(id).chain(also).collect();
            return Box::pin(approve_or_deny(cli, ids, ApprovalDecision::Deny(message), &by, &endpoint)).await;
        }
        Approvals::Answer { id, output, by, endpoint } => {
            (id, Decision::Answer(input::json_value(&output)?), by, endpoint)
        }
    };
    Box::pin(decide(cli, &id, decision, &by, &endpoint)).await
}

/// Approves or denies one call, or several calls of the store together.
async fn approve_or_deny(
    cli: &Cli<'_>,
    ids: Vec<String>,
    decision: ApprovalDecision,
    by: &By,
    endpoint: &Endpoint,
) -> Result<Exit, Failure> {
    match &ids[..] {
        [id] => decide(cli, id, Decision::Approval(decision), by, endpoint).await,
        _ => together::decide(cli, ids, &decision, by, endpoint).await,
    }
}

/// Finds a call, and the question to decide: the call's id with a digest of the details that a person is shown. If the
/// call does not wait, records the refused decision.
async fn asking(
    cli: &Cli<'_>,
    id: &str,
    decision: Option<&ApprovalDecision>,
    by: &By,
) -> Result<(LocatedCall, Question), Failure> {
    let found = match (find(cli, id).await, decision) {
        (Err(failure), Some(decision)) if failure.code == waiting::NOT_PENDING => {
            posted::late(cli, id, decision, by).await?;
            return Err(failure);
        }
        (found, _) => found?,
    };
    // If `id` is the id of a question, the decision is for this question. If the details have changed since then, the
    // decision is refused.
    if let Ok(question) = id.parse() {
        return Ok((found, question));
    }
    let question = found.call.question();
    let runs = decision.is_some_and(|decision| !matches!(decision, ApprovalDecision::Deny(_)));
    if runs && asked_before(cli, &found.call).await? {
        return Err(asks_anew(cli, id, &question));
    }
    Ok((found, question))
}

/// Whether the call waited with a different question before: the call is a graph (an agent or script that runs as a
/// tool) that continued with its next call, its arguments were edited, or the state that it depends on changed. The id
/// of the call then does not identify the question that a person has read.
pub(crate) async fn asked_before(cli: &Cli<'_>, call: &PendingCall) -> Result<bool, Failure> {
    let Some(store) = cli.kept_records().await? else { return Ok(false) };
    // If the process died after the call had begun, the saved document still shows the call as waiting.
    let key = Key::waiting(&*call.run_id, call.tenant.as_deref(), call.principal.as_deref(), &call.call_id);
    if store.pending(&key).await?.is_none() {
        return Ok(false);
    }
    let of_call = RecordFilter::call(Arc::clone(&call.run_id), call.call_id.clone());
    let records = store.records(&RecordFilter { decisions: Some(true), ..of_call }).await?;
    Ok(records.iter().filter_map(|sealed| sealed.record.as_decision()).any(|decision| {
        let is_its = (&decision.tenant, &decision.principal) == (&call.tenant, &call.principal);
        let has_changed = match decision.decision {
            DecisionKind::Remembered | DecisionKind::Revoked => false,
            // The call waits for other approvals of the same question.
            DecisionKind::Approved if decision.approvals.is_some_and(|(given, required)| given < required) => false,
            // The decision was accepted, or was refused because the details had changed. The call still waits, so its
            // question is a new one. For example, an approved call waits again if an earlier call with the same effect
            // has an unknown outcome.
            _ => {
                decision.refused().is_none()
                    || matches!(decision.mismatch(), Some(DecisionError::World | DecisionError::Question))
            }
        };
        is_its && has_changed
    }))
}

/// Returns the failure for a call id that does not identify one question.
pub(crate) fn asks_anew(cli: &Cli<'_>, id: &str, question: &Question) -> Failure {
    let command = cli.command("approvals show", (id, ""), &cli.same_options());
    let message = format!(
        "the question of the call `{}` has changed; read the new one with `{command}`, and write this question in \
         place of the id: {}",
        terminal::safe(id),
        terminal::safe(&question.to_string())
    );
    Failure { exit: Exit::Denied, code: "not_allowed", message }
}

fn for_client(cli: &Cli<'_>) -> Failure {
    let app = cli.app.name;
    Failure::usage(format!("this call waits for its client, not for a person: {app} approvals answer"))
}

async fn decide(cli: &Cli<'_>, id: &str, decision: Decision, by: &By, endpoint: &Endpoint) -> Result<Exit, Failure> {
    let approval = match &decision {
        Decision::Approval(decision) => Some(decision),
        Decision::Answer(_) => None,
    };
    let (LocatedCall { call, place, .. }, question) = asking(cli, id, approval, by).await?;
    let decision = match (decision, call.suspension) {
        (Decision::Approval(_), Suspension::Client) => return Err(for_client(cli)),
        (Decision::Answer(output), Suspension::Approval) => Decision::Approval(ApprovalDecision::Respond(output)),
        (decision, _) => decision,
    };
    match place {
        DecidedIn::Document { id: document, .. } => {
            let decider = cli.decider(by.who.decider.as_deref(), by.who.reason.as_deref());
            let (kept, document) = ConversationFiles::of(cli).open(&document)?;
            let waiting = document.waiting().find(|waiting| waiting.call_id == call.call_id).cloned();
            let call: PendingCall = waiting.ok_or_else(|| unknown(id))?;
            here::decide(cli, (kept, document), (&call, &question), decision, &decider, endpoint).await
        }
        DecidedIn::Run(_) | DecidedIn::Elsewhere => {
            posted::decide(cli, (id, &call, &question), decision, by, endpoint).await
        }
    }
}
