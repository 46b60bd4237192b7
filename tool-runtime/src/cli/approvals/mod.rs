//! `approvals`: the calls that wait are listed, shown and decided.
//!
//! A call of the data folder is decided here. One in a run of the store is never touched here: its decision is posted
//! to the run, and the worker that has the run, or takes it next, carries it out.

mod here;
mod posted;
mod rows;
mod waiting;

pub(super) use posted::{check, may_decide};
pub(super) use waiting::{Found, find, unknown};

use crate::call::Suspension;
use crate::cli::args::{Approvals, By, Endpoint};
use crate::cli::exit::{Exit, Failure};
use crate::cli::input;
use crate::cli::saved::Desk;
use crate::cli::session::Cli;
use crate::runner::ApprovalDecision;
use crate::store::PendingCall;
use waiting::Place;

/// What a person decides, or what a client answers.
enum Decision {
    Approval(ApprovalDecision),
    /// The answer of the person or client that the call waits for.
    Answer(String),
}

pub(super) async fn approvals(cli: &Cli<'_>, action: Approvals) -> Result<Exit, Failure> {
    let (id, decision, by, endpoint) = match action {
        Approvals::List => return rows::list(cli).await,
        Approvals::Show { id, unmask } => return rows::show(cli, &id, unmask).await,
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
    Box::pin(decide(cli, &id, decision, &by, &endpoint)).await
}

async fn decide(cli: &Cli<'_>, id: &str, decision: Decision, by: &By, endpoint: &Endpoint) -> Result<Exit, Failure> {
    let Found { call, place } = find(cli, id).await?;
    let decision = match (decision, call.suspension) {
        (Decision::Approval(_), Suspension::Client) => {
            let app = cli.app.name;
            return Err(Failure::usage(format!(
                "this call waits for its client, not for a person: {app} approvals answer"
            )));
        }
        (Decision::Answer(output), Suspension::Approval) => Decision::Approval(ApprovalDecision::Respond(output)),
        (decision, _) => decision,
    };
    match place {
        Place::Document { id: document, .. } => {
            let decider = cli.decider(by.who.decider.as_deref(), by.who.reason.as_deref());
            let (kept, document) = Desk::of(cli).open(&document)?;
            let waiting = document.waiting().find(|waiting| waiting.call_id == call.call_id).cloned();
            let call: PendingCall = waiting.ok_or_else(|| unknown(id))?;
            here::decide(cli, (kept, document), &call, decision, &decider, endpoint).await
        }
        Place::Run(run) => posted::decide(cli, (id, &call, &run), decision, by, endpoint).await,
        Place::Elsewhere => Err(Failure::usage(format!(
            "the run {} of this call is kept by another program; decide on the call there",
            call.run_id
        ))
        .code("not_shared")),
    }
}
