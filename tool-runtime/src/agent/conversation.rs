//! [`Conversation`]: the application's interface to an agent.
//!
//! The file is long because most of it is the documentation of public methods. The loop itself is in
//! [`turns`](crate::agent::turns).

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, PoisonError};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use tracing::Instrument;

use crate::agent::stream::{Decided, UiStream};
use crate::agent::telemetry::Used;
use crate::agent::turns::Turns;
use crate::agent::turns::calls::{self, Action};
use crate::agent::turns::events::Done;
use crate::agent::turns::state::LastAnswer;
use crate::agent::typed::Typed;
use crate::agent::{AnswerError, Input, ModelTurn, Step, StopReason, TurnOutcome, WaitingCall, picking, typed};
use crate::call::{ClientAnswer, Decider, DecisionError, Event, Question, SafeError, Suspension};
use crate::runner::waiting::posting;
use crate::runner::{ApprovalDecision, ResumeError, Run};
use crate::wire::history::Content;
use crate::wire::ui::{ChatReader, Protocol};
use crate::wire::{Message, RequestSettings};

/// How many refused decisions of one request are recorded for each call.
const MAX_NOTED: usize = 16;

/// A history and the run that its calls go through. Created by [`Agent::converse`](crate::agent::Agent::converse) or
/// [`Agent::restore`](crate::agent::Agent::restore).
///
/// Every method that returns a [`TurnOutcome`] emits exactly one `done` event once its future was polled, even if the
/// method refuses its input or the future is dropped. After a dropped future the conversation can continue: an
/// interrupted call gets its recorded result. Without one, it ends as `outcome_unknown` if its effect may have begun,
/// and as `cancelled` otherwise.
///
/// A stateless service saves the conversation after each request with [`save`](Self::save), which also works after a
/// dropped request, and restores it for the next with [`Agent::restore`](crate::agent::Agent::restore).
/// [`chat_reader`](Self::chat_reader) parses the posts of a chat UI for [`receive`](Self::receive).
/// [`ui_stream`](Self::ui_stream) or [`events`](Self::events) gives each request a separate stream.
///
/// ```
/// use tool_runtime::agent::{Agent, Input, TurnOutcome};
/// use tool_runtime::call::Decider;
/// use tool_runtime::runner::ApprovalDecision;
/// use tool_runtime::testing::{ScriptedModel, ScriptedTurn};
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
/// // In the first request the model calls the tool, and the call waits for a person.
/// let mut conversation = agent.converse(runner.run(RunOptions::new().principal("ada").tenant("acme")));
/// let TurnOutcome::Waiting { calls } = conversation.send("Delete note 7.").await else { panic!("it waits") };
/// assert_eq!(calls[0].shown_arguments.as_ref().map(|shown| shown.get()), Some(r#"{"note":7}"#));
/// let saved = conversation.save().await?;
///
/// // The second request, perhaps in another process, contains the decision.
/// let mut conversation = agent.restore(&runner, RunOptions::new().principal("ada").tenant("acme"), &saved).await?;
/// let grace = Decider::new("grace").tenant("acme");
/// let input = Input::new().decide(&calls[0].question, ApprovalDecision::Approve, &grace);
/// let ended = conversation.receive(input).await?;
/// assert!(matches!(ended, TurnOutcome::Answered { text } if text == "Done."));
/// # Ok(()) })
/// # }
/// ```
pub struct Conversation {
    pub(super) turns: Turns,
    /// The calls that the current request decides. Its stream reports to the client only decisions on other calls.
    pub(super) decided: Decided,
}

impl Conversation {
    /// Takes a message of the user, and runs the loop until the model answers or a call waits for a person or a client.
    ///
    /// The message abandons calls that still wait: they end as `cancelled`, or as `outcome_unknown` if a graph or the
    /// client may already have changed something.
    pub async fn send(&mut self, text: impl Into<String>) -> TurnOutcome {
        let done = self.begin();
        // On the heap: the whole request is one future, which callers store.
        let ended = Box::pin(self.take_in(Input::new().text(text))).instrument(done.span()).await;
        done.with(ended)
    }

    /// Accepts the client's results for client tools. Once no call waits, the model continues.
    ///
    /// # Errors
    /// One of the calls does not wait for a client, or has two answers; or the store failed while the answers were
    /// checked. No answer is taken then. A refusal emits an `error` event and a `done` event. To detect it before a
    /// response begins, call [`check`](Self::check).
    pub async fn answer(
        &mut self,
        answers: impl IntoIterator<Item = ClientAnswer>,
    ) -> Result<TurnOutcome, ResumeError> {
        self.receive(Input { answers: answers.into_iter().collect(), ..Input::new() }).await
    }

    /// Accepts a person's decision on a waiting call. Once no call waits, the model continues.
    ///
    /// # Errors
    /// The call does not wait for a person, its question was replaced, the decider may not decide, or the store failed
    /// while the decision was checked. The conversation keeps its state. If the question was replaced, the waiting
    /// calls get their current questions. The refusal is recorded, see [`check`](Self::check). See
    /// [`answer`](Self::answer) for the events.
    pub async fn decide(
        &mut self,
        question: &Question,
        decision: ApprovalDecision,
        decider: &Decider,
    ) -> Result<TurnOutcome, ResumeError> {
        self.receive(Input::new().decide(question, decision, decider)).await
    }

    /// Takes the content of one request: first the decisions, then the answers, then the message of the user. Without a
    /// message the model continues once no call waits; an empty [`Input`] continues an interrupted request.
    ///
    /// A decision or an answer can name its call correctly and still not fit it, such as edited arguments that violate
    /// the schema. It then emits an `error` event, and its call still waits; a message in the same input abandons this
    /// call. Several decisions are checked first: if one of them does not fit, the whole input is refused.
    ///
    /// # Errors
    /// The whole input is refused, for one of the reasons of [`check`](Self::check), or because the store failed while
    /// the input was checked. The conversation keeps its state. If a question was replaced, the waiting calls get their
    /// current questions. See [`answer`](Self::answer) for the events.
    pub async fn receive(&mut self, input: Input) -> Result<TurnOutcome, ResumeError> {
        let done = self.begin();
        let input = match self.check_again(input).await {
            Ok(input) => input,
            Err(refused) => {
                self.refuse(&refused);
                done.refused(refused.code());
                return Err(refused);
            }
        };
        let ended = Box::pin(self.take_in(input)).instrument(done.span()).await;
        Ok(done.with(ended))
    }

    /// Takes the content of one request, as [`receive`](Self::receive) does, but does not ask the model. Call
    /// [`step`](Self::step) to continue. An approved call runs, and a message abandons the calls that still wait.
    ///
    /// # Errors
    /// The errors of [`receive`](Self::receive), after which the conversation keeps its state. Also: the store failed
    /// while a decision or answer was carried out. The call that could not be finished then still waits, like the calls
    /// after it.
    pub async fn accept(&mut self, input: Input) -> Result<(), ResumeError> {
        let admitted = match self.check_again(input).await {
            Ok(input) => Box::pin(self.admit(input)).await,
            Err(refused) => Err(refused),
        };
        match admitted {
            Ok(mistake) => {
                self.emit_mismatch(mistake);
                Ok(())
            }
            Err(error) => {
                self.refuse(&error);
                Err(error)
            }
        }
    }

    /// Requests structured output: an answer that deserializes as `T`. The schema is sent in the provider's
    /// structured-output mode or as a tool's schema. The model can call tools before it answers. The runner's validator
    /// checks the answer against the schema of the type; an answer that does not match is returned to the model once,
    /// with the problems.
    ///
    /// If calls wait, [`AnswerError::Waiting`] lists them. Call `ask` again with the decisions and answers, even after
    /// a save and a restore. The history contains the final answer as JSON text.
    ///
    /// ```
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    /// use tool_runtime::agent::Agent;
    /// use tool_runtime::testing::{ScriptedModel, ScriptedTurn};
    /// use tool_runtime::{RunOptions, ToolCatalog, ToolPolicy, ToolRunner};
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct City {
    ///     /// Its name.
    ///     name: String,
    ///     /// How many people live there.
    ///     people: u64,
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let runner = ToolRunner::builder(ToolCatalog::builder().build()?, ToolPolicy::deny_all()).build()?;
    /// let model = ScriptedModel::new([
    ///     ScriptedTurn::text(r#"{"name":"Paris"}"#),
    ///     ScriptedTurn::text(r#"{"name":"Paris","people":2103000}"#),
    /// ]);
    /// let mut conversation = Agent::new(model).converse(runner.run(RunOptions::new()));
    /// let city: City = conversation.ask("What is the capital of France?").await?;
    /// assert_eq!((city.name.as_str(), city.people), ("Paris", 2_103_000));
    /// # Ok(()) })
    /// # }
    /// ```
    ///
    /// # Errors
    /// Calls wait, the request ended without an answer that matches, the input was refused ([`AnswerError::NotWaiting`]
    /// contains every error of [`receive`](Self::receive)), or the type has no usable schema.
    pub async fn ask<T: DeserializeOwned + JsonSchema>(&mut self, input: impl Into<Input>) -> Result<T, AnswerError> {
        let typed = Typed::of::<T>().map_err(AnswerError::Schema)?;
        let wrapped = typed.wrapped;
        let input = Input { typed: Some(typed), ..input.into() };
        match self.receive(input).await.map_err(AnswerError::NotWaiting)? {
            TurnOutcome::Answered { text } => {
                let invalid = |violation| StopReason::InvalidAnswer(vec![violation]);
                typed::read(&text, wrapped)
                    .map_err(|error| AnswerError::Stopped { reason: invalid(error), text: text.clone() })
            }
            TurnOutcome::Waiting { calls } => Err(AnswerError::Waiting(calls)),
            TurnOutcome::Stopped { reason, text } => Err(AnswerError::Stopped { reason, text }),
        }
    }

    /// Takes the next step: asks the model for a turn, or takes the next calls of its last answer through the gate. If
    /// neither is possible, returns the waiting calls or the end of the request.
    ///
    /// The document that [`save`](Self::save) returns after a step restores the conversation at exactly that point. If
    /// the application stores the document after each step, the process can be killed at any moment. The next process
    /// runs the calls that have not begun, and reads the recorded results of calls that ended. A call that began and
    /// has no known end is reconciled if its tool can ([`ToolComponent::reconcile`](crate::ToolComponent::reconcile)),
    /// runs again if its tool is `read_only` or `idempotent`, and is `outcome_unknown` otherwise. An application that
    /// does not save between steps calls [`send`](Self::send) or [`receive`](Self::receive) instead, which take all
    /// steps.
    ///
    /// A step that returns waiting calls or the end of the request emits the `done` event and releases the sink of
    /// [`events`](Self::events). Without new input, the next step returns the same result, but after an error of the
    /// model it asks the model again.
    ///
    /// ```
    /// use tool_runtime::agent::{Agent, Input, Step};
    /// use tool_runtime::testing::{ScriptedModel, ScriptedTurn};
    /// use tool_runtime::{RunOptions, ToolCatalog, ToolPolicy, ToolRunner};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let runner = ToolRunner::builder(ToolCatalog::builder().build()?, ToolPolicy::deny_all()).build()?;
    /// let agent = Agent::new(ScriptedModel::new([ScriptedTurn::text("Hello.")]));
    ///
    /// let mut conversation = agent.converse(runner.run(RunOptions::new()));
    /// conversation.accept(Input::from("Hi!")).await?;
    /// assert!(matches!(conversation.step().await, Step::Asked));
    /// let saved = conversation.save().await?;
    ///
    /// // This step does not ask the model again, because its answer is in the document.
    /// let mut conversation = agent.restore(&runner, RunOptions::new(), &saved).await?;
    /// assert_eq!(conversation.step().await.code(), "answered");
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn step(&mut self) -> Step {
        let done = Done::of_step(&self.turns.run, &*self.turns.agent.model);
        // On the heap: a step is one large future, which callers store.
        let step = Box::pin(async {
            let mut used = Used::default();
            let step = self.turns.advance().await;
            if matches!(step, Step::Asked) {
                used.add(self.turns.last_usage());
            }
            step
        });
        let step = step.instrument(done.span()).await;
        done.stepped(step)
    }

    /// Sets the calls that this request decides, whose decisions its stream does not report back to the client.
    fn tell_stream(&self, input: &Input) {
        let decided = input.decisions.iter().map(|(question, ..)| question.call_id().clone()).collect();
        *self.decided.lock().unwrap_or_else(PoisonError::into_inner) = decided;
    }

    async fn take_in(&mut self, input: Input) -> TurnOutcome {
        self.tell_stream(&input);
        match Box::pin(self.admit(input)).await {
            Ok(mistake) => {
                let ended = Box::pin(self.turns.drive()).await;
                self.emit_mismatch(mistake);
                ended
            }
            Err(error) => self.turns.stopped(StopReason::Unsettled(error), String::new()),
        }
    }

    /// Creates the guard that emits the one `done` event of a request.
    fn begin(&self) -> Done {
        Done::new(&self.turns.run, &*self.turns.agent.model)
    }

    pub(super) fn refuse(&self, refused: &ResumeError) {
        self.turns.run.emit(Event::Error { code: refused.code().to_owned(), message: refused.to_string() });
    }

    /// Emits the `done` event of a request that failed outside a step.
    pub(super) fn end_failed(&self, code: &'static str) {
        self.begin().refused(code);
    }

    /// Emits the mismatch as an `error` event, so that the client learns that its answer was not taken.
    fn emit_mismatch(&self, mistake: Option<SafeError>) {
        if let Some(error) = mistake {
            self.turns.run.emit(Event::Error { code: error.error_code.code().to_owned(), message: error.safe_message });
        }
    }

    /// Takes decisions, answers and a message. Returns the first mismatch of a decision or an answer.
    async fn admit(&mut self, input: Input) -> Result<Option<SafeError>, ResumeError> {
        let Input { text, media, settings, decisions, expired, answers, typed, delivered: _ } = input;
        let decided = |(question, decision, decider): (Question, _, _)| {
            (question.call_id().clone(), Action::Decide(question, decision, decider))
        };
        let late = |question: Question| (question.call_id().clone(), Action::Expire(question));
        let decisions = decisions.into_iter().map(decided).chain(expired.into_iter().map(late));
        let answers = answers.into_iter().map(|answer| (answer.id().clone(), Action::Answer(answer)));
        let mut mistake = None;
        for (id, action) in decisions.chain(answers) {
            mistake = mistake.or(self.turns.act(&id, action).await?);
        }
        // A decided call can still wait, for another decider.
        self.turns.describe().await;
        let content = Input::content(text, media);
        typed::expect(&mut self.turns.state.typed, typed, !content.is_empty());
        if !content.is_empty() {
            self.say(content, settings).await?;
            return Ok(mistake);
        }
        // Without new input, continue the request if all its calls have results.
        if self.turns.state.open.is_empty() && self.turns.state.answer.as_ref().is_some_and(LastAnswer::is_end) {
            self.turns.state.answer = None;
        }
        Ok(mistake)
    }

    /// Checks an input without applying it. Call this before a response begins, while a refusal can still become an
    /// HTTP status. Every decision and answer has to name a call that waits for it, every decision has to answer the
    /// current question of its call, and every decider has to be allowed to decide. Several decisions are also checked
    /// against their calls: edited arguments and values in place of the tool's output have to match the tool and the
    /// policy, and the definition, the policy and the rights of the run must not have changed. If the input is refused,
    /// each of its decisions on a call that has a record is recorded as refused. For each call, at most 16 refusals of
    /// one decider and 256 of all deciders from other tenants are recorded.
    ///
    /// # Errors
    /// A call does not wait for the decision or answer that names it, or is named twice; a decision answers a question
    /// that was replaced; a decider may not decide; the input has a message, and with it an approval after which the
    /// call needs further ones; or one of several decisions does not fit its call ([`ResumeError::Invalid`],
    /// [`ResumeError::Mismatch`]).
    pub async fn check(&self, input: &Input) -> Result<(), ResumeError> {
        let checked = self.compare(input).await;
        if checked.is_err() {
            let mut noted = HashMap::new();
            for (question, by) in input.brought() {
                let number = noted.entry(question.call_id()).or_insert(0);
                *number += 1;
                // Record the decisions of the refused input: each with its own reason, or as refused together with
                // another one.
                if *number <= MAX_NOTED {
                    posting::note_refused(&self.turns.run, question, by, input.has_message()).await;
                }
            }
        }
        checked
    }

    /// Reads the waiting calls from the store, and checks as [`check`](Self::check) does. Returns the input without the
    /// decisions and answers that were carried out before. If a decision answers a replaced question, the calls are
    /// refreshed to their new questions. The list of decided calls is passed to the stream first, because reading the
    /// store can emit results.
    async fn check_again(&mut self, input: Input) -> Result<Input, ResumeError> {
        self.tell_stream(&input);
        calls::look_for_waiting(&self.turns.run, &mut self.turns.state).await?;
        let input = self.turns.without_repeated(input).await?;
        let checked = self.check(&input).await;
        if let Err(ResumeError::NotAllowed(DecisionError::Question)) = checked {
            calls::ask_again(&self.turns.run, &mut self.turns.state).await?;
        }
        checked.map(|()| input)
    }

    async fn compare(&self, input: &Input) -> Result<(), ResumeError> {
        let decisions = input
            .brought()
            .map(|(question, (decision, _))| (question.call_id(), decision.is_some().then_some(Suspension::Approval)));
        let answers = input.answered().map(|id| (id, Some(Suspension::Client)));
        let mut seen = HashSet::new();
        for (id, suspension) in decisions.chain(answers) {
            let waits = self
                .waiting()
                .any(|call| call.id == *id && suspension.is_none_or(|suspension| call.suspension == suspension));
            if !waits || !seen.insert(id) {
                return Err(ResumeError::NotWaiting(id.clone()));
            }
        }
        if let Some((question, mismatch)) = self.barred(input).next() {
            return Err(ResumeError::barred(question.call_id(), mismatch));
        }
        for (question, by @ (decision, decider)) in input.brought() {
            // `Ok(None)`: another process decided the call, and this decision gets the recorded result. `Err`: this
            // method does not report it, because applying the decision reads the store again and reports the failure.
            let Ok(Some(pending)) = self.turns.run.pending(question.call_id()).await else { continue };
            if pending.question() != *question {
                return Err(ResumeError::NotAllowed(DecisionError::Question));
            }
            if decision == Some(&ApprovalDecision::Approve)
                && decider.is_some_and(|decider| pending.needs_others_than(decider))
            {
                return Err(ResumeError::NotAllowed(DecisionError::SameDecider));
            }
            if input.has_message() && posting::leaves_waiting(&self.turns.run, &pending, by) {
                return Err(ResumeError::NotAllowed(DecisionError::WithMessage));
            }
            // A single decision that does not fit is not refused here: carrying it out emits an `error` event, and the
            // call still waits.
            if input.decisions.len() > 1 {
                posting::fits(&self.turns.run, &pending, by)?;
            }
        }
        Ok(())
    }

    /// Returns the questions whose decider may not decide.
    fn barred<'a>(&'a self, input: &'a Input) -> impl Iterator<Item = (&'a Question, DecisionError)> {
        input.brought().filter_map(|(question, (_, decider))| {
            let call = self.waiting().find(|call| call.id == *question.call_id())?;
            Some((question, self.turns.run.bars(call.decided_tool(), decider?)?))
        })
    }

    /// Sends the events of the next request to this sink, in addition to the run's own
    /// ([`RunOptions::events`](crate::RunOptions::events)). The sink is released after the `done` event, so that each
    /// request can have a separate stream.
    pub fn events(&mut self, sink: impl Fn(Event) + Send + Sync + 'static) {
        self.turns.run.listen(Some(Arc::new(sink)));
    }

    /// Returns a parser for a chat UI's posts to this conversation in its current state. It accepts answers to the
    /// calls that wait, and refuses calls that are not part of the history.
    #[must_use]
    pub fn chat_reader(&self) -> ChatReader {
        ChatReader::new(&self.history(), self.waiting().map(|call| (call.id.clone(), call.suspension)))
    }

    /// Returns a stream of the response to the next request, for a chat UI. The response begins a new message. Replaces
    /// the sink that [`events`](Self::events) set. With [`Protocol::AgUi`], which streams runs and not messages, this
    /// is the same as [`ui_stream_resuming`](Self::ui_stream_resuming).
    ///
    /// A client shows each call in the message in which the model made it. The stream therefore leaves out the ends of
    /// calls of earlier messages. If a new message of the user abandons a waiting call, only the run's own sink
    /// receives the end of the call. [`UiStream::end_after`] has an example.
    pub fn ui_stream(&mut self, protocol: Protocol, message_id: &str) -> UiStream {
        if protocol == Protocol::AgUi {
            return self.ui_stream_resuming(protocol, message_id);
        }
        let earlier = self.waiting().map(|call| call.id.clone()).collect();
        let (sink, stream) = UiStream::beginning(protocol, message_id, earlier);
        self.events(move |event| sink.emit(event));
        stream
    }

    /// Returns a stream of the response to the next request, for a chat UI. The response continues the message whose
    /// calls wait. Use it for a request with decisions or answers. If the protocol supports it, the client updates the
    /// calls in place.
    pub fn ui_stream_resuming(&mut self, protocol: Protocol, message_id: &str) -> UiStream {
        let calls = self.waiting().map(|call| (call.suspension, call.question.clone()));
        let (sink, stream) = UiStream::continuing(protocol, message_id, calls, Arc::clone(&self.decided));
        self.events(move |event| sink.emit(event));
        stream
    }

    /// Returns the whole history: each call followed by its one result, in call order. A call that waits or was
    /// interrupted gets a placeholder as its result: `outcome_unknown` if its effect may have begun, `cancelled`
    /// otherwise.
    #[must_use]
    pub fn history(&self) -> Vec<Message> {
        self.turns.state.history()
    }

    /// Returns the calls that wait, in the order in which the model made them.
    pub fn waiting(&self) -> impl Iterator<Item = &WaitingCall> {
        self.turns.state.waiting()
    }

    /// Returns a summary of each model turn, in order.
    #[must_use]
    pub fn turns(&self) -> &[ModelTurn] {
        &self.turns.state.turns
    }

    /// Returns the run that the calls go through.
    #[must_use]
    pub const fn run(&self) -> &Run {
        &self.turns.run
    }

    async fn say(&mut self, content: Vec<Content>, settings: RequestSettings) -> Result<(), ResumeError> {
        self.turns.abandon().await?;
        for text in content.iter().filter_map(Content::as_text) {
            self.turns.run.add_user_text(text);
        }
        let text: Vec<_> = content.iter().filter_map(Content::as_text).collect();
        picking::pick(self.turns.agent.picking.as_ref(), &self.turns.run, &text.join("\n")).await;
        self.turns.state.history.push(Message::User(content));
        self.turns.state.settings = settings;
        self.turns.state.asked = 0;
        self.turns.state.earlier_turns = self.turns.state.turns.len();
        Ok(())
    }
}

impl fmt::Debug for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (agent, messages) = (&self.turns.agent, self.turns.state.history.messages().len());
        f.debug_struct("Conversation").field("agent", agent).field("messages", &messages).finish_non_exhaustive()
    }
}
