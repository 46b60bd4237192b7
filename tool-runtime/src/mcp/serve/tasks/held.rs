//! Held requests: for a client without support for MCP tasks, the server keeps the request open while its call is
//! suspended, up to a time limit.
//!
//! After a disconnection or a restart of the server, the client repeats the call. The server finds the suspended call
//! by its `asked_as`, a digest of the party (a principal with its tenant, roles, attributes and tools), the tool and
//! the arguments. The new request then waits for the suspended call. The server carries out an approval only while it
//! holds a request for the call. An approval that arrives at another time is carried out when the client repeats the
//! call.
//!
//! The result of a call is delivered once; an identical call after that is a new call. All requests that were held when
//! the call ended get the result. A request that comes later gets the result alone: meanwhile, no other request gets
//! it. If the transport could not send the result, the next identical request gets it. An identical call gets the same
//! result again in two cases: the answer was not sent completely, or it was sent so late that the client may have
//! stopped waiting.
//!
//! The file is long because it has all steps of a held request, from the search for its call to the delivery of the
//! result.

use std::collections::HashSet;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rmcp::model::{ErrorData, InputRequests};
use tokio::runtime::Handle;

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::agent::Input;
use crate::call::{CallId, ToolExecResult};
use crate::capability::{Capabilities, Elicit, Progress};
use crate::mcp::serve::McpServer;
use crate::mcp::serve::delivery::Delivery;
use crate::mcp::serve::shutdown::Room;
use crate::mcp::serve::tasks::dialogue::{Answer, Dialogue};
use crate::mcp::serve::tasks::entering::Waiting;
use crate::mcp::serve::tasks::kept::SavedTask;
use crate::mcp::serve::tasks::outcome::{self, OutcomeQuestion};
use crate::mcp::serve::tasks::run_tasks::{DeliveryState, HeldRequest, Look, RunTasks, State};
use crate::mcp::serve::tasks::status::{failed, unknown};
use crate::mcp::serve::tasks::{Tasks, Ticket};
use crate::runner::ServedRuns;
use crate::runner::ledger::recover;
use crate::runner::{Run, RunOptions, ToolRunner};
use crate::store::{PendingCall, StoreError};

/// The interval at which a held request reports progress to its client and reads the changes of other processes.
const BEAT: Duration = Duration::from_secs(5);

/// The additional time for which a request is held while a posted decision is carried out.
const CARRIED: Duration = Duration::from_secs(30);

/// The least time for which a request is held while its client has a question about the call.
const DECIDES: Duration = Duration::from_secs(10 * 60);

/// The age of a request from which the server assumes that its client may have stopped waiting. Applies to MCP
/// revisions in which a client may stop waiting without cancelling the request.
const PATIENCE: Duration = Duration::from_secs(5);

/// The client's side of a held request.
pub(in crate::mcp::serve) struct Guest<'a> {
    /// The capabilities that the client offers to the tool.
    pub(in crate::mcp::serve) offers: Capabilities,
    /// The client's progress reporter. `None` if it wants no progress.
    pub(in crate::mcp::serve) progress: Option<Arc<dyn Progress>>,
    /// Asks the client questions while its request is open, in revisions that support this.
    pub(in crate::mcp::serve) elicit: Option<Arc<dyn Elicit>>,
    /// Whether the client accepts questions as the answer to its request.
    pub(in crate::mcp::serve) takes_questions: bool,
    /// The keys of the questions that the client has answered.
    pub(in crate::mcp::serve) answered: HashSet<String>,
    pub(in crate::mcp::serve) cancelled: &'a CancellationToken,
    pub(in crate::mcp::serve) delivery: Option<Delivery>,
    /// Whether the client may stop waiting without cancelling the request.
    pub(in crate::mcp::serve) leaves_silently: bool,
    /// Whether the request came after the call had ended, and therefore takes the result alone.
    pub(in crate::mcp::serve) takes: bool,
}

impl Guest<'_> {
    /// Resolves when the client has abandoned the request.
    async fn gone(&self) {
        let left = async {
            match &self.delivery {
                Some(delivery) => delivery.gone().cancelled().await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = self.cancelled.cancelled() => {}
            () = left => {}
        }
    }

    /// Whether the client may have stopped waiting. `began` is when the server began to hold the request.
    fn is_late(&self, began: Instant) -> bool {
        let arrived = self.delivery.as_ref().map_or(began, Delivery::since);
        self.leaves_silently && arrived.elapsed() >= PATIENCE
    }

    fn is_gone(&self) -> bool {
        self.cancelled.is_cancelled() || self.delivery.as_ref().is_some_and(|delivery| delivery.gone().is_cancelled())
    }
}

/// The answer to a held request.
pub(in crate::mcp::serve) enum HeldAnswer {
    /// The result of the ended call, and the time of an earlier answer with this result, if there was one.
    Ended(Box<ToolExecResult>, Option<Timestamp>),
    /// The client has to answer these questions, and sends this state with its next request.
    Asks(InputRequests, String),
    /// The call is still suspended.
    Waits,
    /// The call runs, and the server cannot hold another request for it.
    Works,
    /// Another request has got the result of the call, or is getting it.
    Taken,
}

/// The earlier call that a request repeats.
pub(in crate::mcp::serve) enum Repeated {
    /// There is none, so the request is a new call.
    Nothing,
    /// The call, and whether it had ended, so that the request [takes](Guest::takes) its result.
    Call(Ticket, bool),
    /// Another request is getting the result of the call.
    Sending,
}

impl Ticket {
    pub(in crate::mcp::serve) fn run(&self) -> &Run {
        &self.run_tasks.run
    }

    pub(super) async fn look(&self, server: &McpServer) -> Result<Option<Look>, ErrorData> {
        self.run_tasks.look(&server.0.runner, &self.call).await.map_err(|error| failed(&error))
    }
}

impl Tasks {
    /// Finds a call of a party by the state that its client sent.
    pub(in crate::mcp::serve) async fn find_by_state(
        &self,
        server: &McpServer,
        party: RunOptions,
        (state, name): (&str, &str),
    ) -> Result<Ticket, ErrorData> {
        let ticket = self.find(server, party, state).await?;
        let look = ticket.look(server).await?.filter(|look| look.saved.name == name);
        look.map(|_| ticket).ok_or_else(unknown)
    }

    /// Finds a call of the party that is identical to `waiting`, and waits or has a result that no request has got.
    pub(in crate::mcp::serve) async fn find_repeated(
        &self,
        server: &McpServer,
        waiting: &Waiting,
    ) -> Result<Repeated, ErrorData> {
        let (runner, party) = (&server.0.runner, &waiting.party);
        let Some(asked_as) = &waiting.asked_as else { return Ok(Repeated::Nothing) };
        let known = ServedRuns(runner).document(asked_as, party).await.map_err(|error| failed(&error))?;
        let Some(known) = known else { return Ok(Repeated::Nothing) };
        // If the store cannot be read, the request fails, because the call must not be made a second time.
        let found = self.found(server, party.clone(), &known).await.map_err(|error| failed(&error))?;
        if let Some(ticket) = found {
            let Ticket { run_tasks, call } = &ticket;
            // The server of the call was killed before it could store the description of the call.
            if !run_tasks.has(call)
                && let Some((created, expires)) =
                    times_of(runner, run_tasks, call).await.map_err(|error| failed(&error))?
            {
                let (name, asked_as) = (waiting.name.clone(), Some(Arc::clone(asked_as)));
                let saved = SavedTask { name, created, expires, asks: waiting.asks, asked_as, answered: None };
                run_tasks.add_stored(call.clone(), saved);
            }
            let look = ticket.look(server).await?.filter(|_| !run_tasks.is_made_anew(call));
            let takes = match look.map(|look| look.state) {
                Some(State::Waits(_) | State::Works | State::Unsettled(..)) => {
                    return Ok(Repeated::Call(ticket, false));
                }
                Some(State::Ended(_) | State::Settled(_)) => run_tasks.delivery(call).await,
                None => DeliveryState::Yes,
            };
            match takes {
                DeliveryState::Sent => return Ok(Repeated::Sending),
                DeliveryState::No => {
                    // Between the two reads, another request may have got the result, and the call have been removed.
                    // This request has then added it again, as a call without an answer.
                    let still = ServedRuns(runner).document(asked_as, party).await.map_err(|error| failed(&error))?;
                    if still.as_ref() == Some(&known) {
                        return Ok(Repeated::Call(ticket, true));
                    }
                }
                DeliveryState::Yes => {}
            }
            run_tasks.mark_delivered(call, true);
        }
        // The call has ended, its party has other rights now, or this server has other rules now. Forget it, so that
        // the client makes a new call.
        ServedRuns(runner).forget(asked_as, known).await.map_err(|error| failed(&error))?;
        Ok(Repeated::Nothing)
    }

    /// Holds a request until its call ends, its client has to answer a question, or the time limit is reached.
    pub(in crate::mcp::serve) async fn hold(
        &self,
        server: &McpServer,
        ticket: &Ticket,
        guest: Guest<'_>,
    ) -> Result<HeldAnswer, ErrorData> {
        let Ticket { run_tasks, call } = ticket;
        let closing = server.0.calls.closing();
        let (mut news, mut has_left) = (run_tasks.news(), false);
        let request = HeldRequest { offers: guest.offers.clone(), takes: guest.takes };
        let Some(_attending) = run_tasks.attend(call, request) else { return not_held(server, ticket, &guest).await };
        let Ok(room) = server.0.calls.listen() else { return not_held(server, ticket, &guest).await };
        let began = Instant::now();
        let held = began + self.limits.hold.unwrap_or_default();
        let (mut until, mut beat) = (held, began + BEAT);
        let mut dialogue = Dialogue::of(&guest, run_tasks.named(call));
        loop {
            news.borrow_and_update();
            let look = ticket.look(server).await?.ok_or_else(unknown)?;
            match &look.state {
                State::Unsettled(result, _) => {
                    if let Some(question) = OutcomeQuestion::of(&server.0.runner, &look)
                        && let Err(elsewhere) = dialogue.ask_about_outcome(question)
                    {
                        return Ok(elsewhere);
                    }
                    if !dialogue.is_open() || closing.is_cancelled() || guest.is_gone() {
                        let delivery = ResultDelivery::of(server, ticket, guest.is_late(began), Some(room));
                        return Ok(delivery.ended(&guest, &look.saved, result));
                    }
                }
                State::Ended(result) | State::Settled(result) => {
                    let delivery = ResultDelivery::of(server, ticket, guest.is_late(began), Some(room));
                    return Ok(delivery.ended(&guest, &look.saved, result));
                }
                State::Works => {
                    let open = look.questions.requests();
                    if guest.takes_questions && !open.is_empty() {
                        return Ok(HeldAnswer::Asks(open, run_tasks.named(call).to_string()));
                    }
                }
                State::Waits(waits) => {
                    if let Some(key) = self.own_question(run_tasks, &look) {
                        match dialogue.ask_about_call(key, &look.saved.name, waits) {
                            Ok(true) => until = until.max(Instant::now() + DECIDES),
                            Ok(false) => {}
                            Err(elsewhere) => return Ok(elsewhere),
                        }
                    }
                    let now = Instant::now();
                    if now >= until && (now >= until + CARRIED || !self.is_posted(server, ticket, waits).await?) {
                        // A decision can have been carried out, and removed, between the two reads.
                        let look = ticket.look(server).await?.ok_or_else(unknown)?;
                        if matches!(look.state, State::Waits(_)) {
                            return Ok(HeldAnswer::Waits);
                        }
                        continue;
                    }
                }
            }
            // The time limit is for suspended calls; a running call is awaited until it ends.
            let next = match &look.state {
                State::Waits(_) if Instant::now() < until => beat.min(until),
                State::Waits(_) => beat.min(until + CARRIED),
                _ => beat,
            };
            tokio::select! {
                _ = news.changed() => {}
                () = look.questions.asked_something(), if guest.takes_questions => {}
                answer = dialogue.answer() => {
                    until = held.max(Instant::now());
                    Box::pin(self.take(server, ticket, answer)).await?;
                }
                () = sleep_until(next) => {
                    if next == beat {
                        beat += BEAT;
                        if let Some(progress) = &guest.progress {
                            progress.report(began.elapsed().as_secs_f64(), None);
                        }
                    }
                }
                () = guest.gone(), if !has_left => {
                    if let State::Unsettled(result, _) = look.state {
                        return Ok(HeldAnswer::Ended(Box::new(result), look.saved.answered));
                    }
                    // A repeated request finds the call by its `asked_as`. A call without it is cancelled, unless
                    // another request found the call by its state.
                    if look.saved.asked_as.is_none() && !run_tasks.is_shared(call) {
                        run_tasks.cancel(&server.0.runner, call).await.map_err(|error| failed(&error))?;
                    } else if matches!(look.state, State::Works) {
                        // Keep waiting, so that an identical call can get the result.
                        has_left = true;
                        continue;
                    }
                    return Ok(HeldAnswer::Waits);
                }
                () = closing.cancelled(), if matches!(look.state, State::Waits(_)) => return Ok(HeldAnswer::Waits),
                // The next iteration answers with the unknown outcome.
                () = closing.cancelled(), if matches!(look.state, State::Unsettled(..)) => {}
            }
        }
    }

    /// Carries out the answer of a client to a question.
    async fn take(
        &self,
        server: &McpServer,
        Ticket { run_tasks, call }: &Ticket,
        answer: Answer,
    ) -> Result<(), ErrorData> {
        match answer {
            // The call may ask a newer question, which its client was not shown.
            Answer::Decides(shown, Some(decision)) => self.decide(server, run_tasks, &shown, decision).await,
            Answer::Decides(_, None) => Ok(()),
            Answer::States(statement) => outcome::state(server, run_tasks, call, statement).await,
        }
    }

    /// Whether a decision on a suspended call was posted to its run, and this server will carry it out.
    async fn is_posted(
        &self,
        server: &McpServer,
        Ticket { run_tasks, call }: &Ticket,
        waits: &PendingCall,
    ) -> Result<bool, ErrorData> {
        let left = run_tasks.rules(&server.0.runner).leave_to_others(waits).await;
        if left.map_err(|error| failed(&error))? {
            return Ok(false);
        }
        let posts = ServedRuns(&server.0.runner).posted_to(&run_tasks.run).await.map_err(|error| failed(&error))?;
        let decides = |input: Input| input.into_decisions().iter().any(|(decided, ..)| decided.call_id() == call);
        Ok(posts.iter().any(|(_, post)| serde_json::from_str(&post.body).is_ok_and(decides)))
    }
}

/// Returns the answer to a request that is not held.
async fn not_held(server: &McpServer, ticket: &Ticket, guest: &Guest<'_>) -> Result<HeldAnswer, ErrorData> {
    // The call can have been removed since the request found it, because another request has got its result.
    let Some(look) = ticket.look(server).await? else { return Ok(HeldAnswer::Taken) };
    Ok(match &look.state {
        State::Ended(result) | State::Settled(result) | State::Unsettled(result, _) => {
            let is_late = guest.is_late(Instant::now());
            ResultDelivery::of(server, ticket, is_late, None).ended(guest, &look.saved, result)
        }
        State::Waits(_) => HeldAnswer::Waits,
        State::Works => HeldAnswer::Works,
    })
}

/// Returns the times at which a call began to wait and expires. For a call that runs or has ended, these are the times
/// of a call that begins to wait now. `None` if the store does not have the call.
async fn times_of(
    runner: &ToolRunner,
    run_tasks: &RunTasks,
    call: &CallId,
) -> Result<Option<(Timestamp, Timestamp)>, StoreError> {
    if let Some(pending) = run_tasks.run.pending(call).await? {
        return Ok(Some((pending.created_at, pending.expires_at)));
    }
    let is_known = recover::go_on(&run_tasks.run, call).await?.is_some();
    Ok(is_known.then(|| (ServedRuns(runner).now(), ServedRuns(runner).expires())))
}

/// The result of a call that is being delivered to a client.
struct ResultDelivery {
    server: McpServer,
    run_tasks: Arc<RunTasks>,
    call: CallId,
    /// Whether the client may have stopped waiting for the result.
    is_late: bool,
    /// A server that is closing waits until this value is dropped.
    room: Option<Room>,
}

impl ResultDelivery {
    fn of(server: &McpServer, Ticket { run_tasks, call }: &Ticket, is_late: bool, room: Option<Room>) -> Self {
        Self { server: server.clone(), run_tasks: Arc::clone(run_tasks), call: call.clone(), is_late, room }
    }

    /// Answers a request with the result of its call, unless another request has it. Records the delivery when the
    /// transport confirms it, or at once if the transport cannot confirm it. Records nothing if the client is gone.
    fn ended(self, guest: &Guest<'_>, saved: &SavedTask, result: &ToolExecResult) -> HeldAnswer {
        if !guest.is_gone() {
            if !self.run_tasks.mark_sending(&self.call, guest.takes) {
                return HeldAnswer::Taken;
            }
            match &guest.delivery {
                Some(delivery) => delivery.then(|has_arrived| self.reported(has_arrived)),
                None => self.reported(true),
            }
        }
        HeldAnswer::Ended(Box::new(result.clone()), saved.answered)
    }

    /// Records the delivery. After a complete answer, an identical call is a new call. After a lost or late answer, it
    /// gets the result again.
    fn reported(self, has_arrived: bool) {
        let Self { server, run_tasks, call, is_late, room } = self;
        let asked_as = run_tasks.shown(&call, State::Works).and_then(|look| look.saved.asked_as);
        let now = ServedRuns(&server.0.runner).now();
        let is_repeated = has_arrived && is_late && asked_as.is_some() && run_tasks.mark_answered(&call, now);
        if !is_repeated {
            run_tasks.mark_delivered(&call, has_arrived);
        }
        let (Some(asked_as), Ok(runtime), true) = (asked_as, Handle::try_current(), has_arrived) else { return };
        runtime.spawn(async move {
            let stored = if is_repeated {
                run_tasks.save(&server.0.runner).await
            } else {
                ServedRuns(&server.0.runner).forget(&asked_as, run_tasks.named(&call)).await
            };
            if let Err(error) = stored {
                tracing::warn!(
                    run = run_tasks.run.id(),
                    error = error.code(),
                    "the delivery of a result could not be stored"
                );
            }
            drop(room);
        });
    }
}
