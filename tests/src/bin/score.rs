//! `score KIND ROWS RESULTS`: how many results of `corpus` are what the rows expect, by profile.

use std::io::Write as _;
use std::process::ExitCode;

use tests::corpus::score;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "score: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [kind, rows, results] = arguments.as_slice() else {
        return Err("usage: score KIND ROWS RESULTS".into());
    };
    let (rows, results) = (std::fs::read_to_string(rows)?, std::fs::read_to_string(results)?);
    let profiles = match kind.as_str() {
        "calls" => score::calls(&rows, &results)?,
        "schema-suite" => score::schema_suite(&rows, &results)?,
        other => return Err(format!("unknown kind {other}").into()),
    };
    let mut out = std::io::stdout().lock();
    for (profile, rates) in profiles {
        writeln!(out, "{profile}: {rates}")?;
        for miss in rates.misses {
            writeln!(out, "  {miss}")?;
        }
    }
    Ok(())
}
