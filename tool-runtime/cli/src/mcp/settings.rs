//! The servers of the configuration file: `[mcp.servers.ID]`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use tool_runtime::mcp::source::RemoteServer;

use crate::app::Adapters;
use crate::args::Servers;
use crate::exit::Failure;
use crate::mcp::connections::{self, Account};
use crate::session::Party;

/// The table `[mcp]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct McpSettings {
    servers: BTreeMap<String, ServerSettings>,
    connections: BTreeMap<String, Account>,
}

/// A server: a command or a URL.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerSettings {
    /// The command with its arguments.
    command: Option<Vec<String>>,
    /// Variables of this process's environment that the command gets; `PATH` by default.
    env: Option<Vec<String>>,
    /// The folder that the command starts in.
    folder: Option<PathBuf>,
    url: Option<String>,
    /// Headers, each with the variable of the environment that holds its value.
    header_env: Option<BTreeMap<String, String>>,
    /// The kind of the connection whose token each call has.
    connection: Option<String>,
    connect_timeout_ms: Option<u64>,
    call_timeout_ms: Option<u64>,
}

/// The servers of the configuration file.
pub(crate) fn servers(settings: &McpSettings) -> Result<Vec<RemoteServer>, Failure> {
    let used: Vec<_> = settings.servers.values().filter_map(|server| server.connection.as_deref()).collect();
    connections::check(&settings.connections, &used)?;
    settings.servers.iter().map(|(id, settings)| server(id, settings)).collect()
}

/// Lets runs of this party use the accounts of the configuration file.
pub(crate) fn connected(adapters: Adapters, settings: &McpSettings, party: &Party) -> Adapters {
    connections::bound(adapters, &settings.connections, party)
}

/// The server that a command line names; `None` if it names none.
pub(super) fn named(servers: &Servers) -> Result<Option<RemoteServer>, Failure> {
    let command = Some(servers.command.clone()).filter(|command| !command.is_empty());
    if command.is_none() && servers.url.is_none() {
        return Ok(None);
    }
    let env = command.is_some().then(|| std::iter::once("PATH".to_owned()).chain(servers.env.clone()).collect());
    let settings = ServerSettings {
        command,
        env,
        folder: None,
        url: servers.url.clone(),
        header_env: None,
        connection: None,
        connect_timeout_ms: None,
        call_timeout_ms: None,
    };
    server(&servers.id, &settings).map(Some)
}

fn server(id: &str, settings: &ServerSettings) -> Result<RemoteServer, Failure> {
    let wrong = |message: &str| Err(Failure::usage(format!("`[mcp.servers.{id}]`: {message}")).code("config"));
    let mut server = match (&settings.command, &settings.url) {
        (Some(command), None) => {
            let Some((program, args)) = command.split_first() else {
                return wrong("`command` is empty; write the program and its arguments");
            };
            if settings.header_env.is_some() || settings.connection.is_some() {
                return wrong("a command has no headers; remove `header_env` and `connection`");
            }
            let names = settings.env.clone().unwrap_or_else(|| vec!["PATH".to_owned()]);
            let variables = names.iter().filter_map(|name| Some((name, std::env::var(name).ok()?)));
            let server = variables
                .fold(RemoteServer::command(id, program).args(args.iter().cloned()), |server, (name, value)| {
                    server.env(name, value)
                });
            match &settings.folder {
                Some(folder) => server.folder(folder),
                None => server,
            }
        }
        (None, Some(url)) => {
            if settings.env.is_some() || settings.folder.is_some() {
                return wrong("a URL has neither environment nor folder; remove `env` and `folder`");
            }
            let mut server = RemoteServer::url(id, url);
            for (header, variable) in settings.header_env.iter().flatten() {
                let Ok(value) = std::env::var(variable) else {
                    return wrong(&format!("the environment variable {variable} for the header `{header}` is not set"));
                };
                server = server.header(header, value);
            }
            match &settings.connection {
                // Once for each server: the names of kinds are part of the program elsewhere.
                Some(kind) => server.connection(kind.clone().leak()),
                None => server,
            }
        }
        _ => return wrong("write `command` or `url`, and not both"),
    };
    if let Some(millis) = settings.connect_timeout_ms {
        server = server.connect_timeout(Duration::from_millis(millis));
    }
    if let Some(millis) = settings.call_timeout_ms {
        server = server.call_timeout(Duration::from_millis(millis));
    }
    Ok(server)
}
