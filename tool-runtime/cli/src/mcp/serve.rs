//! `mcp serve`: serves the application's tools to MCP clients.

use std::net::SocketAddr;
use std::time::Duration;

use tool_runtime::error::BuildError;
use tool_runtime::mcp::serve::{HttpOptions, McpServer, Peer};

use crate::exit::{Exit, Failure};
use crate::session::Cli;
use crate::{attend, log, terminal};

/// The time that running calls have to end after a signal, or after the client has closed standard input.
const GRACE: Duration = Duration::from_secs(10);

/// Serves one client over standard input and output until the client closes them, or many clients over HTTP. Ctrl-C and
/// SIGTERM end both. Every client acts for the principal, the tenant, the roles and the attributes of this command.
pub(super) async fn serve(cli: &Cli<'_>, http: Option<SocketAddr>) -> Result<Exit, Failure> {
    if let Some(address) = http.filter(|address| !address.ip().is_loopback()) {
        return Err(Failure::usage(format!(
            "{address} is not a loopback address, and this server does not authenticate users: listen on 127.0.0.1, \
             behind a proxy that does"
        )));
    }
    let gate = cli.open().await?;
    let rules = gate.runner.asking_rules(false);
    if cli.settings.store.is_none() && !rules.is_empty() {
        return Err(Failure::usage(format!(
            "calls can wait for a person ({}), and no person can reach them: name a store that `approvals` shares, such as \
             --store sqlite:shared.db",
            rules.join("; ")
        ))
        .code("mcp_unreachable"));
    }
    log::report_lost_records(cli.json());
    let options = gate.options(None);
    let builder = McpServer::builder(gate.runner.clone(), move |_: &Peer<'_>| Some(options.clone()))
        .name(cli.app.name, cli.app.version);
    // A call can wait even if the policy requires no approval: an earlier call may have an unknown outcome.
    let builder = if cli.settings.store.is_none() { builder.without_approvers() } else { builder };
    let server = builder.build().map_err(|error| failed(&error))?;
    let Some(address) = http else {
        let ended = tokio::select! {
            ended = server.stdio() => ended,
            () = attend::end_signal() => Ok(()),
        };
        server.close(GRACE).await;
        return ended.map(|()| Exit::Done).map_err(|error| failed(&error));
    };
    let (address, serving) = server.bind(address, &HttpOptions::new()).await.map_err(|error| failed(&error))?;
    terminal::part(&format!("listening on http://{address}/mcp\n"));
    let closed = async {
        attend::end_signal().await;
        server.close(GRACE).await;
    };
    tokio::join!(serving, closed);
    Ok(Exit::Done)
}

fn failed(error: &BuildError) -> Failure {
    Failure::usage(error.to_string()).code(error.code())
}
