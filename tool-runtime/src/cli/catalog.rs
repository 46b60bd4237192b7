//! `list`, `show`, `export`, `check`: the catalog and the policy, without running anything.

use serde::Serialize;

use crate::catalog::{Entry, ToolCatalog};
use crate::cli::app::App;
use crate::cli::args::{Form, Global};
use crate::cli::call::json;
use crate::cli::exit::{Exit, Failure};
use crate::cli::{session, terminal};
use crate::policy::{KnownTool, PolicyContext, Stage, Subject, Verdict};
use crate::wire::{EncodeOptions, Format};

#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    effect: &'a str,
    execution: &'a str,
    decision: &'a str,
    rule: String,
    hash: String,
    source: String,
}

fn collect(app: &App) -> Result<ToolCatalog, Failure> {
    (app.collect)().map_err(|error| Failure::usage(error.to_string()))
}

pub(super) fn list(app: &App, global: &Global) -> Result<Exit, Failure> {
    let catalog = collect(app)?;
    let policy = session::policy(app, global)?;
    let context = PolicyContext::default();
    let rows: Vec<_> = catalog
        .entries()
        .map(|entry| {
            let decision = policy.decide(&context, Stage::Visibility, &Subject::of(&entry.spec), None);
            row(entry, decision.verdict.as_str(), decision.rule.into_owned())
        })
        .collect();
    if global.json {
        terminal::line(&json(&rows)?);
        return Ok(Exit::Done);
    }
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(4);
    terminal::line(&terminal::bold(&format!(
        "{:width$}  {:20}  {:9}  {:16}  {:12}  SOURCE",
        "NAME", "EFFECT", "EXECUTION", "DECISION", "HASH"
    )));
    for row in &rows {
        terminal::line(&format!(
            "{:width$}  {:20}  {:9}  {:16}  {:12}  {}",
            row.name,
            row.effect,
            row.execution,
            row.decision,
            &row.hash[..12],
            row.source
        ));
    }
    Ok(Exit::Done)
}

fn row<'a>(entry: &'a Entry, decision: &'a str, rule: String) -> Row<'a> {
    Row {
        name: entry.spec.name.as_str(),
        effect: entry.spec.effect.as_str(),
        execution: entry.spec.execution.as_str(),
        decision,
        rule,
        hash: entry.spec.definition_hash.to_string(),
        source: entry.location.map_or_else(|| "dynamic".to_owned(), |location| location.to_string()),
    }
}

pub(super) fn show(app: &App, name: &str, format: Form, strict: bool) -> Result<Exit, Failure> {
    let catalog = collect(app)?;
    let Some(entry) = catalog.entry(name) else {
        let names: Vec<_> = catalog.specs().map(|spec| spec.name.as_str()).collect();
        return Err(Failure::usage(format!(
            "there is no tool `{}`; there are: {}",
            terminal::safe(name),
            names.join(", ")
        )));
    };
    let shown = match format {
        Form::Spec => serde_json::to_value(&*entry.spec).map_err(|error| Failure::failed(error.to_string()))?,
        Form::Provider(format) => encode(format, [&*entry.spec], strict)?,
    };
    pretty(&shown)
}

pub(super) fn export(app: &App, global: &Global, format: Format, strict: bool) -> Result<Exit, Failure> {
    let catalog = collect(app)?;
    let policy = session::policy(app, global)?;
    let context = PolicyContext::default();
    let visible = catalog
        .specs()
        .filter(|spec| policy.decide(&context, Stage::Visibility, &Subject::of(spec), None).verdict != Verdict::Deny);
    pretty(&encode(format, visible, strict)?)
}

fn encode<'a>(
    format: Format,
    specs: impl IntoIterator<Item = &'a crate::tool::ToolSpec>,
    strict: bool,
) -> Result<serde_json::Value, Failure> {
    match format.encode_tools(specs, &EncodeOptions::default().with_strict(strict)) {
        Ok(encoded) => Ok(encoded.body.into()),
        Err(error) => Err(Failure::failed(error.to_string())),
    }
}

fn pretty(value: &serde_json::Value) -> Result<Exit, Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Failure::failed(error.to_string()))?;
    terminal::line(&terminal::safe_json(&text));
    Ok(Exit::Done)
}

pub(super) fn check(app: &App, global: &Global) -> Result<Exit, Failure> {
    let mut problems = Vec::new();
    match ((app.collect)(), session::policy(app, global)) {
        (Ok(catalog), Ok(policy)) => {
            let known: Vec<_> = catalog.specs().map(KnownTool::of).collect();
            problems.extend(policy.check(&known).iter().map(ToString::to_string));
            problems.extend(catalog.warm().err().map(|error| error.to_string()));
        }
        (catalog, policy) => {
            problems.extend(catalog.err().map(|error| error.to_string()));
            problems.extend(policy.err().map(|error| error.message));
        }
    }
    if global.json {
        terminal::line(&json(&problems)?);
    } else if problems.is_empty() {
        terminal::line("catalog and policy are in order");
    } else {
        problems.iter().for_each(|problem| terminal::line(problem));
    }
    Ok(if problems.is_empty() { Exit::Done } else { Exit::Failed })
}
