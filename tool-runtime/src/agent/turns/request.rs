//! One request to the model, and the handling of its answer.

use std::sync::Arc;

use tokio::time::Instant;
use tracing::{Instrument, Span};

use crate::agent::meter::Meter;
use crate::agent::telemetry::{Answering, Chat};
use crate::agent::turns::Turns;
use crate::agent::turns::events::{self, Display};
use crate::agent::turns::state::{AfterAnswer, LastAnswer, Slot};
use crate::agent::typed::{self, Judged, Typed};
use crate::agent::{ModelError, ModelErrorKind, ModelRequest, ModelTurn, StopReason, TurnCall, TurnOutcome, picking};
use crate::call::Event;
use crate::contain::awaited;
use crate::wire::history::ResultMessage;
use crate::wire::{Decoded, DisplayEvent, FinishReason, Message, RequestSettings, ToolChoice, Usage};

/// The result of a call that gives the typed answer together with other calls.
const TOO_EARLY: &str = "The other calls of this turn come first. Give the answer alone, once they have their results.";

impl Turns {
    /// Asks the model for one turn, charges its tokens, and adds its answer to the history.
    pub(in crate::agent) async fn request(&mut self) -> Result<(), StopReason> {
        let settings = self.settings();
        let offered = picking::offered(self.agent.picking.as_ref(), &self.run, &settings).await;
        self.prepare();
        let typed = typed::expected(&mut self.state.typed, &self.run);
        let client = &*self.agent.model;
        let answering = Answering::of(client);
        let answering = answering.map_err(|text| self.unanswered(ModelError::new(ModelErrorKind::Panicked, text)))?;
        let tools = offered.as_deref().unwrap_or_else(|| self.run.catalog());
        let known_hash = self.state.history.prompt_hash(&answering.model, tools.hash());
        let left_out = self.state.history.bound();
        let request = ModelRequest {
            messages: left_out.as_deref().unwrap_or_else(|| self.state.history.request()),
            tools,
            settings: &settings,
            answer: typed.as_ref().map(Typed::tool),
        };
        let prompt_hash = known_hash.unwrap_or_else(|| request.prompt_hash(&answering.model));
        let started = Instant::now();
        let mut display = Display::new(
            self.run.clone(),
            Arc::clone(self.state.history.ids()),
            typed.as_ref().map(|typed| typed.tool().name.to_owned()),
        );
        let chat = Chat::begin(&self.run, &answering, &settings, typed.is_some());
        let activity = display.activity();
        let meter = Meter::begin(&self.run, self.agent.prices, &request);
        let mut show = |event: DisplayEvent<'_>| {
            meter.hears(&event);
            display.show(event);
        };
        let answer = awaited(|| client.complete(request, &mut show)).instrument(chat.span());
        let answer = events::with_status(&self.run, &activity, answer);
        let answer = self.run.cancellation().run_until_cancelled(answer).await.ok_or(StopReason::Cancelled)?;
        let answer = answer.unwrap_or_else(|text| Err(ModelError::new(ModelErrorKind::Panicked, text)));
        let mut decoded = match answer {
            Ok(decoded) => decoded,
            Err(error) => {
                chat.failed(error.code());
                meter.unanswered();
                return Err(self.unanswered(error));
            }
        };
        let span = chat.answered(&decoded);
        display.finish(&mut decoded);
        let usage = meter.answered(&decoded);
        let is_estimated = |usage: Option<Usage>| usage.is_some_and(|usage| usage.estimated);
        if is_estimated(usage) && !self.state.turns.iter().any(|turn| is_estimated(turn.usage)) {
            tracing::warn!(
                run = self.run.id(),
                "the provider does not count tokens, so budgets are charged with an estimate"
            );
        }
        let is_answer = |name: &str| typed.as_ref().is_some_and(|typed| typed.is_answer(name));
        let turn = ModelTurn {
            model: answering.model,
            prompt_hash,
            response_id: decoded.response_id.clone(),
            finish: decoded.finish,
            usage,
            latency_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            calls: decoded
                .calls
                .iter()
                .filter(|call| !is_answer(&call.call.name))
                .map(|call| TurnCall::new(&call.call))
                .collect(),
        };
        for call in turn.calls.iter().filter(|call| call.outside_choice) {
            tracing::warn!(run = self.run.id(), tool = call.name, "the model called a tool outside the forced choice");
        }
        if self.state.turns.is_empty() {
            self.state.version = Some(self.agent.version(self.run.version()));
        }
        self.state.turns.push(turn);
        self.take(decoded, span);
        Ok(())
    }

    /// Reports to operators that no answer began.
    fn unanswered(&self, error: ModelError) -> StopReason {
        self.run.report("the model gave no answer", error.code(), &error.chain());
        StopReason::Model(error)
    }

    /// Adds the model's answer to the history, and queues its calls for the gate.
    fn take(&mut self, mut decoded: Decoded, span: Span) {
        let (ended_well, is_empty) = (decoded.ended_well(), decoded.is_empty());
        let mut parts = decoded.parts();
        let by_call = decoded.calls.len();
        let answer = typed::take_answer(self.state.typed.as_ref(), &mut decoded, &mut parts);
        let by_call = by_call > decoded.calls.len();
        let message = Message::Assistant(parts);
        // The text includes the text of a refusal.
        let text = message.text();
        let has_parts = !matches!(&message, Message::Assistant(parts) if parts.is_empty());
        let Decoded { calls, finish, error, .. } = decoded;
        if has_parts {
            let early = message
                .calls()
                .filter(|call| self.state.typed.as_ref().is_some_and(|typed| typed.is_answer(&call.name)));
            let early = early.map(|call| Message::Result(ResultMessage::failed(call.id.clone(), TOO_EARLY)));
            let early: Vec<_> = early.collect();
            self.state.history.push(message);
            early.into_iter().for_each(|result| self.state.history.push(result));
        }
        if let Some(answer) = answer {
            self.state.answer = self.judged(&answer, by_call, text);
            return;
        }
        self.run.begin_turn();
        let none = calls.is_empty();
        // The calls of an interrupted answer go through the gate too, which refuses and records each.
        self.state.open = calls.into_iter().map(|call| Slot::queued(&self.run, call.call)).collect();
        // A paused turn is sent back unchanged, if it contains anything.
        let paused = finish == FinishReason::Pause && none && has_parts;
        let then = match (ended_well, none) {
            (false, _) if !paused => AfterAnswer::Incomplete { finish, error },
            (true, true) if is_empty => AfterAnswer::Empty,
            (true, true) => AfterAnswer::Answered,
            _ => AfterAnswer::Continue,
        };
        self.state.answer = Some(LastAnswer { then, text, span: Some(span) });
    }

    /// Returns the end for a typed answer. `None` if the problems are returned to the model.
    fn judged(&mut self, answer: &str, by_call: bool, text: String) -> Option<LastAnswer> {
        let (then, text) = match typed::judge(&mut self.state.typed, &self.run, answer)? {
            Judged::Answer(text) => {
                if by_call {
                    self.run.emit(Event::TextDelta { text: text.clone() });
                }
                (AfterAnswer::Answered, text)
            }
            Judged::Again(told) => {
                self.state.history.push(Message::user(told));
                return None;
            }
            Judged::Invalid(violations) => (AfterAnswer::Invalid(violations), text),
        };
        Some(LastAnswer { then, text, span: None })
    }

    /// Returns the maximum number of concurrent calls: the lower limit of agent and policy.
    pub(in crate::agent) fn parallel(&self) -> usize {
        self.agent.parallel.unwrap_or(usize::MAX).min(self.run.parallel())
    }

    pub(in crate::agent) fn stopped(&self, reason: StopReason, text: String) -> TurnOutcome {
        let (code, message) = (reason.code().to_owned(), reason.to_string());
        self.run.emit(Event::Error { code, message });
        TurnOutcome::Stopped { reason, text }
    }

    /// Returns the settings of the message, completed by the agent's settings.
    fn settings(&self) -> RequestSettings {
        let mut settings = self.state.settings.clone().or(&self.agent.settings);
        // A choice that forces a call applies until the first answer only: if it applied to each, the model could never
        // end the request.
        if self.state.turns.len() > self.state.earlier_turns
            && settings.tool_choice.as_ref().is_some_and(ToolChoice::forces)
        {
            settings.tool_choice = None;
        }
        if settings.parallel_calls.is_none() && self.parallel() > 1 {
            settings.parallel_calls = Some(true);
        }
        settings
    }

    /// Prepares the history for a request, with the instructions.
    fn prepare(&mut self) {
        let guidance = Some(self.run.guidance()).filter(|text| self.agent.guidance && !text.is_empty());
        let parts: Vec<_> = self.agent.instructions.as_deref().into_iter().chain(guidance.as_deref()).collect();
        let instructions = (!parts.is_empty()).then(|| parts.join("\n\n"));
        self.state.history.prepare(instructions);
    }
}
