//! `corpus KIND [--tools FILE] [--pool FILE] < ROWS`: passes each row of a corpus, which is a file with one JSON test
//! case on each line, through the library, and writes one result per line.

use std::collections::BTreeMap;
use std::io::{BufRead as _, Write as _};
use std::process::ExitCode;

use tests::corpus;

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

const USAGE: &str = "usage: corpus KIND [--tools FILE] [--pool FILE] < ROWS";

fn run() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().ok_or(USAGE)?;
    let mut paths = BTreeMap::new();
    while let Some(option) = arguments.next() {
        if !["--tools", "--pool"].contains(&option.as_str()) {
            return Err(USAGE.into());
        }
        paths.insert(option, arguments.next().ok_or(USAGE)?);
    }
    let file = |option: &str| paths.get(option).map(std::fs::read_to_string).transpose();
    match kind.as_str() {
        "schema-suite" => each(corpus::schema_suite),
        "definitions" => each(|row| Ok(corpus::definitions(row))),
        "policy" => each(|row| Ok(corpus::policy(row))),
        "redaction" => each(corpus::redaction),
        "text" => each(|row| Ok(corpus::text(row))),
        "retrieval" => {
            let tools = file("--tools")?.ok_or("retrieval needs --tools FILE")?;
            let pool = file("--pool")?;
            let (pool, left_out) = corpus::retrieval::Pool::read(&tools, pool.as_deref());
            for problem in left_out {
                writeln!(std::io::stderr(), "left out: {problem}")?;
            }
            each(|row| Ok(pool.answer(row)))
        }
        other => {
            let kinds = "definitions, policy, redaction, retrieval, schema-suite, text";
            Err(format!("unknown kind {other}; there are {kinds}").into())
        }
    }
}

/// Writes the result of every row on stdin to stdout.
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
