//! `corpus KIND [--tools FILE] < ROWS`: runs the corpora through the public API, one result a line.

use std::io::{BufRead as _, Write as _};
use std::process::ExitCode;

use tests::corpus::{self, Tools};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "corpus: {error}");
            ExitCode::from(2)
        }
    }
}

type Failure = Box<dyn std::error::Error>;

fn run() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().ok_or("usage: corpus KIND [--tools FILE] < ROWS")?;
    let mut tools = String::new();
    while let Some(option) = arguments.next() {
        let file = arguments.next().ok_or_else(|| format!("{option} needs a file"))?;
        match option.as_str() {
            "--tools" => tools = std::fs::read_to_string(file)?,
            _ => return Err(format!("unknown option {option}").into()),
        }
    }
    match kind.as_str() {
        "calls" => {
            let tools = Tools::read(&tools)?;
            each(|row| corpus::calls(row, &tools))
        }
        "schema-suite" => each(corpus::schema_suite),
        "definitions" => each(corpus::definitions),
        "policy" => each(|row| Ok(corpus::policy(row))),
        "redaction" => each(corpus::redaction),
        other => {
            let kinds = "calls, definitions, policy, redaction, schema-suite";
            Err(format!("unknown kind {other}; there are {kinds}").into())
        }
    }
}

/// Every row on stdin to its result on stdout.
fn each(result: impl Fn(&str) -> serde_json::Result<String>) -> Result<(), Failure> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for row in std::io::stdin().lock().lines() {
        let row = row?;
        if !row.trim().is_empty() {
            writeln!(out, "{}", result(&row)?)?;
        }
    }
    Ok(out.flush()?)
}
