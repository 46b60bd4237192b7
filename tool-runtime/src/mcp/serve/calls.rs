//! Handles the requests to call a tool (`tools/call`).

use std::borrow::Cow;
use std::collections::HashSet;
use std::pin::Pin;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ContentBlock, CreateTaskResult, ErrorData, InputRequiredResult,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::call::{CallId, Outcome, ToolCall, ToolExecResult};
use crate::mcp::serve::answer::{answer, repeated, unknown, waits, works};
use crate::mcp::serve::client::{Offers, Outbox, fills_in_forms};
use crate::mcp::serve::delivery::Delivery;
use crate::mcp::serve::error::{broken, full, sending};
use crate::mcp::serve::handler::{Handler, objects_only};
use crate::mcp::serve::listing::Offered;
use crate::mcp::serve::shutdown::Room;
use crate::mcp::serve::tasks::{
    self, Answered, EndedUnknown, Entered, Entering, Guest, HeldAnswer, Repeated, Running, Ticket, Waiting, asking,
};
use crate::mcp::serve::{params, raw};
use crate::runner::{CallClient, KeepsCall, Run, RunOptions, ServedRun};

/// The maximum number of attempts at a call. An attempt fails if another request suspends an identical call first.
const ATTEMPTS: usize = 3;

impl Handler {
    /// Answers a request to call a tool. The request makes a new call, joins a suspended call, or brings answers to the
    /// questions of a call.
    pub(super) async fn exec(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let (served, name) = (&self.server.0, &*request.name);
        let (party, running) = self.admitted(context).await?;
        let arguments = raw::arguments(request.arguments.unwrap_or_default()).ok_or_else(broken)?;
        let mismatch = |offered: &Offered| params::mismatch(offered, &context.extensions, &arguments);
        if let Some(state) = &request.request_state {
            self.run(party.clone())?;
            let answers = request.input_responses.unwrap_or_default();
            let ticket = match served.tasks.find_by_state(&self.server, party.clone(), (state, name)).await {
                Ok(ticket) => ticket,
                Err(error) => {
                    served.tasks.refuse_of_stranger(&self.server, &party, state, &answers).await;
                    return Err(error);
                }
            };
            if let Some(error) = served.listing.get(name).and_then(|offered| mismatch(&offered)) {
                return Err(error);
            }
            let answered = answers.keys().cloned().collect();
            Box::pin(served.tasks.update(&self.server, party, state, answers)).await?;
            drop(running);
            return Box::pin(self.hold(&ticket, name, answered, context)).await;
        }
        tokio::select! {
            () = served.listing.arrival(name) => {}
            () = context.ct.cancelled() => {}
            () = served.calls.stopped().cancelled() => {}
        }
        let offered = served.listing.get(name);
        let offered = offered.as_deref();
        if let Some(error) = offered.and_then(mismatch) {
            let call = (name, offered, &*arguments);
            return Err(Box::pin(self.record_refusal(call, &party, running, error, context)).await);
        }
        let waits = offered.filter(|offered| offered.waits && !self.knows_tasks(context));
        let asked_as = match waits {
            Some(offered) => ServedRun(&self.run(party.clone())?).asked_as(&offered.tool, &arguments).await,
            None => None,
        };
        let asks = context.client_capabilities().is_some_and(|declared| fills_in_forms(&declared));
        let mut running = Some(running);
        for _ in 0..ATTEMPTS {
            let waiting = Waiting { party: party.clone(), name: name.to_owned(), asks, asked_as: asked_as.clone() };
            match Box::pin(served.tasks.find_repeated(&self.server, &waiting)).await? {
                Repeated::Nothing => {}
                Repeated::Sending => return Err(sending()),
                Repeated::Call(ticket, takes) => {
                    drop(running.take());
                    let answered = (HashSet::new(), takes);
                    match Box::pin(self.held(&ticket, name, answered, context)).await? {
                        Some(answer) => return Ok(answer),
                        // Another request took the result first, so try again.
                        None => continue,
                    }
                }
            }
            let again = || served.calls.begin().and_then(|running| running.of(&party)).map_err(full);
            let running = running.take().map_or_else(again, Ok)?;
            let entering = Entering::new(&self.server, waiting);
            let call = (name, offered, arguments.clone());
            let result = match Box::pin(self.begin(call, &party, running, Some(&entering), context)).await? {
                Begun::Ended(run, result) => (run, result),
                Begun::Asks(ticket) => return Box::pin(self.answer_later(&ticket, name, context)).await,
            };
            let Some(offered) = offered else { return Err(unknown(name)) };
            let result = match result {
                (run, result) if asks && result.outcome() == Outcome::OutcomeUnknown && !context.ct.is_cancelled() => {
                    let ended = EndedUnknown { run, party: party.clone(), name: name.to_owned(), result };
                    match Box::pin(ended.ask(&self.server)).await {
                        Ok(ticket) => return Box::pin(self.answer_later(&ticket, name, context)).await,
                        Err(result) => result,
                    }
                }
                (_, result) => result,
            };
            match Box::pin(entering.entered(&self.server)).await? {
                Entered::Waits(ticket) => return Box::pin(self.answer_later(&ticket, name, context)).await,
                Entered::Nothing => {
                    return answer(&result, name, offered, objects_only(context)).map(CallToolResponse::from);
                }
                // Another process or request suspended an identical call first: try again, to join it.
                Entered::Taken => {}
            }
        }
        // In each attempt, a request with an identical call was faster.
        Err(sending())
    }

    /// Passes a call to the gate, which applies the policy, runs the tool and records the call.
    async fn begin(
        &self,
        (name, offered, arguments): (&str, Option<&Offered>, String),
        party: &RunOptions,
        running: Room,
        entering: Option<&Arc<Entering>>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Begun, ErrorData> {
        let (served, run) = (&self.server.0, self.run(party.clone())?);
        let mut call = ToolCall::object(CallId::generate(), offered.map_or(name, |offered| &*offered.tool), arguments);
        call.provider = Some(Cow::Borrowed("mcp"));
        call.provider_call_id = Some(context.id.to_string());
        let cancellation = Arc::new(run.cancellation().child_token());
        let (Offers { all: mut offers, .. }, outbox) = Outbox::of(&run, &self.session, context, name);
        // Clients of older revisions get elicitation requests while their own request is open.
        let questions = context.client_capabilities().filter(|_| !objects_only(context));
        let questions = questions.and_then(|declared| tasks::questions(&declared));
        if let Some(questions) = &questions {
            offers = asking(offers, questions, &run);
        }
        let id = call.id.clone();
        let server = entering.map(|entering| -> Arc<dyn KeepsCall> { Arc::clone(entering) as _ });
        let cancelled = Arc::clone(&cancellation);
        let client = CallClient { is_offered: offered.is_some(), offers, cancellation: cancelled, server };
        // Boxed, because a connection holds one such future for each running call of its client.
        let result = Box::pin(run.exec_for(client, call));
        let result = match questions {
            None => outbox.during(until_cancelled(result, &cancellation, &context.ct, served.calls.stopped())).await,
            Some(questions) => {
                let (quiet, server, token) =
                    (outbox.quiet(), self.server.clone(), CancellationToken::clone(&cancellation));
                let ended = tokio::spawn(async move {
                    // The call keeps its permit until it ends, even after its request has been answered.
                    let (_running, calls) = (running, &server.0.calls);
                    outbox.during(until_cancelled(result, &cancellation, calls.stopped(), calls.stopped())).await
                });
                let (run, party, name) = (run.clone(), party.clone(), name.to_owned());
                let running = Running { run, party, call: id, name, questions, cancellation: token, quiet, ended };
                match running.answered(&served.tasks, &self.server, &context.ct).await? {
                    Answered::Ended(result) => result,
                    Answered::Asks(ticket) => return Ok(Begun::Asks(ticket)),
                }
            }
        };
        self.session.on_call_end(&run);
        Ok(Begun::Ended(run, result))
    }

    /// Answers the request of an unfinished call with a task, or holds the request open.
    async fn answer_later(
        &self,
        ticket: &Ticket,
        name: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if self.knows_tasks(context) {
            let task = self.server.0.tasks.task(&self.server, ticket).await?;
            return Ok(CreateTaskResult::new(task).into());
        }
        self.hold(ticket, name, HashSet::new(), context).await
    }

    /// Holds a request whose call was found in another way than by a repetition of the call.
    async fn hold(
        &self,
        ticket: &Ticket,
        name: &str,
        answered: HashSet<String>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.held(ticket, name, (answered, false), context).await?.ok_or_else(sending)
    }

    /// Holds a request until its call ends, its call has a question for its client, or the time limit is reached.
    /// `None` if another request has got the result.
    async fn held(
        &self,
        ticket: &Ticket,
        name: &str,
        (answered, takes): (HashSet<String>, bool),
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<CallToolResponse>, ErrorData> {
        let served = &self.server.0;
        let (Offers { all: offers, progress, elicit }, outbox) = Outbox::of(ticket.run(), &self.session, context, name);
        let declared = context.client_capabilities();
        // Before 2026-07-28, a client may stop waiting without cancelling its request.
        let leaves_silently = objects_only(context);
        let takes_questions = !leaves_silently && declared.is_some_and(|declared| fills_in_forms(&declared));
        let (cancelled, delivery) = (&context.ct, Delivery::of(&context.extensions));
        let guest =
            Guest { offers, progress, elicit, takes_questions, answered, cancelled, delivery, leaves_silently, takes };
        Ok(match outbox.during(Box::pin(served.tasks.hold(&self.server, ticket, guest))).await? {
            HeldAnswer::Ended(result, answered) => {
                self.session.on_call_end(ticket.run());
                let offered = served.listing.get(name).ok_or_else(|| unknown(name))?;
                let mut answer = answer(&result, name, &offered, objects_only(context))?;
                answer.content.extend(answered.map(|at| ContentBlock::text(repeated(at))));
                Some(answer.into())
            }
            HeldAnswer::Asks(requests, state) => Some(InputRequiredResult::new(Some(requests), Some(state)).into()),
            HeldAnswer::Waits => Some(waits().into()),
            HeldAnswer::Works => Some(works().into()),
            HeldAnswer::Taken => None,
        })
    }

    /// Passes an unreadable call to the gate, which refuses and records it.
    pub(super) async fn refuse(&self, params: Value, context: &RequestContext<RoleServer>) -> ErrorData {
        let refused = ErrorData::invalid_params(
            "The parameters of a call are `name`, a string, and `arguments`, an object, each once.",
            None,
        );
        let Some(name) = params.get("name").and_then(Value::as_str) else { return refused };
        let (party, running) = match self.admitted(context).await {
            Ok(admitted) => admitted,
            Err(error) => return error,
        };
        let offered = self.server.0.listing.get(name);
        let arguments = params.get("arguments").map(Value::to_string).unwrap_or_default();
        self.record_refusal((name, offered.as_deref(), &arguments), &party, running, refused, context).await
    }

    /// Authenticates a request. Returns its party, and the permit for one running call.
    async fn admitted(&self, context: &RequestContext<RoleServer>) -> Result<(RunOptions, Room), ErrorData> {
        let running = self.server.0.calls.begin().map_err(full)?;
        let party = self.party(context).await?;
        let running = running.of(&party).map_err(full)?;
        Ok((party, running))
    }

    /// Passes a refused call to the gate, which records it. Returns `error`, or, for a tool that the caller may not
    /// see, the error for an unknown tool.
    async fn record_refusal(
        &self,
        (name, offered, arguments): (&str, Option<&Offered>, &str),
        party: &RunOptions,
        running: Room,
        error: ErrorData,
        context: &RequestContext<RoleServer>,
    ) -> ErrorData {
        // The gate refuses arguments that are a JSON array, so the tool does not run.
        let call = (name, offered, format!("[{arguments}]"));
        match self.begin(call, party, running, None, context).await {
            // A tool that the caller may not see gets the same error as one that does not exist.
            Ok(Begun::Ended(_, result)) if result.is_concealed() || result.outcome() == Outcome::Unavailable => {
                unknown(name)
            }
            Ok(_) => error,
            Err(other) => other,
        }
    }

    fn knows_tasks(&self, context: &RequestContext<RoleServer>) -> bool {
        let declares = context.client_capabilities().is_some_and(|declared| declared.supports_tasks());
        declares && self.server.0.tasks.has_tasks()
    }
}

/// The state of a call that began.
enum Begun {
    /// It ended in this run.
    Ended(Run, ToolExecResult),
    /// It has a question for its client.
    Asks(Ticket),
}

/// Awaits a call, and cancels it when `cancelled` or `stopped` fires. A cancelled call still ends by itself and writes
/// its record.
async fn until_cancelled(
    mut work: Pin<Box<impl Future<Output = ToolExecResult>>>,
    cancellation: &CancellationToken,
    cancelled: &CancellationToken,
    stopped: &CancellationToken,
) -> ToolExecResult {
    tokio::select! {
        result = &mut work => return result,
        () = cancelled.cancelled() => {}
        () = stopped.cancelled() => {}
    }
    cancellation.cancel();
    work.await
}
