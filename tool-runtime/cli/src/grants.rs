//! `grants`: adds, lists and revokes grants. A grant is a decision on later calls of a tool: they run without an
//! approval, or are refused.

mod add;

use std::sync::Arc;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use tool_runtime::call::Verdict;
use tool_runtime::store::{GrantScope, Store, StoredGrant};

use crate::exit::{Exit, Failure};
use crate::session::{Cli, DeciderArgs};
use crate::terminal::json;
use crate::{table, terminal, values};

#[derive(Debug, Subcommand)]
pub(crate) enum Grants {
    /// List the tenant's active grants, oldest first
    List,
    /// Grant later calls like a waiting one, so that they run without an approval. The call itself still waits
    Add(Add),
    /// Revoke a grant: later calls need an approval again. A record names the person who revoked it
    Revoke(Revoke),
}

/// The arguments of `grants add`.
#[derive(Debug, Args)]
pub(crate) struct Add {
    /// The call, as `approvals list` prints it; RUN/CALL if several calls have this id. The grant is for its tool
    pub(crate) id: String,
    /// The runs that the grant covers: the call's own run, or all runs of its conversation, its principal or its tenant
    #[arg(long = "for", value_enum, value_name = "RUNS")]
    pub(crate) scope: Scope,
    /// The arguments that the grant covers: a JSON list of conditions such as `[{"pointer": "/to", "one_of":
    /// ["a@example.org"]}]`, `-` for standard input, `@FILE` for a file; by default exactly the call's arguments
    #[arg(long, value_name = "JSON")]
    pub(crate) matching: Option<String>,
    /// Cover any arguments
    #[arg(long, conflicts_with = "matching")]
    pub(crate) any_arguments: bool,
    /// How many calls may run; unlimited by default, but required for a tool with external effects
    #[arg(long, value_name = "N", conflicts_with = "deny")]
    pub(crate) uses: Option<u32>,
    /// How long the grant lasts, for example 7d; unlimited by default, but required to allow external effects
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub(crate) expires_in: Option<Duration>,
    /// Refuse these calls instead
    #[arg(long)]
    pub(crate) deny: bool,
    #[command(flatten)]
    pub(crate) who: DeciderArgs,
}

/// The arguments of `grants revoke`.
#[derive(Debug, Args)]
pub(crate) struct Revoke {
    /// The grant, as `grants list` prints it; records name it as the rule `grant:ID`
    id: String,
    /// The person who revokes it, for the audit record; by default the principal, else `operator`
    #[arg(long = "as", value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    decider: Option<String>,
    /// The reason, for the audit record
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// The runs that a grant covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scope {
    Run,
    Conversation,
    Principal,
    Tenant,
}

pub(super) async fn grants(cli: &Cli<'_>, action: Grants) -> Result<Exit, Failure> {
    let missing = || Failure::usage("name the store that holds the grants: --store sqlite:FILE or postgres://..");
    let store = cli.kept_records().await?.ok_or_else(missing)?;
    let tenant = cli.party().tenant;
    let found = async || Ok::<_, Failure>(terminal::readable(StoredGrant::all(&*store, tenant.as_deref()).await?));
    match action {
        Grants::List => {
            let (grants, exit) = found().await?;
            list(cli, &grants).map(|()| exit)
        }
        Grants::Add(asked) => add::add(cli, asked).await,
        Grants::Revoke(asked) => revoke(cli, &*store, &found().await?.0, &asked).await,
    }
}

/// A grant as `--json` prints it. The conditions on arguments are left out, because they can hold sensitive values.
#[derive(Serialize)]
struct GrantRow<'a> {
    id: &'a str,
    tool: &'a str,
    verdict: Verdict,
    scope: &'a GrantScope,
    principal: Option<&'a str>,
    tenant: Option<&'a str>,
    /// The caller whose calls the grant covers: `"direct"`, or `{"graph": NAME}`.
    caller: serde_json::Value,
    labels: &'a [Arc<str>],
    /// The number of remaining uses; `None` if it is unlimited.
    uses: Option<u32>,
    expires_at: Option<String>,
    decided_by: &'a str,
    reason: Option<&'a str>,
    created_at: String,
}

impl<'a> GrantRow<'a> {
    fn of(grant: &'a StoredGrant) -> Self {
        Self {
            id: &grant.id,
            tool: grant.tool.as_str(),
            verdict: grant.verdict,
            scope: &grant.scope,
            principal: grant.principal.as_deref(),
            tenant: grant.tenant.as_deref(),
            caller: grant.graph().map_or(serde_json::json!("direct"), |graph| serde_json::json!({ "graph": graph })),
            labels: &grant.labels,
            uses: grant.uses,
            expires_at: grant.expires_at.map(|end| format!("{end:.0}")),
            decided_by: grant.decider.principal(),
            reason: grant.decider.reason(),
            created_at: format!("{:.0}", grant.created_at),
        }
    }

    /// Returns the covered runs as text.
    fn scope(&self) -> String {
        match self.scope {
            GrantScope::Run(run) => format!("run {run}"),
            GrantScope::Conversation(conversation) => format!("conversation {conversation}"),
            GrantScope::Principal => format!("runs of {}", self.principal.unwrap_or_default()),
            _ => "the tenant".to_owned(),
        }
    }

    /// Returns a sentence about the effect of the grant, for `grants add`.
    fn describe(&self) -> String {
        let does = if self.verdict == Verdict::Deny { "are refused" } else { "run without an approval" };
        let uses = match self.uses {
            None => String::new(),
            Some(1) => ", once".to_owned(),
            Some(uses) => format!(", {uses} times"),
        };
        let until = self.expires_at.as_ref().map(|end| format!(", until {end}")).unwrap_or_default();
        let (tool, scope) = (terminal::safe(self.tool), terminal::safe(&self.scope()));
        format!("granted {}: such calls of {tool} {does}, for {scope}{uses}{until}", self.id)
    }

    fn cells(&self) -> [String; 7] {
        let scope = self.scope();
        let uses = self.uses.map_or_else(|| "any number".to_owned(), |uses| uses.to_string());
        let expires = self.expires_at.clone().unwrap_or_else(|| "never".to_owned());
        let verdict = self.verdict.to_string();
        let texts = [self.id.to_owned(), self.tool.to_owned(), verdict, scope, uses, expires];
        let [id, tool, verdict, scope, uses, expires] = texts.map(|text| terminal::safe(&text));
        [id, tool, verdict, scope, uses, expires, terminal::safe(self.decided_by)]
    }
}

fn list(cli: &Cli<'_>, found: &[StoredGrant]) -> Result<(), Failure> {
    let rows: Vec<_> = found.iter().map(GrantRow::of).collect();
    let heading = ["GRANT", "TOOL", "VERDICT", "FOR", "USES", "EXPIRES", "DECIDED BY"];
    table::list(cli, &rows, "no grant is active", heading, GrantRow::cells)
}

async fn revoke(cli: &Cli<'_>, store: &dyn Store, found: &[StoredGrant], asked: &Revoke) -> Result<Exit, Failure> {
    let Revoke { id, decider, reason } = asked;
    // An unknown grant, an expired grant and a grant of another tenant get the same message.
    let unknown = || {
        let text = format!("no grant `{}` is active in this tenant (see `grants list`)", terminal::safe(id));
        Failure::usage(text).code("not_found")
    };
    let grant = found.iter().find(|grant| *grant.id == **id).ok_or_else(unknown)?;
    let decider = cli.decider(decider.as_deref(), reason.as_deref());
    if !grant.revoke(store, &decider).await? {
        return Err(unknown());
    }
    let row = GrantRow::of(grant);
    terminal::line(&if cli.settings.json {
        json(&row)?
    } else {
        let now =
            if row.verdict == Verdict::Deny { "are not refused by it any more" } else { "need an approval again" };
        format!("revoked: calls of {} {now}", terminal::safe(row.tool))
    });
    Ok(Exit::Done)
}
