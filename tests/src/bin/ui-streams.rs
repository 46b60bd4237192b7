//! `ui-streams < LISTS`: takes lists of events, `{"protocol": .., "events": [..]}` in each line, and writes for each a
//! line with its stream as a JSON string. The packages of chat UIs read thousands of them without a process for each.

use std::io::{BufRead as _, Write as _};
use std::process::ExitCode;

use serde::Deserialize;
use tool_runtime::wire::ui::{Protocol, UiEncoder, UiEvent};

#[derive(Deserialize)]
struct List {
    protocol: String,
    events: Vec<UiEvent>,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If stderr is closed, the exit code alone reports the failure.
            let _ = writeln!(std::io::stderr(), "ui-streams: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let List { protocol, events } = serde_json::from_str(&line?)?;
        let mut encoder = UiEncoder::new(protocol.parse::<Protocol>()?);
        let mut stream: Vec<u8> = events.iter().flat_map(|event| encoder.push(event)).collect();
        stream.extend(encoder.finish());
        writeln!(out, "{}", serde_json::to_string(std::str::from_utf8(&stream)?)?)?;
        out.flush()?;
    }
    Ok(())
}
