//! `grants add`: creates a grant (a decision on later calls of a tool) from the question of a waiting call.

use std::sync::Arc;

use tool_runtime::agent::RunQueue;
use tool_runtime::call::Suspension;
use tool_runtime::runner::{Grant, ResumeError};
use tool_runtime::store::{GrantScope, PendingCall};

use super::GrantRow;
use crate::approvals::LocatedCall;
use crate::exit::{Exit, Failure};
use crate::grants::{Add, Scope};
use crate::session::Cli;
use crate::terminal::json;
use crate::{approvals, input, terminal};

pub(super) async fn add(cli: &Cli<'_>, asked: Add) -> Result<Exit, Failure> {
    let LocatedCall { call, .. } = approvals::find(cli, &asked.id).await?;
    let now = cli.store().await?.now().await?;
    if call.suspension != Suspension::Approval || call.is_expired(now) {
        return Err(approvals::unknown(&asked.id));
    }
    // `id` is the id of a call, or of its question.
    let question = asked.id.parse().unwrap_or_else(|_| call.question());
    // With the id of a call, the person may have read an earlier question.
    if question.to_string() != asked.id && !asked.deny && approvals::asked_before(cli, &call).await? {
        return Err(approvals::asks_anew(cli, &asked.id, &question));
    }
    let decider = cli.named_decider(&call, &asked.who)?;
    let remember = remember(&asked, &call)?;
    let queue = RunQueue::new(&cli.open().await?.runner);
    let grant = match queue.remember(&call.run_id, &question, remember, &decider).await {
        Ok(grant) => grant,
        Err(error) if error.code().starts_with("grant_") => return Err(invalid(&asked, &error)),
        Err(error) => return Err(approvals::refused(&asked.id, error)),
    };
    let row = GrantRow::of(&grant);
    terminal::line(&if cli.settings.json { json(&row)? } else { row.describe() });
    Ok(Exit::Done)
}

fn remember(asked: &Add, call: &PendingCall) -> Result<Grant, Failure> {
    let scope = match asked.scope {
        Scope::Run => GrantScope::Run(Arc::clone(&call.run_id)),
        Scope::Conversation => match &call.conversation_id {
            Some(conversation) => GrantScope::Conversation(Arc::clone(conversation)),
            None => {
                let text = "the run of this call names no conversation; write `--for run` or `--for principal`";
                return Err(Failure::usage(text).code("grant_scope"));
            }
        },
        Scope::Principal => GrantScope::Principal,
        Scope::Tenant => GrantScope::Tenant,
    };
    let mut remember = if asked.deny { Grant::deny(scope) } else { Grant::allow(scope) };
    if let Some(conditions) = &asked.matching {
        let conditions = input::json_value(conditions)?;
        remember = remember.matching(&conditions).map_err(|error| invalid(asked, &error))?;
    }
    if asked.any_arguments {
        remember = remember.any_arguments();
    }
    if let Some(uses) = asked.uses {
        remember = remember.uses(uses);
    }
    if let Some(time) = asked.expires_in {
        remember = remember.expires_in(time);
    }
    Ok(remember)
}

fn invalid(asked: &Add, error: &ResumeError) -> Failure {
    let hint = match error {
        ResumeError::GrantConditions(_) if asked.matching.is_some() => " (--any-arguments covers every call)",
        ResumeError::GrantUnbounded => ": --uses N --expires-in TIME",
        ResumeError::GrantScope if asked.uses == Some(0) => "; write --uses 1 or more",
        ResumeError::GrantScope if asked.expires_in.is_some_and(|time| time.is_zero()) => {
            "; write --expires-in 1s or more"
        }
        ResumeError::GrantScope if asked.scope == Scope::Principal => {
            "; its run may have no principal, its arguments may have been repaired, or a graph waits with it"
        }
        ResumeError::GrantScope => "; its arguments may have been repaired, or a graph waits with it",
        _ => "",
    };
    Failure::usage(format!("{error}{hint}")).code(error.code())
}
