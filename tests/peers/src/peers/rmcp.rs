//! `rmcp`: the router of a server, without its transport.

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::tool::ToolCallContext;
use rmcp::handler::server::wrapper::{Json, Parameters};
use rmcp::model::{CallToolRequestParams, CallToolResponse, NumberOrString};
use rmcp::service::{Peer as Client, RequestContext, serve_directly};
use rmcp::{RoleServer, ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Peer, ready};
use crate::tools::{Large, Medium, Row, Shape, Ticket, Tiny, add, file, sort};

/// Structured content is an object.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Sum {
    sum: i64,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Rows {
    rows: Vec<Row>,
}

#[derive(Clone)]
pub struct Server;

#[tool_router]
impl Server {
    #[tool(description = "Adds.")]
    fn tiny(&self, Parameters(arguments): Parameters<Tiny>) -> Json<Sum> {
        Json(Sum { sum: add(arguments) })
    }

    #[tool(description = "Files a ticket.")]
    fn medium(&self, Parameters(arguments): Parameters<Medium>) -> Json<Ticket> {
        Json(file(arguments))
    }

    #[tool(description = "Sorts rows.")]
    fn large(&self, Parameters(arguments): Parameters<Large>) -> Json<Rows> {
        Json(Rows { rows: sort(arguments) })
    }
}

#[tool_handler]
impl ServerHandler for Server {}

pub struct Rmcp {
    router: ToolRouter<Server>,
    client: Client<RoleServer>,
}

impl Rmcp {
    pub fn new() -> Self {
        // A context requires a peer at the other end, although none of the tools uses it.
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let _entered = runtime.enter();
        let (here, _) = tokio::io::duplex(64);
        let service = serve_directly::<RoleServer, _, _, _, _>(Server, here, None);
        Self { router: Server::tool_router(), client: service.peer().clone() }
    }
}

impl Peer for Rmcp {
    fn name(&self) -> &'static str {
        "rmcp"
    }

    fn call(&self, shape: Shape, arguments: &str) -> String {
        let arguments = serde_json::from_str(arguments).expect("the arguments are an object");
        let request = CallToolRequestParams::new(shape.name()).with_arguments(arguments);
        let context = RequestContext::new(NumberOrString::Number(1), self.client.clone());
        let response = ready(self.router.call(ToolCallContext::new(&Server, request, context)));
        let CallToolResponse::Complete(result) = response.expect("the tool runs") else {
            unreachable!("none of the tools asks anything")
        };
        serde_json::to_string(&result).expect("a result is JSON")
    }
}
