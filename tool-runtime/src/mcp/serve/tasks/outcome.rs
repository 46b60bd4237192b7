//! Asks a client whether its own call with an unknown outcome took effect. The answer settles the outcome through
//! [`Run::settle`](crate::runner::Run::settle), like every other settlement.

use std::sync::Arc;

use jiff::Timestamp;
use rmcp::model::{ElicitResult, ErrorData, InputRequest, InputResponses};
use serde_json::{Map, Value, json};

use crate::call::{CallId, Outcome, ToolExecResult};
use crate::capability::ClientError;
use crate::component::Reconciled;
use crate::mcp::serve::McpServer;
use crate::mcp::serve::client::filled;
use crate::mcp::serve::error::full;
use crate::mcp::serve::shutdown::Full;
use crate::mcp::serve::tasks::kept::SavedTask;
use crate::mcp::serve::tasks::question::{MAX_MESSAGE_BYTES, form, request};
use crate::mcp::serve::tasks::run_tasks::{Look, RunTasks, State};
use crate::mcp::serve::tasks::status::{failed, task_id};
use crate::mcp::serve::tasks::{Ticket, task_runner, unsettled};
use crate::runner::{Run, RunOptions, ServedRun, ServedRuns, ToolRunner, UnsettledCall};
use crate::text::sentence;

/// The prefix of the keys of these questions.
const OUTCOME: &str = "outcome-";

/// The maximum length of a person's reason, in characters.
const MAX_REASON: usize = 500;

/// The values of `outcome` in an answer.
const HAPPENED: &str = "happened";
const DID_NOT_HAPPEN: &str = "did_not_happen";
const RECONCILE: &str = "reconcile";

/// The person's statement about an outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Statement {
    /// The outcome, and the reason if the person gave one.
    Settles(Reconciled<String>, Option<String>),
    /// The person does not want to settle it.
    Declines,
}

/// The question about the outcome of one call, for a principal with the right to settle it.
pub(super) struct OutcomeQuestion {
    /// The key of the question. Each repetition has its own key.
    pub(super) key: String,
    pub(super) message: String,
    pub(super) form: Value,
    value: ValueField,
}

/// The form field in which a person states the result of a call that took effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueField {
    /// The tool returns `null` only.
    Nothing,
    /// A string, a number or a boolean, in a field of this type.
    Typed(&'static str),
    /// Any other value, as JSON text.
    Json,
}

impl ValueField {
    fn of(output: &Value) -> Self {
        match output.get("type").and_then(Value::as_str) {
            Some("null") => Self::Nothing,
            Some("string") => Self::Typed("string"),
            Some("integer") => Self::Typed("integer"),
            Some("number") => Self::Typed("number"),
            Some("boolean") => Self::Typed("boolean"),
            _ => Self::Json,
        }
    }

    fn schema(self) -> Option<Value> {
        let (kind, description) = match self {
            Self::Nothing => return None,
            Self::Typed(kind) => (kind, "The result of the tool, if it happened."),
            Self::Json => ("string", "The result of the tool as JSON, if it happened."),
        };
        Some(json!({"type": kind, "title": "Result", "description": description}))
    }

    /// Returns the result as JSON text. A missing result becomes `null`, which
    /// [`Run::settle`](crate::runner::Run::settle) refuses if it does not fit the tool.
    fn result(self, filled: Option<&Value>) -> String {
        match (self, filled) {
            (Self::Json, Some(Value::String(text))) => text.clone(),
            (Self::Typed(_), Some(value)) => value.to_string(),
            _ => Value::Null.to_string(),
        }
    }
}

impl OutcomeQuestion {
    /// Returns the open question of a task. `None` if it has none.
    pub(super) fn of(runner: &ToolRunner, look: &Look) -> Option<Self> {
        let State::Unsettled(_, call) = &look.state else { return None };
        let output = runner.catalog().get(&call.unknown.record.name).map(|spec| spec.output_schema.to_value());
        let value = ValueField::of(&output.unwrap_or_default());
        let key = format!("{OUTCOME}{}", look.asked + 1);
        Some(Self { key, message: message(&look.saved.name, call), form: wanted(value, call.is_reconcilable), value })
    }

    /// Returns the question in the protocol's form.
    pub(super) fn request(&self) -> Option<InputRequest> {
        form(self.message.clone(), &self.form).ok().map(request)
    }

    /// Reads a filled form. `None` if it does not answer the question.
    pub(super) fn statement(&self, filled: Result<Value, ClientError>) -> Option<Statement> {
        let filled = match filled {
            Ok(filled) => filled,
            Err(ClientError::Declined) => return Some(Statement::Declines),
            Err(_) => return None,
        };
        let outcome = outcome_in(&filled, || self.value.result(filled.get("result")))?;
        let reason = filled.get("reason").and_then(Value::as_str).filter(|reason| !reason.is_empty());
        Some(Statement::Settles(outcome, reason.map(str::to_owned)))
    }
}

/// A call that ended with an unknown outcome before its request was answered.
pub(in crate::mcp::serve) struct EndedUnknown {
    pub(in crate::mcp::serve) run: Run,
    pub(in crate::mcp::serve) party: RunOptions,
    /// The tool, by the name that the client knows.
    pub(in crate::mcp::serve) name: String,
    pub(in crate::mcp::serve) result: ToolExecResult,
}

impl EndedUnknown {
    /// Turns the call into a task that asks its client about the outcome. The caller has checked that the client can
    /// show forms. Returns the result as an error if the client cannot be asked, or if there are too many tasks.
    pub(in crate::mcp::serve) async fn ask(self, server: &McpServer) -> Result<Ticket, ToolExecResult> {
        let Self { run, party, name, result } = self;
        let (runner, tasks, call) = (&server.0.runner, &server.0.tasks, result.call_id().clone());
        let is_known = tasks.by_run().get(run.id()).is_some_and(|run_tasks| run_tasks.has(&call));
        if !tasks.limits.asks
            || server.0.calls.closing().is_cancelled()
            || is_known
            || task_id(run.id(), &call).is_none()
        {
            return Err(result);
        }
        let now = ServedRuns(runner).now();
        let expires = now.saturating_add(unsettled::OPEN).unwrap_or(Timestamp::MAX);
        let saved = SavedTask { name, created: now, expires, asks: true, asked_as: None, answered: None };
        let add = |run_tasks: &RunTasks| run_tasks.add(call.clone(), saved, Arc::default(), None);
        let Ok((run_tasks, is_new)) = tasks.run_tasks(&run, &party, add) else { return Err(result) };
        run_tasks.ended(&call, &result, now);
        if is_new {
            task_runner::start(server, &run_tasks);
        }
        match run_tasks.look(runner, &call).await {
            Ok(Some(Look { state: State::Unsettled(..), .. })) => {
                if let Err(error) = run_tasks.save(runner).await {
                    tracing::warn!(run = run.id(), error = error.code(), "an outcome question could not be stored");
                }
                Ok(Ticket { run_tasks, call })
            }
            _ => {
                run_tasks.remove(&call);
                run_tasks.changed.notify_one();
                Err(result)
            }
        }
    }
}

/// Returns the outcome in the first answer that states one, for a client that was not asked. The result of a call that
/// took effect is left out, because nothing is settled.
pub(super) fn stated(answers: &InputResponses) -> Option<Reconciled<String>> {
    let of_questions = answers.iter().filter(|(key, _)| is_key(key));
    let mut filled = of_questions.filter(|(_, answer)| answer.get("action").and_then(Value::as_str) == Some("accept"));
    filled.find_map(|(_, answer)| outcome_in(answer.get("content")?, String::new))
}

/// Returns the outcome that a filled form states, with this result if the call took effect.
fn outcome_in(filled: &Value, result: impl FnOnce() -> String) -> Option<Reconciled<String>> {
    match filled.get("outcome")?.as_str()? {
        HAPPENED => Some(Reconciled::TookEffect(result())),
        DID_NOT_HAPPEN => Some(Reconciled::Prevented),
        RECONCILE => Some(Reconciled::Unknown),
        _ => None,
    }
}

/// Whether a key belongs to a question about an outcome.
pub(super) fn is_key(key: &str) -> bool {
    key.starts_with(OUTCOME)
}

fn message(name: &str, call: &UnsettledCall) -> String {
    let (unknown, record) = (&call.unknown.call, &call.unknown.record);
    let cause = unknown.cause.map_or_else(String::new, |cause| format!(", {}", cause.as_str()));
    let summary = call.unknown.waited.as_deref().and_then(|waited| waited.sentence());
    let arguments = record.shown_arguments().map_or_else(String::new, |shown| format!(" with {}", shown.get()));
    let what = match summary {
        Some(summary) => format!("`{name}`{arguments} ({summary})"),
        None => format!("`{name}`{arguments}"),
    };
    let what = sentence(&what, MAX_MESSAGE_BYTES);
    format!("The outcome of {what} is unknown ({}{cause}): it may have taken effect. Did it?", unknown.since)
}

fn wanted(value: ValueField, is_reconcilable: bool) -> Value {
    let mut outcomes = vec![HAPPENED, DID_NOT_HAPPEN];
    let mut description = "`happened` if it took effect, `did_not_happen` if it had no effect".to_owned();
    if is_reconcilable {
        outcomes.push(RECONCILE);
        description.push_str(", `reconcile` to let the tool find out");
    }
    let mut properties = Map::new();
    let outcome = json!({"type": "string", "title": "Outcome", "description": description + ".", "enum": outcomes});
    properties.insert("outcome".to_owned(), outcome);
    if let Some(result) = value.schema() {
        properties.insert("result".to_owned(), result);
    }
    let reason = json!({
        "type": "string", "title": "Reason", "description": "How you know, for the record.", "maxLength": MAX_REASON,
    });
    properties.insert("reason".to_owned(), reason);
    json!({"type": "object", "properties": properties, "required": ["outcome"]})
}

/// Handles the answers of a task's client about the outcome of the call. Only the answer to the open question has an
/// effect.
///
/// Without such an answer, nothing changes. The first answer that states an outcome is still recorded if the outcome
/// was already settled, or if the principal may not settle it.
pub(super) async fn answer(
    server: &McpServer,
    run_tasks: &RunTasks,
    (call, look): (&CallId, &Look),
    answers: &InputResponses,
) -> Result<(), ErrorData> {
    let read = |answer: &Value| serde_json::from_value::<ElicitResult>(answer.clone()).ok();
    if let Some(question) = OutcomeQuestion::of(&server.0.runner, look)
        && let Some(answer) = answers.get(&question.key).and_then(read)
    {
        let filled = filled(&run_tasks.run, &question.form, answer);
        return state(server, run_tasks, call, question.statement(filled)).await;
    }
    let is_noted = match &look.state {
        State::Settled(_) => true,
        State::Ended(result) if result.outcome() == Outcome::OutcomeUnknown => {
            let tool = server.0.listing.get(&look.saved.name);
            tool.is_some_and(|offered| ServedRun(&run_tasks.run).own_decider(&offered.tool).is_none())
        }
        _ => false,
    };
    if !is_noted {
        return Ok(());
    }
    let (form, value) = (wanted(ValueField::Json, true), ValueField::Json);
    let closed = OutcomeQuestion { key: String::new(), message: String::new(), form, value };
    let mut statements = answers.values().filter_map(read).filter_map(|answer| {
        let filled = filled(&run_tasks.run, &closed.form, answer);
        closed.statement(filled).filter(|statement| *statement != Statement::Declines)
    });
    state(server, run_tasks, call, statements.next()).await
}

/// Carries out a person's statement.
pub(super) async fn state(
    server: &McpServer,
    run_tasks: &RunTasks,
    call: &CallId,
    statement: Option<Statement>,
) -> Result<(), ErrorData> {
    let runner = &server.0.runner;
    match statement {
        None => Ok(()),
        Some(Statement::Declines) => {
            unsettled::stop_asking(run_tasks, runner, call).await;
            Ok(())
        }
        Some(Statement::Settles(outcome, reason)) => {
            let decider = ServedRun(&run_tasks.run).decider().filter(|_| run_tasks.asks);
            let Some(decider) = decider else { return Ok(()) };
            let decider = reason.iter().fold(decider, |decider, reason| decider.because(reason));
            // A closing server waits while the tool reconciles. It drops this future when running calls must end, and
            // the outcome stays unknown.
            let _running = server.0.calls.begin().map_err(full)?;
            tokio::select! {
                biased;
                settled = Box::pin(unsettled::settle(run_tasks, runner, call, outcome, &decider)) => {
                    settled.map_err(|error| failed(&error))
                }
                () = server.0.calls.stopped().cancelled() => Err(full(Full::Closing)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(output: &Value) -> OutcomeQuestion {
        let value = ValueField::of(output);
        OutcomeQuestion { key: "outcome-1".to_owned(), message: String::new(), form: wanted(value, false), value }
    }

    #[test]
    fn a_result_has_the_form_that_its_schema_permits() {
        let happened = |output: Value, result: Value| {
            let filled = json!({"outcome": "happened", "result": result});
            match question(&output).statement(Ok(filled)) {
                Some(Statement::Settles(Reconciled::TookEffect(result), None)) => result,
                other => panic!("{other:?}"),
            }
        };
        for (output, filled, result) in [
            (json!({"type": "string"}), json!("a\"b"), r#""a\"b""#),
            (json!({"type": "integer"}), json!(7), "7"),
            (json!({"type": "boolean"}), json!(false), "false"),
            (json!({"type": "object"}), json!(r#"{"a": 1}"#), r#"{"a": 1}"#),
            (json!({"type": ["string", "null"]}), json!(r#""x""#), r#""x""#),
            (json!({"type": "null"}), json!("anything"), "null"),
            (json!({"type": "integer"}), Value::Null, "null"),
            (json!({}), Value::Null, "null"),
        ] {
            assert_eq!(happened(output.clone(), filled), result, "{output}");
        }
    }

    #[test]
    fn only_a_clear_statement_settles() {
        let asked = question(&json!({"type": "string"}));
        let states = |filled: Value| asked.statement(Ok(filled));
        let reason = Some("seen".to_owned());
        let settles = Some(Statement::Settles(Reconciled::Prevented, reason));
        assert_eq!(states(json!({"outcome": "did_not_happen", "reason": "seen"})), settles);
        assert_eq!(states(json!({"outcome": "reconcile"})), Some(Statement::Settles(Reconciled::Unknown, None)));
        for nothing in [json!({}), json!({"outcome": true}), json!({"outcome": "perhaps"}), json!("happened")] {
            assert_eq!(states(nothing), None);
        }
        assert_eq!(asked.statement(Err(ClientError::Declined)), Some(Statement::Declines));
        assert_eq!(asked.statement(Err(ClientError::Cancelled)), None);
    }
}
