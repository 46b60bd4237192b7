//! The MCP servers of the configuration file: `[mcp.servers.ID]`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde::Deserialize;
use tool_runtime::mcp::source::{RemoteServer, ToolSource};

use crate::adapters::Adapters;
use crate::exit::Failure;
use crate::mcp::connections;
use crate::mcp::connections::Account;
use crate::terminal;

/// The servers of a command: those of the configuration file, or one that these options name.
#[derive(Debug, Args)]
pub(crate) struct Servers {
    /// The id of the server that `--url` or the command names
    #[arg(long, value_name = "ID", default_value = "server")]
    pub(crate) id: String,
    /// The URL of a server
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    pub(crate) url: Option<String>,
    /// An environment variable to pass to the command in addition to PATH; repeat it for several
    #[arg(long = "env", value_name = "NAME")]
    pub(crate) env: Vec<String>,
    /// The command of a server, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

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
    /// The names of the environment variables for the command; `PATH` by default.
    env: Option<Vec<String>>,
    /// The folder in which the command starts.
    folder: Option<PathBuf>,
    url: Option<String>,
    /// The environment variables with the values of headers, by header.
    header_env: Option<BTreeMap<String, String>>,
    /// The kind of the connection whose token is sent with each call.
    connection: Option<String>,
    connect_timeout_ms: Option<u64>,
    call_timeout_ms: Option<u64>,
}

/// Returns the servers of the configuration file.
pub(crate) fn servers(settings: &McpSettings) -> Result<Vec<RemoteServer>, Failure> {
    let used: Vec<_> = settings.servers.values().filter_map(|server| server.connection.as_deref()).collect();
    connections::check(&settings.connections, &used)?;
    settings.servers.iter().map(|(id, settings)| server(id, settings)).collect()
}

/// Adds the accounts of the configuration file, for runs of this party.
pub(crate) fn connected(
    adapters: Adapters,
    settings: &McpSettings,
    (principal, tenant): (Option<Arc<str>>, Option<Arc<str>>),
) -> Adapters {
    connections::bound(adapters, &settings.connections, (principal, tenant))
}

/// Returns the server that the options name; `None` if they name none.
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
                // This leaks one name per server, because a kind is a `&'static str`.
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

/// Starts to connect to servers. The commands that need an unreachable server print a note about it.
pub(crate) fn start(servers: Vec<RemoteServer>) -> Result<ToolSource, Failure> {
    ToolSource::start(servers).map_err(|error| Failure::usage(error.to_string()).code("config"))
}

/// Prints notes on the servers for operators.
pub(crate) fn note(notes: &BTreeMap<String, String>) {
    for (server, note) in notes {
        terminal::note(&terminal::safe_lines(&format!("the server `{server}`: {note}")));
    }
}
