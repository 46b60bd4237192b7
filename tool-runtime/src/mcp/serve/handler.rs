//! [`Handler`]: handles the protocol's requests for one connection.
#![expect(deprecated, reason = "logging is part of every revision that this server supports")]

use std::borrow::Cow;
use std::sync::Arc;

use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestMethod, CompleteRequestParams,
    CompleteResult, CustomRequest, CustomResult, ErrorCode, ErrorData, GetTaskParams, GetTaskResult,
    ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesRequestMethod, ListResourceTemplatesResult,
    ListResourcesRequestMethod, ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    ServerConfig, SetLevelRequestParams, SubscriptionFilter, Tool, UpdateTaskParams,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use serde_json::Value;

use crate::contain::awaited;
use crate::mcp::serve::McpServer;
use crate::mcp::serve::authenticator::Peer;
use crate::mcp::serve::changes;
use crate::mcp::serve::error::broken;
use crate::mcp::serve::params;
use crate::mcp::serve::session::Session;
use crate::runner::{Run, RunOptions, ServedRun};

/// The method that calls a tool.
const CALL: &str = "tools/call";

/// The other methods that this server supports.
const KNOWN: [&str; 7] = [
    "initialize",
    "tools/list",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
    "logging/setLevel",
    "subscriptions/listen",
];

/// Handles one connection to a client, or one request of a client without a session.
#[derive(Clone)]
pub(super) struct Handler {
    pub(super) server: McpServer,
    pub(super) session: Arc<Session>,
}

impl Handler {
    pub(super) fn new(server: McpServer) -> Self {
        Self { server, session: Arc::new(Session::new()) }
    }

    /// Returns the party that a request acts for.
    pub(super) async fn party(&self, context: &RequestContext<RoleServer>) -> Result<RunOptions, ErrorData> {
        let peer = Peer::of(&context.extensions);
        match awaited(|| self.server.0.authenticator.authenticate(&peer)).await {
            Ok(options) => options.ok_or_else(not_admitted),
            Err(_) => {
                tracing::error!("the application's `Authenticator` panicked, so an MCP client is refused");
                Err(broken())
            }
        }
    }

    /// Returns the run of the session.
    pub(super) fn run(&self, party: RunOptions) -> Result<Run, ErrorData> {
        let served = &self.server.0;
        self.session.run(&served.runner, party, served.window).ok_or_else(not_admitted)
    }
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
        // The first page has all tools, so the server never issued a cursor.
        if request.is_some_and(|request| request.cursor.is_some()) {
            return Err(ErrorData::invalid_params("The cursor is not from this server.", None));
        }
        let party = self.party(&context).await?;
        let run = self.run(party.clone())?;
        let served = &self.server.0;
        // A client without subscriptions gets a notification of every change after its first list.
        if served.runner.catalog().may_change() && objects_only(&context) && self.session.is_first_list() {
            tokio::spawn(changes::announce(self.server.clone(), party, context.peer.clone()));
        }
        let tools = served.listing.visible(&ServedRun(&run).catalog_now(), objects_only(&context));
        Ok(ListToolsResult::with_all_items(tools))
    }

    /// Returns the tool without the keywords of header parameters. `rmcp` would check those headers incorrectly,
    /// because it does not see the arguments as the client wrote them.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        let offered = self.server.0.listing.get(name)?;
        let mut tool = offered.described(false).clone();
        if !offered.params.is_empty() {
            let mut schema = Value::Object((*tool.input_schema).clone());
            params::without(&mut schema);
            tool.input_schema = Arc::new(schema.as_object().cloned().unwrap_or_default());
        }
        Some(tool)
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourcesRequestMethod>())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourceTemplatesRequestMethod>())
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }

    /// Handles requests that `rmcp` cannot parse: an unknown method, or invalid parameters of a known method.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method == CALL {
            return Err(self.refuse(request.params.unwrap_or_default(), &context).await);
        }
        if KNOWN.contains(&&*request.method) {
            return Err(ErrorData::invalid_params("The parameters do not fit this method.", None));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "This server has no such method.", None))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // Boxed, because in a debug build the nested futures of a call can overflow the stack of a worker thread.
        Box::pin(self.exec(request, &context)).await
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
            // The result can be from another run of the party, which can have labels (marks that its tools set). The
            // client has now read the result, so the session's run takes them over.
            ServedRun(&self.run(party)?).take_labels_of(&run);
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
        // `rmcp` reduces the filter to the kinds that the client requested and the server offers.
        self.server.0.runner.catalog().may_change().then(|| requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let request = context.request_context();
        let party = self.party(request).await?;
        changes::listen(&self.server.0, &party, &context).await
    }

    async fn set_level(&self, request: SetLevelRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.session.set_level(request.level);
        Ok(())
    }
}

/// Whether the client's revision is older than 2026-07-28, so that results and output schemas must be objects.
pub(super) fn objects_only(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_none_or(|version| version.as_str() < ProtocolVersion::V_2026_07_28.as_str())
}

/// Returns the error for a party that is not admitted. It is the same for all reasons.
fn not_admitted() -> ErrorData {
    ErrorData::invalid_request("This client may not use the tools of this server.", None)
}
