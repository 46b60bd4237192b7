//! `score KIND ROWS RESULTS [PROFILE=PERCENT ..]`: the share of `corpus` results that match their rows, by profile (a
//! kind of rows). Fails if a smaller percentage of a named profile's rows match, or if it has no rows.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::ExitCode;

use tests::corpus::{measures, score};

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
    let [kind, rows, results, wanted @ ..] = arguments.as_slice() else {
        return Err("usage: score KIND ROWS RESULTS [PROFILE=PERCENT ..]".into());
    };
    let (rows, results) = (std::fs::read_to_string(rows)?, std::fs::read_to_string(results)?);
    match kind.as_str() {
        "retrieval" => return measured(&measures::retrieval(&rows, &results)?, wanted),
        "text-hazards" | "text-tool-calls" => return measured(&measures::text(&rows, &results)?, wanted),
        _ => {}
    }
    let profiles = match kind.as_str() {
        "calls" => score::calls(&rows, &results)?,
        "schema-suite" => score::schema_suite(&rows, &results)?,
        "definitions" => score::definitions(&rows, &results)?,
        "redaction" | "policy" => score::plain(kind, &rows, &results)?,
        other => return Err(format!("unknown kind {other}").into()),
    };
    let mut out = std::io::stdout().lock();
    let mut short = Vec::new();
    for one in wanted {
        let (profile, percent) = one.split_once('=').ok_or("a threshold is PROFILE=PERCENT")?;
        let least: f64 = percent.parse()?;
        if profiles.get(profile).is_none_or(|rates| rates.percent_located() < least) {
            short.push(one.as_str());
        }
    }
    for (profile, rates) in profiles {
        writeln!(out, "{profile}: {rates}")?;
        for miss in rates.misses {
            writeln!(out, "  {miss}")?;
        }
    }
    if short.is_empty() { Ok(()) } else { Err(format!("fewer than wanted: {}", short.join(", ")).into()) }
}

/// Prints measures. A threshold is the minimum of a measure. Times are printed and have no threshold.
fn measured(measures: &BTreeMap<&str, f64>, wanted: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    for (measure, value) in measures {
        writeln!(out, "{measure}: {value:.2}")?;
    }
    let mut short = Vec::new();
    for one in wanted {
        let (measure, limit) = one.split_once('=').ok_or("a threshold is MEASURE=NUMBER")?;
        let limit: f64 = limit.parse()?;
        if measures.get(measure).is_none_or(|got| *got < limit) {
            short.push(one.as_str());
        }
    }
    if short.is_empty() { Ok(()) } else { Err(format!("not as wanted: {}", short.join(", ")).into()) }
}
