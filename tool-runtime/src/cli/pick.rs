//! `pick`: which tools fit a request. Runs nothing.

use std::path::Path;
use std::time::Instant;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::catalog::pick::Index;
use crate::catalog::{Pick, PickOptions, ToolCatalog};
use crate::cli::args;
use crate::cli::call::json;
use crate::cli::catalog::{shown, visible};
use crate::cli::exit::{Exit, Failure};
use crate::cli::session::Cli;
use crate::cli::{definitions, input, table, terminal};

#[derive(Deserialize)]
struct Query {
    id: Value,
    query: String,
}

/// What is picked from.
enum Tools {
    File(Index),
    Catalog(ToolCatalog, Vec<bool>),
}

impl Tools {
    fn pick(&self, query: &str, options: &PickOptions) -> Vec<Pick> {
        match self {
            Self::File(index) => index.pick(query, options, &|_| true),
            Self::Catalog(catalog, visible) => catalog.pick_of(query, options, shown(catalog, visible)),
        }
    }
}

pub(super) fn pick(cli: &Cli<'_>, command: &args::Pick) -> Result<Exit, Failure> {
    let tools = match &command.tools {
        Some(path) => Tools::File(read(path)?),
        None => {
            let catalog = cli.catalog()?;
            let visible = visible(cli, &catalog)?;
            Tools::Catalog(catalog, visible)
        }
    };
    let options = PickOptions::new(command.k);
    if let Some(path) = &command.queries {
        return answer(&tools, &options, path);
    }
    let picks = tools.pick(command.query.as_deref().unwrap_or_default(), &options);
    if cli.settings.json {
        terminal::line(&terminal::safe_json(&json(&picks)?));
    } else if picks.is_empty() {
        terminal::note("no tool fits");
    } else {
        let rows: Vec<_> =
            picks.iter().map(|pick| [pick.name.to_string(), format!("{:.3}", pick.score), reasons(pick)]).collect();
        table::print(["NAME", "SCORE", "FOUND"], &rows);
    }
    Ok(Exit::Done)
}

/// The words that count most, once each.
fn reasons(pick: &Pick) -> String {
    let mut words: Vec<&str> = Vec::new();
    for reason in &pick.reasons {
        if !words.contains(&reason.word.as_str()) {
            words.push(&reason.word);
        }
    }
    terminal::safe(&words.into_iter().take(5).collect::<Vec<_>>().join(", "))
}

/// Answers each request of a file on a line of its own.
fn answer(tools: &Tools, options: &PickOptions, path: &Path) -> Result<Exit, Failure> {
    let text = input::text(input::file(path)?, &path.display().to_string())?;
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let Query { id, query } = serde_json::from_str(line)
            .map_err(|error| Failure::usage(format!("{}, line {}: {error}", path.display(), number + 1)))?;
        let started = Instant::now();
        let picks = tools.pick(&query, options);
        let ms = started.elapsed().as_secs_f64() * 1e3;
        let ranked: Vec<_> = picks.iter().map(|pick| pick.name.as_str()).collect();
        terminal::line(&terminal::safe_json(&json!({"id": id, "ranked": ranked, "ms": ms}).to_string()));
    }
    Ok(Exit::Done)
}

fn read(path: &Path) -> Result<Index, Failure> {
    let mut index = Index::default();
    definitions::read(path, |defined| {
        index.insert(&defined.spec);
        Ok(())
    })?;
    Ok(index)
}
