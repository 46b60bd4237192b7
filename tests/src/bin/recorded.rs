//! `recorded FOLDER`: decodes recorded responses and compares them with the folder's index.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // If stderr is closed, the exit code alone reports the failure.
            let _ = writeln!(std::io::stderr(), "{error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<bool, Box<dyn std::error::Error>> {
    let folder = std::env::args_os().nth(1).ok_or("usage: recorded FOLDER")?;
    let (seen, wrong) = tests::recorded::check(Path::new(&folder));
    let mut out = std::io::stdout().lock();
    for difference in &wrong {
        writeln!(out, "{difference}")?;
    }
    writeln!(out, "{seen} responses, {} differences", wrong.len())?;
    Ok(wrong.is_empty())
}
