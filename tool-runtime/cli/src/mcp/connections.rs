//! The accounts of the configuration file: `[mcp.connections.KIND]`. When a call needs a token, this module reads the
//! token from an environment variable or from the output of a command. The configuration file contains no tokens.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tool_runtime::Secret;
use tool_runtime::capability::{ConnectionBroker, ConnectionError, ConnectionHandle, ConnectionId, ConnectionRequest};

use crate::adapters::Adapters;
use crate::exit::Failure;
use crate::mcp::process::ProcessGroup;

/// The time in which a command has to print a token.
const PATIENCE: Duration = Duration::from_secs(10);

/// The maximum length of a token, in bytes.
const MAX_BYTES: u64 = 64 * 1024;

/// The environment variables that every command gets, in addition to those of the configuration file.
const ENVIRONMENT: [&str; 2] = ["PATH", "HOME"];

/// The source of an account's token.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Account {
    /// The environment variable with the token.
    token_env: Option<String>,
    /// The command that prints the token, with its arguments.
    token_command: Option<Vec<String>>,
    /// The names of further environment variables for the command.
    env: Option<Vec<String>>,
}

/// Checks the accounts of the configuration file, and that a server uses each of them.
pub(super) fn check(accounts: &BTreeMap<String, Account>, used: &[&str]) -> Result<(), Failure> {
    for (kind, account) in accounts {
        let wrong =
            |message: &str| Err(Failure::usage(format!("`[mcp.connections.{kind}]`: {message}")).code("config"));
        match (&account.token_env, &account.token_command) {
            (Some(_), None) if account.env.is_some() => {
                return wrong("only a command has an environment; remove `env`");
            }
            (None, Some(command)) if command.is_empty() => {
                return wrong("`token_command` is empty; write the program and its arguments");
            }
            (Some(_), None) | (None, Some(_)) => {}
            _ => return wrong("write `token_env` or `token_command`, and not both"),
        }
        if !used.contains(&kind.as_str()) {
            return wrong(&format!("no server uses it; write `connection = \"{kind}\"` for one"));
        }
    }
    Ok(())
}

/// Adds the accounts of the configuration file to the application's own, for runs of this party.
pub(crate) fn bound(
    adapters: Adapters,
    accounts: &BTreeMap<String, Account>,
    (principal, tenant): (Option<Arc<str>>, Option<Arc<str>>),
) -> Adapters {
    if accounts.is_empty() {
        return adapters;
    }
    let ids: Vec<_> = accounts.keys().map(|kind| (kind.clone(), ConnectionId::from(id_of(kind)))).collect();
    let accounts = accounts.clone();
    let broker = Broker { accounts, principal, tenant, others: adapters.broker.clone() };
    adapters.connections(Arc::new(broker), ids)
}

fn id_of(kind: &str) -> String {
    format!("mcp.connections.{kind}")
}

/// Resolves the accounts of the configuration file, and passes other accounts to the application's broker.
struct Broker {
    accounts: BTreeMap<String, Account>,
    /// The owner of the accounts. Runs of other principals get no token.
    principal: Option<Arc<str>>,
    tenant: Option<Arc<str>>,
    others: Option<Arc<dyn ConnectionBroker>>,
}

#[async_trait]
impl ConnectionBroker for Broker {
    async fn resolve(&self, request: ConnectionRequest<'_>) -> Result<ConnectionHandle, ConnectionError> {
        let account = self.accounts.get(request.kind).filter(|_| request.id.as_str() == id_of(request.kind));
        let Some(account) = account.filter(|_| request.wants_bearer_token()) else {
            return match &self.others {
                Some(others) => others.resolve(request).await,
                None => Err(ConnectionError::Unknown),
            };
        };
        if request.principal != self.principal.as_deref() || request.tenant != self.tenant.as_deref() {
            return Err(ConnectionError::Forbidden);
        }
        let token = account.token().await.map_err(|why| ConnectionError::Failed(why.into()))?;
        Ok(ConnectionHandle::bearer_token(token))
    }
}

impl Account {
    /// Reads the token. The error never quotes the text of the variable or the output of the command.
    async fn token(&self) -> Result<Secret<String>, String> {
        let text = match (&self.token_env, &self.token_command) {
            (Some(variable), _) => {
                std::env::var(variable).map_err(|_| format!("the environment variable {variable} is not set"))?
            }
            (None, Some(command)) => self.printed(command).await?,
            (None, None) => return Err("there is neither a variable nor a command".to_owned()),
        };
        let token = text.trim();
        if token.is_empty() { Err("the token is empty".to_owned()) } else { Ok(Secret::new(token.to_owned())) }
    }

    async fn printed(&self, command: &[String]) -> Result<String, String> {
        let (program, args) = command.split_first().ok_or("the command is empty")?;
        let names = ENVIRONMENT.into_iter().chain(self.env.iter().flatten().map(String::as_str));
        let variables = names.filter_map(|name| Some((name, std::env::var_os(name)?)));
        let mut command = Command::new(program);
        command
            .args(args)
            .env_clear()
            .envs(variables)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        // Dropping the group ends a command that still runs. If the command has ended, a process that it started, such
        // as a key agent, stays.
        let mut process =
            ProcessGroup::start(&mut command).map_err(|error| format!("`token_command` cannot be started: {error}"))?;
        let stdout = process.child().stdout.take().ok_or("`token_command` has no standard output")?;
        let ended = async {
            let text = read(stdout).await?;
            Ok::<_, std::io::Error>((text, process.child().wait().await?))
        };
        match tokio::time::timeout(PATIENCE, ended).await {
            Ok(Ok((text, status))) if status.success() => {
                String::from_utf8(text).map_err(|_| "`token_command` printed something other than text".to_owned())
            }
            Ok(Ok((_, status))) => Err(format!("`token_command` failed: {status}")),
            Ok(Err(error)) => Err(format!("`token_command` failed: {error}")),
            Err(_) => Err(format!("`token_command` took longer than {} s", PATIENCE.as_secs())),
        }
    }
}

/// Reads a token of at most `MAX_BYTES` bytes.
async fn read(stream: impl AsyncRead + Unpin) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    stream.take(MAX_BYTES + 1).read_to_end(&mut text).await?;
    if text.len() as u64 > MAX_BYTES {
        return Err(std::io::Error::other(format!("it printed more than {MAX_BYTES} bytes")));
    }
    Ok(text)
}
