//! `approvals`: lists, shows and decides waiting calls.
//!
//! This process carries out a decision on a call of the data folder, or on a call that an application made by itself. A
//! decision on a call in a run of workers or servers is posted to the run. The process that holds the run, or takes it
//! next, carries the decision out.

mod here;
mod posted;
mod rows;
mod waiting;

pub(super) use posted::{check, refused};
pub(super) use rows::who_decides;
pub(super) use waiting::{Found, find, unknown};

use std::time::Duration;

use clap::{Args, Subcommand};
use tool_runtime::call::{Outcome, Suspension};
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::PendingCall;
use waiting::Place;

use crate::endpoint::Endpoint;
use crate::exit::{Exit, Failure};
use crate::saved::ConversationFiles;
use crate::session::{Cli, Who};
use crate::{input, values};

/// The decider, and the time to wait for the result of the call.
#[derive(Debug, Args)]
pub(crate) struct By {
    #[command(flatten)]
    pub(crate) who: Who,
    /// For a run of the store: wait this long for its worker, for example 30s, and exit with the code of the call
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub(crate) wait: Option<Duration>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Approvals {
    /// List the waiting calls of the data folder, and with --store those of the tenant, oldest first
    List,
    /// Show a waiting call: its effect, its principal, why it waits, and its arguments
    Show {
        /// The call, as `approvals list` prints it; RUN/CALL if several have its id
        id: String,
        /// Show the values of sensitive arguments too
        #[arg(long)]
        unmask: bool,
    },
    /// Let the call run with its arguments unchanged
    Approve {
        /// The call
        id: String,
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

/// A person's decision, or a client's answer.
enum Decision {
    Approval(ApprovalDecision),
    /// The answer of the person or client that the call waits for.
    Answer(String),
}

impl Decision {
    const fn denies(&self) -> bool {
        matches!(self, Self::Approval(ApprovalDecision::Deny(_)))
    }
}

/// The exit for a call that a decision ended. A denial that took effect is [`Exit::Done`].
const fn exit_of(denies: bool, outcome: Outcome) -> Exit {
    if denies && matches!(outcome, Outcome::ApprovalDenied) { Exit::Done } else { Exit::of(outcome) }
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
    let Found { call, place, .. } = match (find(cli, id).await, &decision) {
        (Err(failure), Decision::Approval(decision)) if failure.code == waiting::NOT_PENDING => {
            posted::late(cli, id, decision, by).await?;
            return Err(failure);
        }
        (found, _) => found?,
    };
    // `id` may be a question rather than a call's id. The call may ask another question now, and then refuses the
    // decision.
    let question = id.parse().unwrap_or_else(|_| call.question());
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
            let (kept, document) = ConversationFiles::of(cli).open(&document)?;
            let waiting = document.waiting().find(|waiting| waiting.call_id == call.call_id).cloned();
            let call: PendingCall = waiting.ok_or_else(|| unknown(id))?;
            here::decide(cli, (kept, document), (&call, &question), decision, &decider, endpoint).await
        }
        Place::Run(_) | Place::Elsewhere => posted::decide(cli, (id, &call, &question), decision, by, endpoint).await,
    }
}
