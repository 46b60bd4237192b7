//! [`Conversation`]: what an application does with an agent.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use tracing::Instrument;

use crate::agent::display::Done;
use crate::agent::settle::Action;
use crate::agent::state::{Said, State};
use crate::agent::{Agent, ClientAnswer, Ended, Incoming, ModelTurn, StopReason, WaitingCall};
use crate::call::{Decider, Event, EventSink, Mismatch, Question, SafeError, Suspension};
use crate::runner::{ApprovalDecision, ResumeError, Run};
use crate::wire::history::Content;
use crate::wire::{Message, RequestSettings};

/// One history and the run that its calls go through. Made by [`Agent::converse`] or [`Agent::restore`].
///
/// Every method that returns an [`Ended`] emits exactly one `done` event, also when it refuses what came in and when its
/// future is dropped. A dropped future leaves a history that can continue: a call that was interrupted gets the result
/// of its record, or `outcome_unknown` if its effect may have begun.
///
/// A service that holds no conversation between two requests saves it after each ([`save`](Self::save), which also
/// works when a turn was dropped) and restores it for the next ([`Agent::restore`]). What a chat UI posts is read by the
/// [`chat_reader`](Self::chat_reader) and taken by [`receive`](Self::receive). Each request gets a stream of
/// its own with [`ui_stream`](Self::ui_stream) or [`events`](Self::events).
///
/// ```
/// use tool_runtime::agent::{Agent, Ended, Incoming, ScriptedModel, ScriptedTurn};
/// use tool_runtime::call::Decider;
/// use tool_runtime::runner::ApprovalDecision;
/// use tool_runtime::{RunOptions, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};
///
/// /// Deletes a note.
/// #[tool(name = "notes__delete", effect = state_change, redact = ["$"])]
/// fn delete(
///     /// The number of the note.
///     note: u32,
/// ) -> Result<String, ToolError> {
///     Ok(format!("deleted note {note}"))
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let policy = ToolPolicy::from_toml(
///     r#"
///     allowed_tools = ["notes__delete"]
///     require_approval_for_tools = ["notes__delete"]
///     "#,
/// )?;
/// let catalog = ToolCatalog::builder().tool::<delete>().build()?;
/// let runner = ToolRunner::builder(catalog, policy).approvals(true).build()?;
/// let script = [ScriptedTurn::call("c1", "notes__delete", r#"{"note":7}"#), ScriptedTurn::text("Done.")];
/// let agent = Agent::new(ScriptedModel::new(script));
///
/// // One request asks; the call then waits for a person.
/// let mut conversation = agent.converse(runner.run(RunOptions::new().principal("ada")));
/// let Ended::Waiting { calls } = conversation.send("Delete note 7.").await else { panic!("it waits") };
/// assert_eq!(calls[0].shown_arguments.as_ref().map(|shown| shown.get()), Some(r#"{"note":7}"#));
/// let saved = conversation.save().await?;
///
/// // Another one, perhaps in another process, brings the decision.
/// let mut conversation = agent.restore(&runner, RunOptions::new().principal("ada"), &saved).await?;
/// let incoming = Incoming::new().decide(&calls[0].question, ApprovalDecision::Approve, &Decider::new("grace"));
/// let ended = conversation.receive(incoming).await?;
/// assert!(matches!(ended, Ended::Answered { text } if text == "Done."));
/// # Ok(()) })
/// # }
/// ```
pub struct Conversation {
    pub(super) agent: Agent,
    pub(super) run: Run,
    pub(super) state: State,
}

impl Conversation {
    /// Takes a message of the user; the model and the gate take turns until it is answered or somebody has to act.
    ///
    /// Calls that still wait are abandoned: the model reads that nobody acted on them.
    pub async fn send(&mut self, text: impl Into<String>) -> Ended {
        let done = Done::new(self);
        // On the heap: the whole request is one future, which callers hold.
        let ended = Box::pin(self.take_in(Incoming::new().text(text))).instrument(done.span()).await;
        done.with(ended)
    }

    /// Takes the client's results of calls that it executes. Once no call waits, the model continues.
    ///
    /// # Errors
    /// One of the calls does not wait for a client, or is answered twice; no answer was taken. A refusal emits an `error`
    /// event and a `done` event; to learn of it before a response begins, call [`check`](Self::check).
    pub async fn answer(&mut self, answers: impl IntoIterator<Item = ClientAnswer>) -> Result<Ended, ResumeError> {
        self.receive(Incoming { answers: answers.into_iter().collect(), ..Incoming::new() }).await
    }

    /// Takes a person's answer to the question of a call that waits for them. Once no call waits, the model continues.
    ///
    /// # Errors
    /// The call does not wait for a person, asks another question now, or the decider may not decide; the conversation is
    /// unchanged, and the refusal is recorded. See [`answer`](Self::answer) for the events.
    pub async fn decide(
        &mut self,
        question: &Question,
        decision: ApprovalDecision,
        decider: &Decider,
    ) -> Result<Ended, ResumeError> {
        self.receive(Incoming::new().decide(question, decision, decider)).await
    }

    /// Takes everything that one request brings: first the decisions, then the answers, then the message of the user.
    /// Without a message the model continues once no call waits; an empty [`Incoming`] continues an interrupted turn.
    /// A decision or an answer that does not fit emits an `error` event and leaves its call waiting, which a message of
    /// the user then abandons.
    ///
    /// # Errors
    /// A call does not wait for the decision or answer that names it, occurs twice, or asks another question now; or a
    /// decider may not decide. The conversation is unchanged. See [`answer`](Self::answer) for the events.
    pub async fn receive(&mut self, incoming: Incoming) -> Result<Ended, ResumeError> {
        let done = Done::new(self);
        if let Err(refused) = self.check(&incoming).await {
            self.refuse(&refused);
            done.refused(refused.code());
            return Err(refused);
        }
        let ended = Box::pin(self.take_in(incoming)).instrument(done.span()).await;
        Ok(done.with(ended))
    }

    /// Takes everything that one request brings, as [`receive`](Self::receive) does, without asking the model:
    /// [`step`](Self::step) continues. An approved call runs, and a message abandons the calls that still wait. A
    /// decision or an answer that does not fit leaves its call waiting, and emits an `error` event.
    ///
    /// # Errors
    /// A call does not wait for the decision or answer that names it, occurs twice, or asks another question now; or a
    /// decider may not decide. The conversation is then unchanged. If the store failed, the calls after the one that
    /// could not be finished still wait.
    pub async fn accept(&mut self, incoming: Incoming) -> Result<(), ResumeError> {
        let admitted = match self.check(&incoming).await {
            Ok(()) => Box::pin(self.admit(incoming)).await,
            Err(refused) => Err(refused),
        };
        match admitted {
            Ok(misfit) => {
                self.tell(misfit);
                Ok(())
            }
            Err(error) => {
                self.refuse(&error);
                Err(error)
            }
        }
    }

    async fn take_in(&mut self, incoming: Incoming) -> Ended {
        match Box::pin(self.admit(incoming)).await {
            Ok(misfit) => {
                let ended = Box::pin(self.drive()).await;
                self.tell(misfit);
                ended
            }
            Err(error) => self.stopped(StopReason::Unsettled(error), String::new()),
        }
    }

    pub(super) fn refuse(&self, refused: &ResumeError) {
        self.run.emit(Event::Error { code: refused.code().to_owned(), message: refused.to_string() });
    }

    /// Without it a client would believe that its answer was taken, and send the same one again.
    fn tell(&self, misfit: Option<SafeError>) {
        if let Some(error) = misfit {
            self.run.emit(Event::Error { code: error.error_code.code().to_owned(), message: error.safe_message });
        }
    }

    /// Takes what comes from outside. Returns why a decision or an answer did not fit.
    async fn admit(&mut self, incoming: Incoming) -> Result<Option<SafeError>, ResumeError> {
        let Incoming { text, media, settings, decisions, expired, answers, typed } = incoming;
        let decided = |(question, decision, decider): (Question, _, _)| {
            (question.call_id().clone(), Action::Decide(question, decision, decider))
        };
        let late = |question: Question| (question.call_id().clone(), Action::Expire(question));
        let decisions = decisions.into_iter().map(decided).chain(expired.into_iter().map(late));
        let answers = answers.into_iter().map(|answer| (answer.id().clone(), Action::Answer(answer)));
        let mut misfit = None;
        for (id, action) in decisions.chain(answers) {
            misfit = misfit.or(self.act(&id, action).await?);
        }
        let content = Incoming::content(text, media);
        self.expect(typed, !content.is_empty());
        if !content.is_empty() {
            self.say(content, settings).await?;
            return Ok(misfit);
        }
        // Whatever the turn ended with, it continues now; what waits or has not run comes first.
        if self.state.open.is_empty() && self.state.said.as_ref().is_some_and(Said::is_end) {
            self.state.said = None;
        }
        Ok(misfit)
    }

    /// Checks that every decision and answer is for a call that waits for it, that every decision answers the question
    /// that its call asks now, and that every decider may decide, without taking any: for services that have to refuse a
    /// request before its response begins. Each refused decision on a known call is recorded.
    ///
    /// # Errors
    /// A call does not wait for the decision or answer that names it, or occurs twice; a decision answers another
    /// question; or a decider may not decide.
    pub async fn check(&self, incoming: &Incoming) -> Result<(), ResumeError> {
        let checked = self.compare(incoming).await;
        if checked.is_err() {
            for (question, kind, decider) in incoming.brought() {
                // It is refused for the same reason as here, and recorded.
                let _refused = self.run.admits(question, kind, decider).await;
            }
        }
        checked
    }

    async fn compare(&self, incoming: &Incoming) -> Result<(), ResumeError> {
        let decisions = incoming.brought().map(|(question, ..)| (question.call_id(), Suspension::Approval));
        let answers = incoming.answered().map(|id| (id, Suspension::Client));
        let mut seen = HashSet::new();
        for (id, suspension) in decisions.chain(answers) {
            let waits = self.waiting().any(|call| call.id == *id && call.suspension == suspension);
            if !waits || !seen.insert(id) {
                return Err(ResumeError::NotWaiting(id.clone()));
            }
        }
        if let Some((question, mismatch)) = self.barred(incoming).next() {
            return Err(ResumeError::barred(question.call_id(), mismatch));
        }
        for (question, ..) in incoming.brought() {
            // A call that does not wait in the store was decided by a process that may be gone; taking the decision finds
            // out how it ended.
            if let Ok(Some(pending)) = self.run.pending(question.call_id()).await
                && pending.question() != *question
            {
                return Err(ResumeError::NotAllowed(Mismatch::Question));
            }
        }
        Ok(())
    }

    /// The questions whose decider may not decide.
    fn barred<'a>(&'a self, incoming: &'a Incoming) -> impl Iterator<Item = (&'a Question, Mismatch)> {
        incoming.brought().filter_map(|(question, _, decider)| {
            let call = self.waiting().find(|call| call.id == *question.call_id())?;
            Some((question, self.run.bars(call.decided(), decider?)?))
        })
    }

    /// Sends the events of the next turn to this sink, in addition to the run's own
    /// ([`RunOptions::events`](crate::RunOptions::events)). The sink is released after the `done` event, so that each
    /// request can have a stream of its own.
    pub fn events(&mut self, sink: impl EventSink + 'static) {
        self.run.listen(Some(Arc::new(sink)));
    }

    /// Returns the whole history: each call followed by its one result, in call order. A call that was interrupted is
    /// `outcome_unknown` if its effect may have begun.
    #[must_use]
    pub fn history(&self) -> Vec<Message> {
        self.state.history()
    }

    /// Returns the calls that wait, in the order in which the model made them.
    pub fn waiting(&self) -> impl Iterator<Item = &WaitingCall> {
        self.state.waiting()
    }

    /// Returns an account of each of the model's turns, in order.
    #[must_use]
    pub fn turns(&self) -> &[ModelTurn] {
        &self.state.turns
    }

    /// Returns the run that the calls go through.
    #[must_use]
    pub const fn run(&self) -> &Run {
        &self.run
    }

    async fn say(&mut self, content: Vec<Content>, settings: RequestSettings) -> Result<(), ResumeError> {
        self.abandon().await?;
        for text in content.iter().filter_map(Content::as_text) {
            self.run.add_user_text(text);
        }
        let text: Vec<_> = content.iter().filter_map(Content::as_text).collect();
        self.pick(&text.join("\n")).await;
        self.state.history.push(Message::User(content));
        self.state.settings = settings;
        self.state.asked = 0;
        Ok(())
    }
}

impl fmt::Debug for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (agent, messages) = (&self.agent, self.state.history.messages().len());
        f.debug_struct("Conversation").field("agent", agent).field("messages", &messages).finish_non_exhaustive()
    }
}
