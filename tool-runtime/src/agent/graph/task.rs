//! One task of a graph: starts or resumes its conversation, and returns the report.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::agent::graph::Shared;
use crate::agent::{AnswerError, Conversation, Input, SavedConversation, StopReason, WaitingCall};
use crate::call::{PendingGraph, Suspension, ToolContext};
use crate::component::Bindings;
use crate::error::ToolError;
use crate::redact::Projector;
use crate::registration::{Instance, Purpose, RunFailure, Running};
use crate::runner::waiting::counting;
use crate::runner::{GraphIdentity, Host, SEPARATOR, Work};

/// The arguments of a graph's tool.
#[derive(Deserialize)]
pub(super) struct Arguments {
    pub(super) task: String,
}

/// The result of a task.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct Report {
    /// The result of the task, in a few sentences. The reader sees nothing else of this conversation.
    summary: String,
    /// The facts that were found, one each, the most important first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    findings: Vec<String>,
}

impl Report {
    pub(super) const PATHS: [&str; 2] = ["summary", "findings"];

    pub(super) fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "summary": {"type": "string"},
                "findings": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["summary"],
        })
    }
}

/// One task of a graph.
pub(super) struct Task {
    pub(super) graph: Arc<Shared>,
    pub(super) task: String,
}

impl Instance for Task {
    fn run(
        self: Box<Self>,
        purpose: Purpose,
        bindings: Bindings<'_>,
        projector: Arc<Projector>,
        max_bytes: usize,
    ) -> Option<Running> {
        let host = bindings.host?.downcast::<Host>().ok()?;
        let context = bindings.context;
        Some(Box::pin(async move {
            if purpose == Purpose::Reconcile {
                return Err(RunFailure::Unknown);
            }
            let report = Box::pin(self.work(&host, &context)).await?;
            // The summary comes before the findings, so that findings are cut first.
            projector.project(&report, max_bytes).map_err(RunFailure::Output)
        }))
    }
}

impl Task {
    async fn work(self, host: &Host, context: &ToolContext) -> Result<Report, RunFailure> {
        let Shared { name, version, agent, tools } = &*self.graph;
        let identity = GraphIdentity { name, version, tools, is_script: false };
        let (work, mut conversation, input) = match host.continued() {
            None => {
                let work = host.start(context, &identity);
                let conversation = agent.converse(work.run.clone());
                (work, conversation, Input::new().text(self.task))
            }
            Some(continued) => {
                let begun = continued.pending.begun;
                let saved: SavedConversation = serde_json::from_str(&continued.pending.document)
                    .map_err(|error| RunFailure::broken(error, begun))?;
                let (runner, options) = host.again(context, &identity, &continued.pending);
                let conversation =
                    agent.restore(&runner, options, saved).await.map_err(|error| RunFailure::broken(error, begun))?;
                let work = host.work(conversation.run().clone());
                let (question, earlier) = (&continued.pending.question, &continued.earlier);
                let noted = counting::note_earlier(&work.run, question, earlier).await;
                noted.map_err(|error| RunFailure::broken(error, begun))?;
                let input = Input::new().decide(&continued.pending.question, continued.decision, &continued.decider);
                (work, conversation, input)
            }
        };
        match conversation.ask::<Report>(input).await {
            Ok(report) => Ok(report),
            Err(AnswerError::Waiting(calls)) => Err(waits(&work, &conversation, &calls, name, context).await),
            // Never ready: the gate ends the call of the graph as cancelled.
            Err(AnswerError::Stopped { reason: StopReason::Cancelled, .. }) => std::future::pending().await,
            Err(AnswerError::Stopped { reason, .. }) => Err(stopped(&reason, work.begun(context))),
            Err(error @ (AnswerError::NotWaiting(_) | AnswerError::Schema(_))) => {
                Err(RunFailure::broken(error, work.begun(context)))
            }
        }
    }
}

/// Suspends the graph at its waiting call.
async fn waits(
    work: &Work,
    conversation: &Conversation,
    calls: &[WaitingCall],
    name: &str,
    context: &ToolContext,
) -> RunFailure {
    let Some(call) = calls.iter().find(|call| call.suspension == Suspension::Approval) else {
        return RunFailure::broken("a graph waits for a client", work.begun(context));
    };
    let document = match conversation.save().await {
        Ok(saved) => serde_json::to_string(&saved),
        Err(error) => return RunFailure::broken(error, work.begun(context)),
    };
    let document = match document {
        Ok(document) => document.into(),
        Err(error) => return RunFailure::broken(error, work.begun(context)),
    };
    RunFailure::Waits(Box::new(PendingGraph {
        path: format!("{name}{SEPARATOR}{}", call.name),
        tool: call.name.clone(),
        call_id: call.id.clone(),
        question: call.question.clone(),
        shown_arguments: call.shown_arguments.clone(),
        summary: call.summary.clone(),
        names: call.names.clone(),
        changes: call.changes.clone(),
        required: call.required,
        approvals: call.approvals.clone(),
        rule: call.rule.clone(),
        refused: call.refused.clone(),
        run_id: work.run.id().into(),
        waiting: calls.iter().map(|call| call.id.clone()).collect(),
        begun: work.begun(context),
        document,
    }))
}

/// Returns the failure of a task that ended without a report.
fn stopped(reason: &StopReason, begun: bool) -> RunFailure {
    let done = if begun { " Part of its task may be done." } else { "" };
    let message = format!("The graph stopped before it was done: {reason}.{done}");
    RunFailure::Tool(ToolError::code(reason.code()).with_safe(message))
}
