//! The loop: model, gate, model, .. until the turn ends.

use std::collections::HashSet;

use tokio::time::Instant;
use tracing::{Instrument, Span};

use crate::agent::display::{self, Display};
use crate::agent::state::{Progress, Slot};
use crate::agent::telemetry::{Answering, Chat, Used};
use crate::agent::turn::{self, Progressed};
use crate::agent::typed::{Judged, Typed};
use crate::agent::{Conversation, Ended, ModelError, ModelErrorKind, ModelRequest, ModelTurn, StopReason, TurnCall};
use crate::call::{CallId, Event, ToolCall};
use crate::contain::awaited;
use crate::wire::history::{Missing, ResultMessage, bounded, repair};
use crate::wire::{Decoded, DisplayEvent, Finish, Message, RequestSettings, ToolChoice};

/// The result of an answer that came together with other calls.
const TOO_EARLY: &str = "The other calls of this turn come first. Give the answer alone, once they have their results.";

impl Conversation {
    /// Model, gate, model, .. until there is an end.
    pub(super) async fn drive(&mut self) -> Ended {
        let mut used = Used::default();
        loop {
            if self.run.cancellation().is_cancelled() {
                return self.stopped(StopReason::Cancelled, String::new());
            }
            if let Some(exceeded) = self.run.exhausted() {
                return self.stopped(StopReason::Budget(exceeded), String::new());
            }
            if self.state.asked >= self.agent.max_turns {
                return self.stopped(StopReason::TurnLimit, String::new());
            }
            self.state.asked += 1;
            let (decoded, turn) = match self.request().await {
                Ok(answer) => answer,
                Err(reason) => return self.stopped(reason, String::new()),
            };
            used.add(decoded.usage);
            if let Some(ended) = self.take(decoded, &turn).await {
                return ended;
            }
        }
    }

    /// Asks the model for one turn and accounts it. Returns the turn's span too.
    async fn request(&mut self) -> Result<(Decoded, Span), StopReason> {
        let messages = self.messages();
        // What this request has no room for, no later one has: only the first reports the loss, and memory stays bounded.
        if let Some(bounded) = bounded(&self.state.history) {
            self.state.history = bounded.messages;
        }
        let settings = self.settings();
        let typed = self.expected();
        let request = ModelRequest {
            messages: &messages,
            tools: self.run.catalog(),
            settings: &settings,
            answer: typed.as_ref().map(Typed::tool),
        };
        let client = &*self.agent.model;
        let answering = Answering::of(client);
        let answering = answering.map_err(|text| self.unanswered(ModelError::new(ModelErrorKind::Panicked, text)))?;
        let prompt_hash = request.prompt_hash(&answering.model);
        let started = Instant::now();
        let mut display =
            Display::new(self.run.clone(), self.ids(), typed.as_ref().map(|typed| typed.tool().name.to_owned()));
        let chat = Chat::begin(&self.run, &answering, &settings, typed.is_some());
        let activity = display.activity();
        let mut show = |event: DisplayEvent<'_>| display.show(event);
        let answer = awaited(|| client.complete(request, &mut show)).instrument(chat.span());
        let answer = display::with_status(&self.run, &activity, answer);
        let answer = self.run.cancellation().run_until_cancelled(answer).await.ok_or(StopReason::Cancelled)?;
        let answer = answer.unwrap_or_else(|text| Err(ModelError::new(ModelErrorKind::Panicked, text)));
        let mut decoded = match answer {
            Ok(decoded) => decoded,
            Err(error) => {
                chat.failed(error.code());
                return Err(self.unanswered(error));
            }
        };
        let span = chat.answered(&decoded);
        display.finish(&mut decoded);
        if let Some(usage) = decoded.usage {
            self.run.account(usage, self.agent.prices.cost(&usage));
            self.run.emit(Event::Usage {
                input_tokens: usage.total_input(),
                output_tokens: usage.total_output(),
                cache_read_tokens: usage.cache_read_tokens,
                cache_write_tokens: usage.cache_write_tokens,
                reasoning_tokens: usage.reasoning_tokens,
            });
        }
        let is_answer = |name: &str| typed.as_ref().is_some_and(|typed| typed.is_answer(name));
        let turn = ModelTurn {
            model: answering.model,
            prompt_hash,
            response_id: decoded.response_id.clone(),
            finish: decoded.finish,
            usage: decoded.usage,
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
        self.state.turns.push(turn);
        Ok((decoded, span))
    }

    /// Logs and reports that no answer began.
    fn unanswered(&self, error: ModelError) -> StopReason {
        self.run.report("the model gave no answer", error.code(), &error.chain());
        StopReason::Model(error)
    }

    /// The model's answer goes into the history, and its calls through the gate. `None` if the model is next.
    async fn take(&mut self, mut decoded: Decoded, turn: &Span) -> Option<Ended> {
        let (ended_well, is_empty) = (decoded.ended_well(), decoded.is_empty());
        let mut parts = decoded.parts();
        let by_call = decoded.calls.len();
        let answer = self.take_answer(&mut decoded, &mut parts);
        let by_call = by_call > decoded.calls.len();
        let message = Message::Assistant(parts);
        // The words with which a model refuses count as its text.
        let text = message.text();
        let said = !matches!(&message, Message::Assistant(parts) if parts.is_empty());
        let Decoded { calls, finish, error, .. } = decoded;
        if said {
            let early = message
                .calls()
                .filter(|call| self.state.typed.as_ref().is_some_and(|typed| typed.is_answer(&call.name)));
            let early = early.map(|call| Message::Result(ResultMessage::failed(call.id.clone(), TOO_EARLY)));
            let early: Vec<_> = early.collect();
            self.state.history.push(message);
            self.state.history.extend(early);
        }
        if let Some(answer) = answer {
            return self.judged(&answer, by_call, text);
        }
        let none = calls.is_empty();
        // Calls of an unclean end go through the gate too: it refuses and records each.
        self.execute(calls.into_iter().map(|call| call.call).collect(), turn).await;
        // A paused turn is sent back as it is, as long as it brought something.
        let paused = finish == Finish::Pause && none && said;
        if !ended_well && !paused {
            self.state.close();
            let detail = error.as_ref().and_then(|error| error.message.clone());
            let reason = StopReason::Incomplete { finish, error };
            if let Some(detail) = detail {
                self.run.report("the model's answer broke off", reason.code(), &detail);
            }
            return Some(self.stopped(reason, text));
        }
        if ended_well && none {
            return Some(if is_empty { self.stopped(StopReason::EmptyAnswer, text) } else { Ended::Answered { text } });
        }
        self.after_calls(text).await
    }

    /// An answer that fits ends the turn; `None` if the model is told what is wrong with it.
    fn judged(&mut self, answer: &str, by_call: bool, text: String) -> Option<Ended> {
        match self.judge(answer)? {
            Judged::Answer(text) => {
                if by_call {
                    self.run.emit(Event::TextDelta { text: text.clone() });
                }
                Some(Ended::Answered { text })
            }
            Judged::Again => None,
            Judged::Unfit(violations) => Some(self.stopped(StopReason::UnfitAnswer(violations), text)),
        }
    }

    async fn execute(&mut self, calls: Vec<ToolCall>, turn: &Span) {
        self.run.begin_turn();
        let slot = |call: &ToolCall| Slot::queued(&self.run, call.id.clone(), call.name.clone());
        self.state.open = calls.iter().map(slot).collect();
        let parallel = self.parallel();
        let state = &mut self.state;
        turn::execute(&self.run, turn, calls, parallel, |progressed| match progressed {
            Progressed::Begun(at) => {
                state.set(at, Progress::Running);
            }
            Progressed::Ended(at, result) => state.take(at, &result),
        })
        .await;
    }

    /// How many calls may run at the same time: the lower limit of agent and policy.
    fn parallel(&self) -> usize {
        self.agent.parallel.unwrap_or(usize::MAX).min(self.run.parallel())
    }

    /// Continues after answers from outside.
    pub(super) async fn go_on(&mut self) -> Ended {
        self.look_up().await;
        match self.after_calls(String::new()).await {
            Some(ended) => ended,
            None => self.drive().await,
        }
    }

    /// Hands over when a call waits, ends the turn when the model only fails, and lets the model continue otherwise.
    async fn after_calls(&mut self, text: String) -> Option<Ended> {
        self.describe().await;
        let calls: Vec<_> = self.waiting().cloned().collect();
        if !calls.is_empty() {
            return Some(Ended::Waiting { calls });
        }
        self.state.close();
        self.run.should_end_turn().then(|| self.stopped(StopReason::AskUser, text))
    }

    pub(super) fn stopped(&self, reason: StopReason, text: String) -> Ended {
        let (code, message) = (reason.code().to_owned(), reason.to_string());
        self.run.emit(Event::Error { code, message });
        Ended::Stopped { reason, text }
    }

    /// The settings of the message over those of the agent.
    fn settings(&self) -> RequestSettings {
        let mut settings = self.state.settings.clone().or(&self.agent.settings);
        // A choice that forces a call holds for the first turn only: with it in each, the model could never answer.
        if self.state.asked > 1 && settings.tool_choice.as_ref().is_some_and(ToolChoice::forces) {
            settings.tool_choice = None;
        }
        if settings.parallel_calls.is_none() && self.parallel() > 1 {
            settings.parallel_calls = Some(true);
        }
        settings
    }

    /// The instructions and the repaired history.
    fn messages(&self) -> Vec<Message> {
        let guidance = Some(self.run.catalog().guidance()).filter(|text| self.agent.guidance && !text.is_empty());
        let parts: Vec<_> = self.agent.instructions.as_deref().into_iter().chain(guidance.as_deref()).collect();
        let system = (!parts.is_empty()).then(|| Message::System(parts.join("\n\n")));
        system.into_iter().chain(repair(&self.state.history, |_| Missing::OutcomeUnknown)).collect()
    }

    /// The ids of this conversation's calls.
    fn ids(&self) -> HashSet<CallId> {
        self.state.history.iter().flat_map(Message::calls).map(|call| call.id.clone()).collect()
    }
}
