//! `pick`: ranks the tools that fit a request. It runs no tool.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};
use tool_runtime::catalog::{Pick, PickIndex, PickOptions};

use crate::catalog::Visible;
use crate::definitions::read_definitions;
use crate::exit::{Exit, Failure};
use crate::session::Cli;
use crate::terminal::json;
use crate::{input, table, terminal, values};

#[derive(Debug, Args)]
pub(crate) struct PickArgs {
    /// The user's request
    #[arg(required_unless_present = "queries", conflicts_with = "queries")]
    pub(crate) query: Option<String>,
    /// The maximum number of tools to pick
    #[arg(short, value_name = "TOOLS", default_value_t = 3, value_parser = values::most)]
    pub(crate) k: usize,
    /// Pick from these tool definitions, one JSON object per line; broken ones are left out and noted
    #[arg(long, value_name = "FILE")]
    pub(crate) tools: Option<PathBuf>,
    /// Requests, one JSON object with `id` and `query` per line; prints `{"id","ranked","ms"}` for each; `-` is
    /// standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) queries: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Query {
    id: Value,
    query: String,
}

/// The tools to pick from: all tools of a file, or the visible tools of the catalog.
enum Tools<'c> {
    File(PickIndex),
    Catalog(Visible<'c>),
}

impl Tools<'_> {
    fn pick(&self, query: &str, options: &PickOptions) -> Vec<Pick> {
        match self {
            Self::File(index) => index.pick(query, options, &|_| true),
            Self::Catalog(visible) => visible.pick(query, options),
        }
    }

    fn unmatched(&self, query: &str) -> Vec<String> {
        match self {
            Self::File(index) => index.unmatched(query, &|_| true),
            Self::Catalog(visible) => visible.unmatched(query),
        }
    }
}

pub(super) fn pick(cli: &Cli<'_>, command: &PickArgs) -> Result<Exit, Failure> {
    let catalog;
    let tools = match &command.tools {
        Some(path) => Tools::File(read(path)?),
        None => {
            catalog = cli.catalog()?;
            Tools::Catalog(Visible::of(cli, &catalog)?)
        }
    };
    let options = PickOptions::new(command.k);
    if let Some(path) = &command.queries {
        return answer(&tools, &options, path);
    }
    let query = command.query.as_deref().unwrap_or_default();
    let picks = tools.pick(query, &options);
    if cli.settings.json {
        terminal::line(&terminal::safe_json(&json(&picks)?));
    } else if picks.is_empty() {
        terminal::note("no tool fits");
    } else {
        let rows: Vec<_> =
            picks.iter().map(|pick| [pick.name.to_string(), format!("{:.3}", pick.score), reasons(pick)]).collect();
        table::print(["NAME", "SCORE", "FOUND"], &rows);
    }
    let unmatched = tools.unmatched(query);
    if !unmatched.is_empty() {
        terminal::note(&format!("no tool has: {}", terminal::safe(&unmatched.join(", "))));
    }
    Ok(Exit::Done)
}

/// Returns the five words with the greatest weight.
fn reasons(pick: &Pick) -> String {
    let mut words: Vec<&str> = Vec::new();
    for (word, ..) in pick.reasons() {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    terminal::safe(&words.into_iter().take(5).collect::<Vec<_>>().join(", "))
}

/// Prints one line with the picks for each request of a file.
fn answer(tools: &Tools<'_>, options: &PickOptions, path: &Path) -> Result<Exit, Failure> {
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

fn read(path: &Path) -> Result<PickIndex, Failure> {
    let mut index = PickIndex::default();
    read_definitions(path, |defined| {
        index.insert(&defined.spec);
        Ok(())
    })?;
    Ok(index)
}
