//! Runs a script: takes its calls through the gate until it ends or waits.

use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use crate::agent::code::interpreter::{Interpreter, Left, Reply, ScriptCall, ScriptInput};
use crate::agent::code::paused::{Entry, Paused, asked};
use crate::agent::code::script_error::ScriptError;
use crate::call::{CallId, DecisionError, Outcome, PendingGraph, SafeError, ToolCall, ToolContext, ToolExecResult};
use crate::component::Bindings;
use crate::json;
use crate::redact::{ProjectError, Projector};
use crate::registration::{Instance, Purpose, RunFailure, Running};
use crate::runner::waiting::counting;
use crate::runner::{Continued, GraphIdentity, Host, ResumeError, SEPARATOR, Work};
use crate::text::cut;
use crate::tool::Hash;

/// The maximum number of scripts that run at the same time in a process, because each has a thread.
const SCRIPTS: usize = 64;
/// The maximum size of the results of one script's calls together, in bytes.
const RETURNED: usize = 4 << 20;

/// The size of the text around the value and the printed text, in bytes.
const FRAME: usize = 64;

static SLOTS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(SCRIPTS)));

/// The arguments of a script's tool.
#[derive(Deserialize)]
pub(super) struct Arguments {
    pub(super) script: String,
}

/// The settings that all scripts of a tool share.
pub(super) struct Settings {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) tools: Vec<String>,
    pub(super) calls: usize,
    pub(super) operations: u64,
}

/// One script.
pub(super) struct Script {
    pub(super) settings: Arc<Settings>,
    pub(super) source: String,
}

/// The output of a script.
#[derive(Serialize)]
struct Output<'a> {
    /// The script's result as JSON text: the tool's allowlist names fixed leaves, but a result may have any type.
    value: String,
    printed: &'a str,
    calls: usize,
}

impl Instance for Script {
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
            let (Left { value, printed }, calls, remarks) = Box::pin(self.work(&host, &context)).await?;
            // A cut result would not be JSON, so only the printed text is cut.
            let value = value.to_string();
            let mut quoted = String::new();
            json::quote(&mut quoted, &value);
            let used = quoted.len() + FRAME;
            let room = max_bytes.checked_sub(used).ok_or(RunFailure::Output(ProjectError::TooLarge))?;
            let printed = format!("{remarks}{printed}");
            let output = Output { value, printed: cut_quoted(&printed, room), calls };
            projector.project(&output, max_bytes).map_err(RunFailure::Output)
        }))
    }
}

/// Returns the longest start of the text that needs at most `bytes` bytes between the quotes of its JSON string.
fn cut_quoted(text: &str, bytes: usize) -> &str {
    let (mut quoted, mut used) = (String::new(), 0);
    let end = text.char_indices().find(|(_, character)| {
        quoted.clear();
        json::quote(&mut quoted, character.encode_utf8(&mut [0; 4]));
        used += quoted.len() - 2;
        used > bytes
    });
    cut(text, end.map_or(text.len(), |(at, _)| at))
}

/// A script during its run.
struct Going<'a> {
    settings: &'a Settings,
    context: &'a ToolContext,
    work: Work,
    journal: Vec<Entry>,
}

impl Script {
    async fn work(self, host: &Host, context: &ToolContext) -> Result<(Left, usize, String), RunFailure> {
        let settings = &*self.settings;
        let (name, version, tools) = (&settings.name, &settings.version, &settings.tools);
        let identity = GraphIdentity { name, version, tools, is_script: true };
        let mut going = match host.continued() {
            None => {
                let policies = ScriptError::new("script_policies", "The run has too many policies to run a script");
                let work = host
                    .start_asking(context, &identity)
                    .ok_or_else(|| RunFailure::Tool(policies.into_error(false)))?;
                Going { settings, context, work, journal: Vec::new() }
            }
            Some(continued) => {
                let begun = continued.pending.begun;
                let paused: Paused = serde_json::from_str(&continued.pending.document)
                    .map_err(|error| RunFailure::broken(error, begun))?;
                let (runner, options) = host.again(context, &identity, &continued.pending);
                let run =
                    runner.restore(paused.run, options).await.map_err(|error| RunFailure::broken(error, begun))?;
                let mut going = Going { settings, context, work: host.work(run), journal: paused.journal };
                going.decide(continued, paused.asked).await?;
                going
            }
        };
        let permit = Arc::clone(&SLOTS).acquire_owned().await.map_err(|error| going.broken(error))?;
        let view = going.work.run.catalog();
        let tools = settings.tools.iter().filter(|name| view.get(name).is_some()).cloned().collect();
        let source = ScriptInput { text: self.source, tools, operations: settings.operations };
        let mut interpreter = Interpreter::start(source, permit).map_err(|error| going.broken(error))?;
        let (mut at, mut returned) = (0, 0);
        while let Some(call) = interpreter.asked.recv().await {
            let reply = going.reply(at, &call).await?;
            at += 1;
            returned += match &reply {
                Reply::Returned(text) | Reply::Threw(text) => text.len(),
            };
            if returned > RETURNED {
                return Err(
                    going.failed(ScriptError::new("script_budget", "The script's calls returned too much data"))
                );
            }
            // If the script's thread has ended, `end` returns the reason.
            let _ = call.reply.send(reply);
        }
        let left = interpreter.end().await.map_err(|failure| going.failed(failure))?;
        Ok((left, at, going.journal.iter().map(|entry| entry.remarks.as_str()).collect()))
    }
}

impl Going<'_> {
    /// Applies the decision on the call that waited.
    async fn decide(&mut self, continued: Continued, asked: Hash) -> Result<(), RunFailure> {
        let Continued { pending, decision, decider, earlier } = continued;
        let noted = counting::note_earlier(&self.work.run, &pending.question, &earlier).await;
        noted.map_err(|error| self.broken(error))?;
        let id = pending.call_id;
        let result = match Box::pin(self.work.run.resume(&pending.question, decision, &decider)).await {
            Ok(result) => result,
            // The call was decided before: use its recorded result.
            Err(ResumeError::NotWaiting(_)) => {
                let recorded = self.work.run.recorded(&id).await.map_err(|error| self.broken(error))?;
                recorded.ok_or(RunFailure::Unknown)?
            }
            // The call asks a new question now, because an earlier call may have had the effect, and the person has to
            // know this first.
            Err(ResumeError::NotAllowed(DecisionError::Question)) => {
                let refused = SafeError::mismatched(DecisionError::Question);
                return Err(self.waits(id, asked, Some(refused)).await);
            }
            Err(error) => return Err(self.broken(error)),
        };
        // The decision did not match, or other deciders have to approve the call too.
        if result.outcome() == Outcome::ApprovalMismatch || result.outcome().is_suspension() {
            return Err(self.waits(id, asked, result.error().cloned()).await);
        }
        self.took(asked, &result).await.map(|_| ())
    }

    /// Returns the reply to a call of the script, in order.
    async fn reply(&mut self, at: usize, call: &ScriptCall) -> Result<Reply, RunFailure> {
        if at >= self.settings.calls {
            return Err(self.failed(ScriptError::new("script_budget", "The script made too many calls")));
        }
        let asked = asked(&call.tool, &call.arguments);
        if let Some(entry) = self.journal.get(at) {
            if entry.asked != asked {
                let diverged = ScriptError::new("script_diverged", "The script made a different call than before");
                return Err(self.failed(diverged));
            }
            return Ok(entry.reply.clone());
        }
        let id = CallId::new(&format!("call_{}", at + 1));
        let made = ToolCall::text(id.clone(), call.tool.clone(), call.arguments.clone());
        let result = Box::pin(self.work.run.exec(made)).await;
        if result.outcome().is_suspension() {
            return Err(self.waits(id, asked, None).await);
        }
        self.took(asked, &result).await
    }

    /// Adds the result of a call that ended to the journal.
    async fn took(&mut self, asked: Hash, result: &ToolExecResult) -> Result<Reply, RunFailure> {
        let reply = self.returned(result).await?;
        let left_out = result.left_out();
        let left_out = (!left_out.is_none()).then(|| left_out.note());
        let remarks = [result.remark(), left_out].into_iter().flatten().fold(String::new(), |mut remarks, remark| {
            for piece in [result.call_id().as_str(), ": ", &remark, "\n"] {
                remarks.push_str(piece);
            }
            remarks
        });
        self.journal.push(Entry { asked, reply: reply.clone(), remarks });
        Ok(reply)
    }

    /// Returns the part of a result that UIs and records may show, because they also show the script's result.
    async fn returned(&self, result: &ToolExecResult) -> Result<Reply, RunFailure> {
        match result.outcome() {
            // Never ready: the gate ends the call of the script as cancelled.
            Outcome::Cancelled if self.work.run.cancellation().is_cancelled() => std::future::pending().await,
            Outcome::BudgetExceeded => {
                let what = "A budget of the run, or its guard against loops, does not allow the next call";
                Err(self.failed(ScriptError::new("script_budget", what)))
            }
            _ => Ok(match result.value() {
                Some(value) => Reply::Returned(value.get().to_owned()),
                None => Reply::Threw(result.to_model()),
            }),
        }
    }

    fn broken(&self, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> RunFailure {
        RunFailure::broken(error, self.work.begun(self.context))
    }

    fn failed(&self, failure: ScriptError) -> RunFailure {
        RunFailure::Tool(failure.into_error(self.work.begun(self.context)))
    }

    /// Pauses the script at its waiting call.
    async fn waits(&self, call: CallId, asked: Hash, refused: Option<SafeError>) -> RunFailure {
        let run = &self.work.run;
        let (pending, snapshot) = match (run.pending(&call).await, run.snapshot().await) {
            (Ok(Some(pending)), Ok(snapshot)) => (pending, snapshot),
            (Ok(None), _) => return self.broken("the call of a script does not wait"),
            (Err(error), _) | (_, Err(error)) => return self.broken(error),
        };
        let paused = Paused { run: snapshot, journal: self.journal.clone(), asked };
        let document = match serde_json::to_string(&paused) {
            Ok(document) => document.into(),
            Err(error) => return self.broken(error),
        };
        RunFailure::Waits(Box::new(PendingGraph {
            path: format!("{}{SEPARATOR}{}", self.settings.name, pending.tool),
            tool: pending.tool.to_string(),
            call_id: call.clone(),
            question: pending.question(),
            shown_arguments: Some(pending.shown_arguments.clone()),
            summary: pending.summary.clone(),
            names: pending.names.clone(),
            changes: pending.changes.clone(),
            required: pending.required,
            approvals: pending.approvals.clone(),
            rule: pending.rule.clone(),
            refused,
            run_id: run.id().into(),
            waiting: vec![call],
            begun: self.work.begun(self.context),
            document,
        }))
    }
}
