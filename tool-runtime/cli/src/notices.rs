//! `notices`: lists, sends and retries the notices about calls.

use std::sync::Arc;

use clap::Subcommand;
use serde::Serialize;
use tool_runtime::store::{Store, StoredNotice};

use crate::exit::{Exit, Failure};
use crate::session::Cli;
use crate::terminal::json;
use crate::{attend, table, terminal};

#[derive(Debug, Subcommand)]
pub(crate) enum Notices {
    /// List the tenant's notices with their deliveries, oldest first. A notice is removed a week after it was delivered
    /// or given up
    List,
    /// Send the notices of all tenants that are due to the webhook of the configuration, once
    Send {
        /// Send notices until Ctrl-C or SIGTERM
        #[arg(long)]
        watch: bool,
    },
    /// Make a notice due now, and allow ten more attempts
    Retry {
        /// The notice, as `notices list` prints it
        id: String,
    },
}

/// A notice, as `--json` prints it.
#[derive(Serialize)]
struct NoticeRow<'a> {
    id: &'a str,
    event: &'a str,
    state: &'static str,
    tool: &'a str,
    run: &'a str,
    call: &'a str,
    principal: Option<&'a str>,
    tenant: Option<&'a str>,
    created: String,
    next: Option<String>,
    attempts: Vec<Attempt<'a>>,
}

/// An attempt to deliver a notice.
#[derive(Serialize)]
struct Attempt<'a> {
    at: String,
    status: Option<u16>,
    code: Option<&'a str>,
}

impl<'a> NoticeRow<'a> {
    fn of(notice: &'a StoredNotice) -> Self {
        Self {
            id: &notice.id,
            event: &notice.event,
            state: notice.state(),
            tool: &notice.tool,
            run: &notice.run_id,
            call: notice.call_id.as_str(),
            principal: notice.principal.as_deref(),
            tenant: notice.tenant.as_deref(),
            created: format!("{:.0}", notice.created_at),
            next: notice.next.map(|next| format!("{next:.0}")),
            attempts: notice
                .attempts()
                .map(|(at, status, code)| Attempt { at: format!("{at:.0}"), status, code })
                .collect(),
        }
    }

    fn cells(&self) -> [String; 9] {
        let last = self.attempts.last().map_or_else(String::new, |attempt| match (attempt.code, attempt.status) {
            (Some(code), Some(status)) => format!("{code} {status}"),
            (Some(code), None) => code.to_owned(),
            (None, status) => status.unwrap_or_default().to_string(),
        });
        let texts = [self.event, self.tool, self.run, self.call, self.id];
        let [event, tool, run, call, id] = texts.map(terminal::safe);
        let next = self.next.clone().unwrap_or_default();
        [self.created.clone(), event, tool, run, call, self.state.to_owned(), last, next, id]
    }
}

pub(super) async fn notices(cli: &Cli<'_>, action: Notices) -> Result<Exit, Failure> {
    let store = cli.existing_records("`--store URL`").await?;
    match action {
        Notices::List => list(cli, &*store).await,
        Notices::Send { watch } => send(cli, store, watch).await,
        Notices::Retry { id } => retry(cli, &*store, &id).await,
    }
}

async fn list(cli: &Cli<'_>, store: &dyn Store) -> Result<Exit, Failure> {
    let (notices, exit) = terminal::readable(StoredNotice::all(store, cli.party().tenant.as_deref()).await?);
    let rows: Vec<_> = notices.iter().map(NoticeRow::of).collect();
    let none = "the store has no notices; the table `notices` of a policy enables them";
    let heading = ["CREATED", "EVENT", "TOOL", "RUN", "CALL", "STATE", "LAST", "NEXT", "ID"];
    table::list(cli, &rows, none, heading, NoticeRow::cells)?;
    Ok(exit)
}

async fn send(cli: &Cli<'_>, store: Arc<dyn Store>, watch: bool) -> Result<Exit, Failure> {
    let notifier = cli.settings.webhook.notifier(store)?;
    if watch {
        terminal::note("sending notices; Ctrl-C or SIGTERM ends it");
        notifier.run(attend::end_signal()).await;
        return Ok(Exit::Done);
    }
    let delivered = notifier.send_due().await?;
    if cli.settings.json {
        terminal::line(&json(&serde_json::json!({ "delivered": delivered }))?);
    } else {
        terminal::line(&format!("delivered: {delivered}"));
    }
    Ok(Exit::Done)
}

async fn retry(cli: &Cli<'_>, store: &dyn Store, id: &str) -> Result<Exit, Failure> {
    let (notices, _) = terminal::readable(StoredNotice::all(store, cli.party().tenant.as_deref()).await?);
    let shown = terminal::safe(id);
    let Some(notice) = notices.iter().find(|notice| *notice.id == *id) else {
        return Err(Failure::usage(format!("there is no notice `{shown}` (see `notices list`)")).code("not_found"));
    };
    if !notice.retry(store).await? {
        return Err(Failure::usage(format!("the notice `{shown}` is being sent now")).code("in_progress"));
    }
    if cli.settings.json {
        terminal::line(&json(&serde_json::json!({ "id": id, "state": "pending" }))?);
    } else {
        terminal::line(&format!("due now: {shown}"));
    }
    Ok(Exit::Done)
}
