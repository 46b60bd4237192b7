//! Conversations as workflows of [Restate](https://docs.rs/restate-sdk) (feature `restate`).
//!
//! Each [`Unit`] of a conversation is a journaled step, and a call that waits is a durable promise. The workflow's `run`
//! handler gives a [`Journal`] to [`drive`](crate::agent::drive); a shared handler brings decisions with [`decide`], and
//! answers of clients with [`answer`].
//!
//! ```no_run
//! use restate_sdk::prelude::*;
//! use tool_runtime::adapters::restate::{Journal, decide};
//! use tool_runtime::agent::{Agent, Incoming, Unit, drive};
//! use tool_runtime::call::{CallId, Decider};
//! use tool_runtime::runner::ApprovalDecision;
//! use tool_runtime::{RunOptions, ToolRunner};
//!
//! struct Chat {
//!     agent: Agent,
//!     // Over a store that all processes share.
//!     runner: ToolRunner,
//! }
//!
//! #[workflow]
//! impl Chat {
//!     #[handler]
//!     async fn run(&self, ctx: WorkflowContext<'_>, message: String) -> HandlerResult<String> {
//!         // The run is named after the workflow, so that a repeated step means the same calls.
//!         let options = RunOptions::new().run_id(ctx.key()).principal("ada");
//!         let mut journal = Journal::new(&ctx, self.agent.clone(), self.runner.clone(), options);
//!         let ended = drive(&mut journal, Unit::begin(Incoming::from(message))).await?;
//!         Ok(ended.text().to_owned())
//!     }
//!
//!     #[handler]
//!     async fn approve(&self, ctx: SharedWorkflowContext<'_>, call: String) -> HandlerResult<()> {
//!         // Whom the application authenticated.
//!         let decider = Decider::new("grace");
//!         decide(&ctx, &CallId::new(call), ApprovalDecision::Approve, &decider).await
//!     }
//! }
//! ```
//!
//! Restate repeats the step that was cut: its effect has happened, and what it made was not journaled. The ledger below
//! makes that safe, so the runner's store is in a database that all processes share. Without one, an effect can happen
//! twice.
//!
//! A step that fails in a way that may pass (the store or the model cannot be reached, another process still executes a
//! call) is retried by Restate; anything else is a [`TerminalError`], whose status is 413 for a conversation that is too
//! large, 403 for one of another principal, tenant or caller, and 500 otherwise.

mod delta;
mod promises;

use std::collections::HashMap;
use std::pin::Pin;

use restate_sdk::context::{
    ContextPromises, ContextSideEffects, ContextTimers, ContextWriteState, DurableFuture, DurableFuturesUnordered,
    RunFuture, RunRetryPolicy, WorkflowContext,
};
use restate_sdk::errors::{HandlerError, TerminalError};
use restate_sdk::serde::Json;

use self::delta::Delta;
use self::promises::{Brought, WAITING, Waiting, promise};
use crate::agent::{Agent, Durable, Incoming, Stepped, Unit, UnitError};
use crate::call::CallId;
use crate::runner::{RunOptions, ToolRunner};

pub use promises::{answer, decide};

/// How large a conversation may be. Restate's servers refuse messages of 32 MiB by default.
const MOST: usize = 16 * 1024 * 1024;

/// The journal of a workflow as an engine for [`drive`](crate::agent::drive).
///
/// What is journaled of a step is the difference to the document before it. A document of more than 16 MiB ends the
/// workflow, because Restate's servers refuse messages of 32 MiB by default.
pub struct Journal<'ctx> {
    context: &'ctx WorkflowContext<'ctx>,
    agent: Agent,
    runner: ToolRunner,
    options: RunOptions,
    retries: Option<RunRetryPolicy>,
    /// The last document.
    before: String,
    /// How much each call was brought.
    brought: HashMap<CallId, u32>,
}

impl<'ctx> Journal<'ctx> {
    /// Creates the journal of a workflow. The options have a [`run_id`](RunOptions::run_id) that belongs to the workflow,
    /// such as its key.
    #[must_use]
    pub fn new(
        context: &'ctx WorkflowContext<'ctx>,
        agent: Agent,
        runner: ToolRunner,
        options: RunOptions,
    ) -> Self {
        Self { context, agent, runner, options, retries: None, before: String::new(), brought: HashMap::new() }
    }

    /// Limits how often, and sets how soon, a step is retried. By default the server's policy decides.
    #[must_use]
    pub fn retries(mut self, policy: RunRetryPolicy) -> Self {
        self.retries = Some(policy);
        self
    }
}

impl Durable for Journal<'_> {
    type Error = HandlerError;

    async fn unit(&mut self, unit: Unit) -> Result<Stepped, HandlerError> {
        let (agent, runner, options) = (self.agent.clone(), self.runner.clone(), self.options.clone());
        let (name, before) = (unit.name(), self.before.clone());
        let work = move || async move {
            let stepped = unit.perform(&agent, &runner, options).await.map_err(failed)?;
            let after = serde_json::to_string(&stepped).map_err(|_| TerminalError::new("the document cannot be written"))?;
            if after.len() > MOST {
                return Err(too_large().into());
            }
            Ok(Json(Delta::between(&before, &after)))
        };
        let step = self.context.run(work).name(name);
        let step = match &self.retries {
            Some(policy) => step.retry_policy(policy.clone()),
            None => step,
        };
        let Json(delta) = step.await?;
        let after = delta.after(&self.before, MOST).ok_or_else(too_large)?;
        let stepped = serde_json::from_str(&after);
        self.before = after;
        Ok(stepped.map_err(|_| TerminalError::new("the journal was written by another version of the library"))?)
    }

    async fn wait(&mut self, stepped: &Stepped) -> Result<Option<Incoming>, HandlerError> {
        let waiting: Waiting = stepped
            .waiting()
            .map(|call| (call.id.clone(), self.brought.get(&call.id).copied().unwrap_or_default()))
            .collect();
        let names: Vec<(CallId, String)> =
            waiting.iter().map(|(id, round)| (id.clone(), promise(id, *round))).collect();
        self.context.set(WAITING, Json(waiting));
        let mut arriving = DurableFuturesUnordered::<Arriving<'_>>::new();
        for (_, name) in &names {
            arriving.push(Box::pin(self.context.promise::<Json<Brought>>(name).map_ok(Some)));
        }
        if let Some(late) = stepped.expires_in() {
            arriving.push(Box::pin(self.context.sleep(late).map_ok(|()| None)));
        }
        let Some((at, arrived)) = arriving.next().await? else { return Ok(None) };
        drop(arriving);
        let arrived = arrived?;
        self.context.set(WAITING, Json(Waiting::new()));
        Ok(Some(match (arrived, names.into_iter().nth(at)) {
            (Some(Json(brought)), Some((id, _))) => {
                *self.brought.entry(id.clone()).or_default() += 1;
                brought.to(id)
            }
            _ => stepped.expired(),
        }))
    }
}

type Arriving<'a> = Pin<Box<dyn DurableFuture<Output = Result<Option<Json<Brought>>, TerminalError>> + Send + 'a>>;

fn failed(error: UnitError) -> HandlerError {
    if error.is_retryable() {
        return error.into();
    }
    let status = match error.code() {
        "other_principal" | "other_caller" => 403,
        _ => 500,
    };
    TerminalError::new_with_code(status, error.to_string()).into()
}

fn too_large() -> TerminalError {
    TerminalError::new_with_code(413, "the conversation is too large for the journal (conversation_too_large)")
}
