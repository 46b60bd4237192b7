//! `list`, `show`, `export`: the catalog and the policy. Runs no tool and opens no data.

use std::sync::Arc;

use serde::Serialize;

use crate::call::{Decision, Verdict};
use crate::catalog::{Entry, PickOptions, ToolCatalog};
use crate::cli::args::Form;
use crate::cli::call::json;
use crate::cli::exit::{Exit, Failure};
use crate::cli::session::{Cli, Party};
use crate::cli::{table, terminal};
use crate::policy::{PolicyContext, ToolPolicy, Unready};
use crate::text::nearest;
use crate::tool::ToolSpec;
use crate::wire::{EncodeOptions, Format, Loss};

#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    /// Under the policy.
    effect: &'a str,
    execution: &'a str,
    decision: &'a str,
    rule: String,
    /// Why no call can run, whatever the policy allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    unready: Option<&'static str>,
    hash: String,
    source: String,
}

/// What the gate would show a model of this party.
fn visibility(policy: &ToolPolicy, party: &Party, entry: &Entry) -> Decision {
    let context = PolicyContext {
        principal: party.principal.as_deref(),
        tenant: party.tenant.as_deref(),
        roles: &party.roles,
        ..PolicyContext::default()
    };
    policy.admit(&context, &entry.subject())
}

pub(super) fn list(cli: &Cli<'_>) -> Result<Exit, Failure> {
    let catalog = cli.catalog()?;
    let policy = cli.checked_policy(&catalog)?;
    let party = cli.party();
    let rows: Vec<_> = catalog
        .entries()
        .map(|entry| {
            let unready = catalog.unready(&policy, entry.spec.name.as_str());
            row(entry, &policy, visibility(&policy, &party, entry), unready.as_ref())
        })
        .collect();
    if cli.settings.json {
        terminal::line(&json(&rows)?);
        return Ok(Exit::Done);
    }
    let cells: Vec<_> = rows
        .iter()
        .map(|row| {
            let allows = row.decision != Verdict::Deny.as_str();
            let decision = row.unready.filter(|_| allows).map(|why| format!("{} ({why})", row.decision));
            let decision = decision.as_deref().unwrap_or(row.decision);
            [row.name, row.effect, row.execution, decision, &row.hash[..12], &row.source].map(ToOwned::to_owned)
        })
        .collect();
    table::print(["NAME", "EFFECT", "EXECUTION", "DECISION", "HASH", "SOURCE"], &cells);
    Ok(Exit::Done)
}

fn row<'a>(entry: &'a Entry, policy: &ToolPolicy, decision: Decision, unready: Option<&Unready>) -> Row<'a> {
    Row {
        name: entry.spec.name.as_str(),
        effect: policy.effect_of(entry.spec.name.as_str(), entry.spec.effect).as_str(),
        execution: entry.spec.execution.as_str(),
        decision: decision.verdict.as_str(),
        rule: decision.rule.into_owned(),
        unready: unready.map(Unready::code),
        hash: entry.spec.definition_hash.to_string(),
        source: entry.location.map_or_else(|| "dynamic".to_owned(), |location| location.to_string()),
    }
}

pub(super) fn show(cli: &Cli<'_>, name: &str, format: Form, strict: bool) -> Result<Exit, Failure> {
    let catalog = cli.catalog()?;
    let Some(entry) = catalog.entry(name) else { return Err(unknown(&catalog, name)) };
    let policy = cli.checked_policy(&catalog)?;
    match format {
        Form::Spec => {
            let shown = serde_json::to_value(&*entry.spec).map_err(|error| Failure::failed(error.to_string()))?;
            pretty(&shown)?;
        }
        Form::Provider(format) => encode(format, [&*entry.spec], strict)?,
    }
    let Decision { verdict, rule } = visibility(&policy, &cli.party(), entry);
    if verdict != Verdict::Allow {
        terminal::note(&format!("the policy says {verdict} ({rule})"));
    }
    Ok(Exit::Done)
}

pub(super) fn unknown(catalog: &ToolCatalog, name: &str) -> Failure {
    let names: Vec<_> = catalog.specs().map(|spec| spec.name.as_str()).collect();
    let shown = terminal::safe(name);
    let meant = match nearest(name, names.iter().copied()) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("the tools are: {}", names.join(", ")),
    };
    Failure::usage(format!("there is no tool `{shown}`; {meant}")).code("unavailable")
}

/// Prints what offers the visible tools, or those of them that fit a request.
pub(super) fn export(
    cli: &Cli<'_>,
    format: Format,
    strict: bool,
    picked: Option<(&str, PickOptions)>,
) -> Result<Exit, Failure> {
    let catalog = cli.catalog()?;
    let visible = visible(cli, &catalog)?;
    let specs: Vec<_> = match picked {
        None => shown(&catalog, &visible).map(|entry| &*entry.spec).collect(),
        Some((query, options)) => {
            let picks = catalog.pick_of(query, &options, shown(&catalog, &visible));
            if picks.is_empty() {
                terminal::note("no tool fits");
            }
            picks.iter().filter_map(|pick| catalog.get(pick.name.as_str())).collect()
        }
    };
    encode(format, specs, strict)?;
    Ok(Exit::Done)
}

/// Which of the tools that the catalog was built with the policy shows to this party, by their positions.
pub(super) fn visible(cli: &Cli<'_>, catalog: &ToolCatalog) -> Result<Vec<bool>, Failure> {
    let policy = cli.checked_policy(catalog)?;
    let party = cli.party();
    Ok(catalog
        .fixed_entries()
        .iter()
        .map(|entry| visibility(&policy, &party, entry).verdict != Verdict::Deny)
        .collect())
}

/// Those of them that are visible.
pub(super) fn shown<'c>(catalog: &'c ToolCatalog, visible: &'c [bool]) -> impl Iterator<Item = &'c Arc<Entry>> {
    catalog.fixed_entries().iter().zip(visible).filter(|(_, visible)| **visible).map(|(entry, _)| entry)
}

/// Prints what a provider is sent on stdout, and what its dialect cannot carry on stderr.
fn encode<'a>(format: Format, specs: impl IntoIterator<Item = &'a ToolSpec>, strict: bool) -> Result<(), Failure> {
    let encoded = format
        .encode_tools(specs, &EncodeOptions::default().with_strict(strict))
        .map_err(|error| Failure::failed(error.to_string()).code("not_encodable"))?;
    pretty(&encoded.body.into())?;
    losses(&encoded.losses);
    Ok(())
}

/// What an encoder left out, a line each.
pub(super) fn losses(losses: &[Loss]) {
    for loss in losses {
        let tool = loss.tool.as_deref().unwrap_or("the request");
        terminal::note(&format!("left out: {} at {} of {}", loss.what, loss.path, terminal::safe(tool)));
    }
}

fn pretty(value: &serde_json::Value) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Failure::failed(error.to_string()))?;
    terminal::line(&terminal::safe_json(&text));
    Ok(())
}
