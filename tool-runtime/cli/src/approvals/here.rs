//! Carries out decisions on calls of the data folder in this process.

use tool_runtime::Outcome;
use tool_runtime::call::{ClientAnswer, Decider, Question};
use tool_runtime::runner::{ResumeError, RunSnapshot};
use tool_runtime::store::PendingCall;

use crate::approvals::decision::{Decision, exit_of};
use crate::approvals::posted;
use crate::attend::cancellable;
use crate::chat;
use crate::chat::ended::unrestored;
use crate::chat::{Autosave, Described, Talk};
use crate::endpoint::Endpoint;
use crate::exit::{Exit, Failure};
use crate::saved::{Document, OpenDocument};
use crate::session::Cli;
use crate::terminal;
use crate::text::option;

/// Decides a call of a saved document, and continues its conversation.
pub(super) async fn decide(
    cli: &Cli<'_>,
    (kept, document): (OpenDocument, Document),
    (pending, question): (&PendingCall, &Question),
    decision: Decision,
    decider: &Decider,
    endpoint: &Endpoint,
) -> Result<Exit, Failure> {
    same_party(cli, pending)?;
    let saved = match document {
        Document::Call(snapshot) => {
            return finish_call(cli, kept, *snapshot, (pending, question), decision, decider).await;
        }
        Document::Chat(saved) => saved,
    };
    let agent = chat::agent(&cli.settings.endpoint(endpoint))?;
    let offline = agent.is_none();
    let gate = cli.open().await?;
    let described = Described::default();
    let options = gate.options_of(pending, Some(chat::events(cli, &gate, &described)));
    let agent = agent.unwrap_or_else(chat::offline);
    let conversation = agent.restore(&gate.runner, options, *saved).await.map_err(|error| unrestored(&error))?;
    let mut talk = Talk::new(cli, gate, conversation, Autosave::File(kept), described);
    let denies = decision.denies();
    match decision {
        Decision::Approval(decision) => talk.resolve(question, decision, decider, offline).await?,
        Decision::Answer(output) => {
            talk.reply(ClientAnswer::value(pending.call_id.as_str(), output), offline).await?;
        }
    }
    Ok(talk.exit_of_decision(|outcome| exit_of(denies, outcome)))
}

/// Decides a call of the command `call`, which has no conversation to continue.
async fn finish_call(
    cli: &Cli<'_>,
    mut kept: OpenDocument,
    snapshot: RunSnapshot,
    (pending, question): (&PendingCall, &Question),
    decision: Decision,
    decider: &Decider,
) -> Result<Exit, Failure> {
    let (gate, call) = (cli.open().await?, &pending.call_id);
    let run =
        gate.runner.restore(snapshot, gate.options_of(pending, None)).await.map_err(|error| unrestored(&error))?;
    kept.claim()?;
    let denies = decision.denies();
    let result = match decision {
        Decision::Approval(decision) => cancellable(&run, run.resume(question, decision, decider)).await,
        Decision::Answer(output) => cancellable(&run, run.client_result(call.as_str(), &output)).await,
    };
    let result = match result {
        Ok(result) => result,
        // Another process began to carry out a decision, and may have died.
        Err(ResumeError::NotWaiting(_)) => match run.recover(call).await? {
            Some(result) => result,
            None => {
                kept.release();
                // If the call still waits, the decider is of another tenant, or answered another question.
                let waits = run.pending(call).await?.is_some();
                return Err(if waits {
                    Failure::from(&ResumeError::NotWaiting(call.clone()))
                } else {
                    unfinished(cli, pending)
                });
            }
        },
        Err(error) => {
            kept.release();
            return Err(Failure::from(&error));
        }
    };
    // The call still waits after an invalid decision, so that a person can correct it.
    let waits =
        matches!(result.outcome(), Outcome::ClientRequired | Outcome::ApprovalRequired | Outcome::ApprovalMismatch);
    if waits {
        kept.save(Document::Call(Box::new(run.snapshot().await?)))?;
    } else {
        kept.finish()?;
    }
    posted::done(cli, denies, &result)
}

/// Fails if the call belongs to another principal or tenant. The message names them, because `approvals show` prints
/// them, too.
fn same_party(cli: &Cli<'_>, call: &PendingCall) -> Result<(), Failure> {
    let party = cli.party();
    let differs = |name: &str, mine: Option<&str>, its: Option<&str>| match its {
        _ if mine == its => None,
        Some(its) => Some(option(name, its).trim_start().to_owned()),
        None => Some(format!("no {name}")),
    };
    let principal = differs("--principal", party.principal.as_deref(), call.principal.as_deref());
    let wanted: Vec<_> =
        principal.into_iter().chain(differs("--tenant", party.tenant.as_deref(), call.tenant.as_deref())).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let text = format!(
        "the call belongs to another principal or tenant; give its own, and name the decider with --as: {}",
        wanted.join(" and ")
    );
    Err(Failure { exit: Exit::Denied, code: ResumeError::OtherPrincipal.code(), message: text })
}

/// Returns the failure for a call whose decision another process carries out, or began to carry out before it died.
fn unfinished(cli: &Cli<'_>, call: &PendingCall) -> Failure {
    let (app, id, same) = (cli.app.name, terminal::safe(call.call_id.as_str()), cli.same_options());
    let text = format!(
        "the call `{id}` has begun, and has no record of its end: another process runs it, or died; `{app} audit open{same}` \
         shows the end of its lease; run this command again after that"
    );
    Failure::failed(text).code("unfinished")
}
