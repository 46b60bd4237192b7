//! `hydrate`: checks calls against tool definitions, with JSON lines as input and output. It runs no tool.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tool_runtime::call::CallId;
use tool_runtime::catalog::CatalogBuilder;
use tool_runtime::hydrate::HydrationResult;
use tool_runtime::{Outcome, RunOptions, ToolCall, ToolCatalog, ToolPolicy, ToolRunner};
use tool_runtime_cli::{AppCommand, Cli, Definition, Exit, Failure, Progress, input, read_definitions, terminal};

/// Hydrate calls against tool definitions, JSON lines in and out; executes nothing
#[derive(Debug, Args)]
pub(crate) struct Hydrate {
    /// Tool definitions, one JSON object per line; `-` is standard input
    #[arg(long, value_name = "FILE")]
    tools: PathBuf,
    /// Provider calls, one JSON object per line; `-` is standard input
    #[arg(long, value_name = "FILE")]
    calls: PathBuf,
}

impl AppCommand for Hydrate {
    const NAME: &'static str = "hydrate";
    const EXAMPLES: &'static str = "% hydrate --tools tools.jsonl --calls calls.jsonl > results.jsonl";

    async fn run(self, _: &Cli<'_>) -> Result<Exit, Failure> {
        hydrate(&self.tools, &self.calls)
    }
}

#[derive(Deserialize)]
struct CallRow {
    id: String,
    payload: Payload,
    /// Arguments that are too large for a line, as pieces of text with their numbers of repetitions.
    arguments_pieces: Option<Vec<(String, usize)>>,
    /// Arguments as Base64, which may not be UTF-8 text.
    arguments_b64: Option<String>,
}

/// A call in the form of any provider.
#[derive(Deserialize)]
struct Payload {
    id: Option<Value>,
    name: Option<String>,
    input: Option<Box<RawValue>>,
    function: Option<Function>,
}

#[derive(Deserialize)]
struct Function {
    name: Option<String>,
    arguments: Option<Box<RawValue>>,
}

#[derive(Serialize)]
struct ResultRow<'a> {
    id: &'a str,
    outcome: &'static str,
    errors: Vec<Located<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Box<RawValue>>,
    call_id: &'a str,
    repaired: bool,
}

#[derive(Serialize)]
struct Located<'a> {
    pointer: &'a str,
    keyword: &'a str,
}

fn hydrate(tools: &Path, calls: &Path) -> Result<Exit, Failure> {
    let runners = Runners::read(tools)?;
    let text = input::text(input::file(calls)?, &calls.display().to_string())?;
    let mut progress = Progress::new("calls", lines(&text).count());
    for (number, line) in lines(&text) {
        let row: CallRow = row(calls, number, line)?;
        let shown = match call(&row) {
            Some(call) => {
                // Each row has its own run, so that no row affects another.
                let run = runners.of(&call).run(RunOptions::new());
                let id = call.id.clone();
                let result = run.hydrate([call]).pop();
                result.map(|result| describe(&row.id, &id, &result)).transpose()?
            }
            None => Some(print_row(&ResultRow {
                id: &row.id,
                outcome: "parse_error",
                errors: Vec::new(),
                args: None,
                call_id: CallId::generate().as_str(),
                repaired: false,
            })?),
        };
        shown.iter().for_each(|line| terminal::line(line));
        progress.step();
    }
    Ok(Exit::Done)
}

/// The runners for the definitions of the file; at least one. The definitions may come from many servers, so names that
/// one catalog would refuse together are in separate catalogs.
struct Runners {
    all: Vec<ToolRunner>,
    by_name: HashMap<String, usize>,
}

impl Runners {
    fn read(path: &Path) -> Result<Self, Failure> {
        let mut catalogs = vec![(ToolCatalog::builder(), Vec::new())];
        let (mut by_name, mut alike) = (HashMap::new(), HashMap::<_, usize>::new());
        read_definitions(path, |Definition { name, tool, .. }| {
            if by_name.contains_key(&name) {
                return Err(format!("it is another `{name}`"));
            }
            let at = alike.entry(look_alike(&name)).and_modify(|at| *at += 1).or_default();
            by_name.insert(name.clone(), *at);
            if *at == catalogs.len() {
                catalogs.push((ToolCatalog::builder(), Vec::new()));
            }
            let (catalog, names) = &mut catalogs[*at];
            *catalog = std::mem::take(catalog).dynamic(tool.redact(["$"; 0]));
            names.push(name);
            Ok(())
        })?;
        let runner = |(catalog, names): (CatalogBuilder, Vec<String>)| {
            let catalog = catalog.build().map_err(|error| Failure::usage(error.to_string()))?;
            // The definitions are pinned without a review, because the user chose this file and no tool runs.
            let pinned = catalog.specs().filter_map(|spec| Some((spec.name.to_string(), json!({"pin": spec.pin?}))));
            let pinned: BTreeMap<_, _> = pinned.collect();
            let policy = ToolPolicy::from_json(&json!({"allowed_tools": names, "tools": pinned}).to_string())
                .map_err(|error| Failure::failed(error.to_string()))?;
            let runner = ToolRunner::builder(catalog, policy).build();
            runner.map_err(|error| Failure::usage(error.to_string()))
        };
        Ok(Self { all: catalogs.into_iter().map(runner).collect::<Result<_, _>>()?, by_name })
    }

    /// Returns the runner with the call's tool, or any runner if there is none.
    fn of(&self, call: &ToolCall) -> &ToolRunner {
        &self.all[self.by_name.get(call.name.as_str()).copied().unwrap_or_default()]
    }
}

/// Returns a key that is equal for names that one catalog refuses together, because they differ only in case or in `-`
/// and `_`.
fn look_alike(name: &str) -> String {
    name.to_ascii_lowercase().replace('-', "_")
}

fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(at, line)| (at + 1, line)).filter(|(_, line)| !line.trim().is_empty())
}

fn row<'a, T: Deserialize<'a>>(path: &Path, number: usize, line: &'a str) -> Result<T, Failure> {
    serde_json::from_str(line).map_err(|error| Failure::usage(format!("{}, line {number}: {error}", path.display())))
}

/// Returns the call of a row; `None` if its arguments are not UTF-8 text.
fn call(row: &CallRow) -> Option<ToolCall> {
    let payload = &row.payload;
    let function = payload.function.as_ref();
    let name = payload.name.as_deref().or_else(|| function?.name.as_deref()).unwrap_or_default();
    let id = payload.id.as_ref().and_then(Value::as_str).unwrap_or_default();
    if let Some(pieces) = &row.arguments_pieces {
        let text: String = pieces.iter().map(|(text, times)| text.repeat(*times)).collect();
        return Some(ToolCall::text(id, name, text));
    }
    if let Some(encoded) = &row.arguments_b64 {
        let bytes = base64::engine::general_purpose::STANDARD.decode(encoded).ok()?;
        return String::from_utf8(bytes).ok().map(|text| ToolCall::text(id, name, text));
    }
    let raw = payload.input.as_ref().or_else(|| function?.arguments.as_ref());
    let Some(raw) = raw.map(|raw| raw.get()).filter(|raw| *raw != "null") else {
        return Some(ToolCall::text(id, name, ""));
    };
    // A string is unwrapped once, because it contains JSON; any other value is used unchanged.
    if raw.starts_with('"') {
        return serde_json::from_str::<String>(raw).ok().map(|text| ToolCall::text(id, name, text));
    }
    Some(ToolCall::object(id, name, raw))
}

fn describe(id: &str, call_id: &CallId, result: &HydrationResult) -> Result<String, Failure> {
    let (outcome, errors) = match &result.hydrated {
        Ok(_) => ("ok", Vec::new()),
        Err(error) => (
            match error.error_code {
                Outcome::LimitExceeded => "limit_error",
                Outcome::Unavailable | Outcome::PolicyDenied => "unknown_tool",
                Outcome::ValidationError => "validation_error",
                Outcome::InvalidJson => "parse_error",
                _ => "instantiate_error",
            },
            error.errors.iter().map(|one| Located { pointer: &one.pointer, keyword: &one.keyword }).collect(),
        ),
    };
    print_row(&ResultRow {
        id,
        outcome,
        errors,
        args: result.validated.as_ref().and_then(|text| RawValue::from_string(text.to_string()).ok()),
        call_id: call_id.as_str(),
        repaired: result.repairer().is_some(),
    })
}

fn print_row(row: &ResultRow<'_>) -> Result<String, Failure> {
    terminal::json(row)
}
