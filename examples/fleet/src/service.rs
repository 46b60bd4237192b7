//! The workflow: one conversation for each key.

use restate_sdk::prelude::*;
use tool_runtime::agent::{Agent, Input};
use tool_runtime::call::{ClientAnswer, Decider, Question};
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::{RunOptions, ToolRunner};
use tool_runtime_restate::{Journal, answer, decide, questions};

/// The agent and the runner of a process.
pub struct Fleet {
    /// The model, with the settings of the loop.
    pub agent: Agent,
    /// The gate, with the store that all processes share.
    pub runner: ToolRunner,
}

/// The workflow `Fleet`.
pub struct FleetService(pub Fleet);

/// A person's decision.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Decision {
    /// The question that the person was shown.
    question: Question,
    approve: bool,
    reason: Option<String>,
}

/// A client's result.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    call: String,
    /// The result; absent if the client could not execute the call.
    value: Option<serde_json::Value>,
}

#[workflow(name = "Fleet")]
impl FleetService {
    /// Answers a message.
    #[handler]
    async fn run(&self, ctx: WorkflowContext<'_>, message: String) -> HandlerResult<String> {
        let Fleet { agent, runner } = &self.0;
        let options = RunOptions::new().run_id(ctx.key()).principal("ada").tenant("acme");
        let ended = Journal::new(&ctx, agent.clone(), runner.clone(), options).converse(Input::from(message)).await?;
        if ended.code != "answered" {
            return Err(TerminalError::new(format!("there is no answer ({})", ended.code)).into());
        }
        Ok(ended.text)
    }

    /// Lists the open questions.
    #[handler]
    async fn questions(&self, ctx: SharedWorkflowContext<'_>) -> HandlerResult<Json<Vec<Question>>> {
        Ok(Json(questions(&ctx).await?))
    }

    /// Delivers a decision. The decider and their tenant are in headers, which the gateway in front of Restate sets
    /// after authentication.
    #[handler]
    async fn decide(&self, ctx: SharedWorkflowContext<'_>, Json(decision): Json<Decision>) -> HandlerResult<()> {
        let header = |name: &'static str| {
            let missing = || TerminalError::new_with_code(401, format!("the header {name} is missing"));
            ctx.headers().get(name).cloned().ok_or_else(missing)
        };
        let decider = Decider::new(header("x-principal")?).tenant(header("x-tenant")?);
        let verdict =
            if decision.approve { ApprovalDecision::Approve } else { ApprovalDecision::Deny(decision.reason) };
        decide(&ctx, &self.0.runner, &decision.question, verdict, &decider).await
    }

    /// Delivers a client's answer. The gateway in front of Restate admits only the owner of the conversation.
    #[handler]
    async fn answer(&self, ctx: SharedWorkflowContext<'_>, Json(given): Json<Answer>) -> HandlerResult<()> {
        let given = match given.value {
            Some(value) => ClientAnswer::value(given.call, value.to_string()),
            None => ClientAnswer::failed(given.call),
        };
        answer(&ctx, given).await
    }
}
