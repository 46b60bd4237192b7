//! [`Steps`]: converts the runner's events to UI events, and adds the step boundaries, which the runner does not emit.

use serde::Serialize;
use serde_json::value::to_raw_value;

use crate::call::{
    ArgumentChange, CallId, Event, Intervention, JsonText, LeftOut, NamedArgument, Outcome, Question, SafeError,
};
use crate::wire::Usage;
use crate::wire::ui::UiEvent;
use crate::wire::ui::call::{Wait, failure, is_discovered};
use crate::wire::ui::order::Order;

/// The state of the current step.
#[derive(Default)]
pub(super) struct Steps {
    /// The calls that run: they have not ended and are not suspended.
    running: Vec<CallId>,
    /// Whether a call of this step ended or is suspended. In that case the model's next text begins a new step.
    settled: bool,
    usage: Usage,
    total: Usage,
}

impl Steps {
    pub(super) fn push(&mut self, event: &Event, order: &mut Order) {
        match event {
            Event::TextDelta { text } => {
                self.turn(order);
                order.push(&UiEvent::TextDelta { text: text.clone() });
            }
            Event::ReasoningDelta { text } => {
                self.turn(order);
                order.push(&UiEvent::ReasoningDelta { text: text.clone() });
            }
            Event::Source { id, url, title } => {
                order.push(&UiEvent::Source { id: id.clone(), url: url.clone(), title: title.clone() });
            }
            Event::File { media_type, url } => {
                order.push(&UiEvent::File { media_type: media_type.clone(), url: url.clone() });
            }
            Event::Data { name, id, value } => {
                order.push(&UiEvent::Data { name: name.clone(), id: id.clone(), value: value.clone() });
            }
            Event::ToolCallDelta { id, name, delta } => {
                self.start(id, name, order);
                order.push(&UiEvent::ToolArgsDelta { id: id.to_string(), delta: delta.clone() });
            }
            Event::ToolCallStart { id, name } => self.start(id, name, order),
            Event::ToolCallSuspended { id, name, arguments, summary, changes, names, outcome, prepared, question } => {
                self.start(id, name, order);
                self.settle(id);
                order.reopen(id.as_str(), name);
                let asked = ApprovalData {
                    tool_call_id: id.as_str(),
                    approval_id: question,
                    summary: summary.as_deref(),
                    changes,
                    names,
                };
                suspend(&asked, *outcome, prepared.as_ref().or(arguments.as_ref()), order);
            }
            Event::ToolCallResult { id, name, arguments, outcome, value, error, executed, left_out, earlier_call } => {
                // A call of an earlier response may be unknown here; then it starts here.
                self.start(id, name, order);
                self.settle(id);
                let id = id.to_string();
                tell_arguments(&id, *outcome, arguments.as_ref(), error.as_ref(), order);
                let asked = order.call(&id).and_then(|call| match &call.wait {
                    Wait::Asked(approval_id, _) => Some(approval_id.clone()),
                    _ => None,
                });
                let never_ran = !executed && !matches!(outcome, Outcome::Ok | Outcome::OutcomeUnknown);
                let is_refused = never_ran && asked.is_some();
                if let Some(approval_id) = asked {
                    let reason = error.as_ref().filter(|_| is_refused && !is_denial(*outcome));
                    let reason = reason.map(|error| error.safe_message.clone());
                    order.push(&UiEvent::ApprovalResponse { approval_id, approved: !is_refused, reason });
                }
                order.push(&ended(id.clone(), *outcome, value.as_ref(), error.as_ref(), is_refused));
                if let Some(call) = earlier_call {
                    let message = Intervention::EARLIER;
                    let earlier = EarlierCallData { tool_call_id: &id, earlier_call_id: call.as_str(), message };
                    push_data("earlier-call", &id, &earlier, order);
                }
                if !left_out.is_none() {
                    let missing = Missing { tool_call_id: &id, of: *left_out, message: left_out.note() };
                    push_data("left-out", &id, &missing, order);
                }
            }
            Event::Graph { .. } => {}
            Event::Usage { input_tokens, output_tokens, .. } => {
                for sum in [&mut self.usage, &mut self.total] {
                    sum.input_tokens = sum.input_tokens.saturating_add(*input_tokens);
                    sum.output_tokens = sum.output_tokens.saturating_add(*output_tokens);
                }
            }
            Event::Status { text } => order.status(text),
            Event::Error { code, message } => {
                order.push(&UiEvent::Error { code: Some(code.clone()), message: message.clone() });
            }
            Event::Done { reason } => {
                order.push(&UiEvent::StepFinish { reason: reason.clone(), usage: self.usage, continued: false });
                order.push(&UiEvent::Finish { reason: reason.clone(), usage: self.total });
            }
        }
    }

    /// The token counts of all steps so far.
    pub(super) fn total(&self) -> Usage {
        self.total
    }

    /// Ends the step before the next text or call of the model if a call of this step has ended or is suspended, and
    /// none still runs.
    fn turn(&mut self, order: &mut Order) {
        if self.running.is_empty() && std::mem::take(&mut self.settled) {
            let usage = std::mem::take(&mut self.usage);
            order.push(&UiEvent::StepFinish { reason: "tool-calls".to_owned(), usage, continued: false });
        }
    }

    fn start(&mut self, id: &CallId, name: &str, order: &mut Order) {
        if order.knows(id.as_str()) || self.running.contains(id) {
            return;
        }
        self.turn(order);
        self.running.push(id.clone());
        order.push(&UiEvent::ToolStart {
            id: id.to_string(),
            name: name.to_owned(),
            parent_id: None,
            dynamic: is_discovered(name),
        });
    }

    fn settle(&mut self, id: &CallId) {
        self.running.retain(|other| other != id);
        self.settled = true;
    }
}

/// The omitted parts of a result. They are written as data of the message, because no protocol can attach them to an
/// output.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Missing<'a> {
    tool_call_id: &'a str,
    #[serde(flatten)]
    of: LeftOut,
    message: String,
}

/// The mark of a result that was taken from an earlier call. It is data of the message, because no protocol can attach
/// it to an output.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EarlierCallData<'a> {
    tool_call_id: &'a str,
    earlier_call_id: &'a str,
    message: &'a str,
}

/// The data that a person reads about a call, in addition to its arguments.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApprovalData<'a> {
    tool_call_id: &'a str,
    approval_id: &'a Question,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    changes: &'a [ArgumentChange],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    names: &'a [NamedArgument],
}

/// Suspends a call. `shown` replaces the arguments in the UI: for a client, the payload that the tool prepared; for a
/// person, the masked arguments. Other data for the person is data of the message, because no protocol can attach it
/// to the call.
fn suspend(asked: &ApprovalData<'_>, outcome: Outcome, shown: Option<&JsonText>, order: &mut Order) {
    let id = asked.tool_call_id.to_owned();
    if let Some(shown) = shown {
        order.push(&UiEvent::ToolArgs { id: id.clone(), arguments: shown.clone() });
    }
    if outcome == Outcome::ClientRequired {
        order.push(&UiEvent::ClientRequest { id });
        return;
    }
    // In a protocol without frames for approvals, this data also shows the question.
    let explains = asked.summary.is_some() || !asked.changes.is_empty() || !asked.names.is_empty();
    if explains || !order.shows_approvals() {
        push_data("approval", &id, asked, order);
    }
    let reason = asked.summary.map(str::to_owned);
    order.push(&UiEvent::ApprovalRequest { approval_id: asked.approval_id.to_string(), id, reason });
}

/// Writes data about a call into the message.
fn push_data(name: &str, id: &str, value: &impl Serialize, order: &mut Order) {
    if let Ok(value) = to_raw_value(value) {
        order.push(&UiEvent::Data { name: name.to_owned(), id: Some(id.to_owned()), value: value.into() });
    }
}

fn tell_arguments(
    id: &str,
    outcome: Outcome,
    arguments: Option<&JsonText>,
    error: Option<&SafeError>,
    order: &mut Order,
) {
    let id = id.to_owned();
    match (arguments, error) {
        (Some(arguments), _) => order.push(&UiEvent::ToolArgs { id, arguments: arguments.clone() }),
        (None, Some(error)) if outcome == Outcome::InvalidJson => {
            order.push(&UiEvent::ToolArgsError { id, message: error.safe_message.clone() });
        }
        (None, _) => {}
    }
}

fn ended(
    id: String,
    outcome: Outcome,
    value: Option<&JsonText>,
    error: Option<&SafeError>,
    is_refused: bool,
) -> UiEvent {
    if outcome == Outcome::Ok {
        let result = value.cloned().unwrap_or_else(JsonText::null);
        return UiEvent::ToolResult { id, result, is_error: false, artifact: None };
    }
    let message = error.map_or(outcome.code(), |error| &error.safe_message);
    let result = JsonText::known(failure(outcome, message));
    // Clients would show a failure as that of an approved call.
    if is_refused || is_denial(outcome) {
        return UiEvent::ToolDenied { id, result };
    }
    UiEvent::ToolResult { id, result, is_error: true, artifact: None }
}

/// Whether the outcome is a denied or expired approval.
const fn is_denial(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::ApprovalDenied | Outcome::ApprovalExpired)
}
