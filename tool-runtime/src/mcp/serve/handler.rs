//! [`Handler`]: the protocol's requests, for one connection.
#![expect(deprecated, reason = "logging is part of every revision that is spoken here")]

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;

use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, ClientCapabilities, CreateTaskResult, ErrorCode,
    ErrorData, GetTaskParams, GetTaskResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion, ServerConfig,
    SetLevelRequestParams, SubscriptionFilter, Tool, UpdateTaskParams,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::call::{CallId, Outcome, ToolCall, ToolExecResult};
use crate::contain::awaited;
use crate::mcp::serve::McpServer;
use crate::mcp::serve::admit::Peer;
use crate::mcp::serve::answer::{answer, unknown};
use crate::mcp::serve::changes;
use crate::mcp::serve::client::{Outbox, fills_in_forms};
use crate::mcp::serve::raw;
use crate::mcp::serve::session::Session;
use crate::mcp::serve::shutdown::Full;
use crate::mcp::serve::tasks::{Answered, Running, Waiting, asking};
use crate::runner::{CallClient, Run, RunOptions};

/// What JSON-RPC leaves to servers for errors of their own.
pub(super) const SERVER_ERROR: ErrorCode = ErrorCode(-32000);

/// One connection to a client, or one request of a client without a session.
#[derive(Clone)]
pub(super) struct Handler {
    server: McpServer,
    session: Arc<Session>,
}

impl Handler {
    pub(super) fn new(server: McpServer) -> Self {
        Self { server, session: Arc::new(Session::new()) }
    }

    /// Whom a request acts for.
    async fn party(&self, context: &RequestContext<RoleServer>) -> Result<RunOptions, ErrorData> {
        let peer = Peer::of(&context.extensions);
        match awaited(|| self.server.0.admit.admit(&peer)).await {
            Ok(options) => options.ok_or_else(not_admitted),
            Err(_) => {
                tracing::error!("the application's `Admit` panicked, so an MCP client is refused");
                Err(broken())
            }
        }
    }

    /// The run of the session.
    fn run(&self, party: RunOptions) -> Result<Run, ErrorData> {
        self.session.run(&self.server.0.runner, party).ok_or_else(not_admitted)
    }

    /// Takes a call through the gate.
    async fn exec(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let served = &self.server.0;
        let running = served.calls.begin().map_err(full)?;
        let party = self.party(context).await?;
        let run = self.run(party.clone())?;
        let offered = served.listing.get(&request.name);
        let arguments = raw::arguments(request.arguments.unwrap_or_default()).ok_or_else(broken)?;
        let name = offered.map_or(&*request.name, |offered| &*offered.tool);
        let mut call = ToolCall::object(CallId::generate(), name, arguments);
        call.origin.provider = Some(Cow::Borrowed("mcp"));
        call.origin.provider_call_id = Some(context.id.to_string());
        let cancellation = Arc::new(run.cancellation().child_token());
        let (mut offers, outbox) = Outbox::of(&run, &self.session, context, &request.name);
        let declared = context.client_capabilities().filter(ClientCapabilities::supports_tasks);
        // A client of an older revision is asked while it waits for the answer.
        let questions =
            declared.as_ref().filter(|_| !objects_only(context)).and_then(|one| served.tasks.questions(one));
        if let Some(questions) = &questions {
            offers = asking(offers, questions, &run);
        }
        let id = call.id.clone();
        let client = CallClient { is_offered: offered.is_some(), offers, cancellation: Arc::clone(&cancellation) };
        // On the heap: a connection has as many of these as its client makes calls.
        let result = Box::pin(run.exec_for(client, call));
        let result = match questions {
            None => outbox.during(unless(result, &cancellation, &context.ct, served.calls.stopped())).await,
            Some(questions) => {
                let (run, party, call, name) = (run.clone(), party.clone(), id, request.name.to_string());
                let (quiet, server, token) =
                    (outbox.quiet(), self.server.clone(), CancellationToken::clone(&cancellation));
                let ended = tokio::spawn(async move {
                    // It counts until it ends, whatever became of its request.
                    let (_running, calls) = (running, &server.0.calls);
                    outbox.during(unless(result, &cancellation, calls.stopped(), calls.stopped())).await
                });
                let running = Running { run, party, call, name, questions, cancellation: token, quiet, ended };
                match served.tasks.answered(&self.server, running, &context.ct).await? {
                    Answered::Ended(result) => result,
                    Answered::Asks(task) => return Ok(CreateTaskResult::new(task).into()),
                }
            }
        };
        let Some(offered) = offered else { return Err(unknown(&request.name)) };
        if result.outcome() == Outcome::ApprovalRequired
            && let Some(declared) = declared
        {
            let (call, name, asks) = (result.call_id(), &*request.name, fills_in_forms(&declared));
            let waiting = Waiting { run: &run, party, call, name, asks };
            if let Some(task) = served.tasks.open(&self.server, waiting).await? {
                return Ok(CreateTaskResult::new(task).into());
            }
        }
        answer(&result, &request.name, offered, objects_only(context)).map(CallToolResponse::from)
    }
}

/// Takes a call to its end. One that is cancelled still ends by itself, with its record.
async fn unless(
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

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        self.server.0.config.clone()
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::KNOWN_VERSIONS)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        // All tools are on the first page, so there never was a cursor.
        if request.is_some_and(|request| request.cursor.is_some()) {
            return Err(ErrorData::invalid_params("The cursor is not one of this server.", None));
        }
        let run = self.run(self.party(&context).await?)?;
        let tools = self.server.0.listing.visible(run.catalog(), objects_only(&context));
        Ok(ListToolsResult::with_all_items(tools))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        Some(self.server.0.listing.get(name)?.described(false).clone())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.exec(request, &context).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let party = self.party(&context).await?;
        let tasks = &self.server.0.tasks;
        let (task, run) = tasks.get(&self.server, party.clone(), &request.task_id, objects_only(&context)).await?;
        if task.status().is_terminal() {
            // The session reads what another run of its party returned.
            self.run(party)?.take_labels_of(&run);
        }
        Ok(GetTaskResult::new(task))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let party = self.party(&context).await?;
        self.server.0.tasks.update(&self.server, party, &request.task_id, request.input_responses).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let party = self.party(&context).await?;
        self.server.0.tasks.cancel(&self.server, party, &request.task_id).await
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        // `rmcp` leaves of it what was asked for and what the server offers.
        self.server.0.runner.catalog().may_change().then(|| requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let request = context.request_context();
        let (party, is_http) = (self.party(request).await?, Peer::of(&request.extensions).is_http());
        changes::listen(&self.server.0, &party, &context, !is_http).await
    }

    async fn set_level(&self, request: SetLevelRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.session.set_level(request.level);
        Ok(())
    }
}

/// Whether the client knows results and output schemas that are objects only.
fn objects_only(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_none_or(|version| version.as_str() < ProtocolVersion::V_2026_07_28.as_str())
}

/// The same for everybody who is not let in.
fn not_admitted() -> ErrorData {
    ErrorData::invalid_request("This client may not use the tools of this server.", None)
}

pub(super) fn full(why: Full) -> ErrorData {
    let (code, message) = match why {
        Full::Busy => ("busy", "The server runs as many calls as it may. Try again later."),
        Full::Closing => ("closing", "The server is closing. Try again later."),
    };
    ErrorData::new(SERVER_ERROR, message, Some(json!({"code": code})))
}

/// A defect of the server, of which operators know more.
pub(super) fn broken() -> ErrorData {
    ErrorData::internal_error("The server failed.", None)
}
