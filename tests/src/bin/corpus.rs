//! `corpus KIND < ROWS`: runs the corpora through the public API, one result a line.

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

fn run() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let (Some(kind), None) = (arguments.next(), arguments.next()) else {
        return Err("usage: corpus KIND < ROWS".into());
    };
    match kind.as_str() {
        "schema-suite" => each(corpus::schema_suite),
        "definitions" => each(|row| Ok(corpus::definitions(row))),
        "policy" => each(|row| Ok(corpus::policy(row))),
        "redaction" => each(corpus::redaction),
        "calls" => Err("calls are hydrated by the command line: toolbox hydrate --tools FILE --calls FILE".into()),
        other => {
            let kinds = "definitions, policy, redaction, schema-suite";
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
