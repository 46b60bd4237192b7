//! `six-turns FOLDER`: runs the conversation of six turns in every format. Writes the request bodies to
//! `FOLDER/FORMAT.jsonl`, one per line, those of two typed answers to `FOLDER/FORMAT.typed.jsonl`, and the events of
//! the runs to `FOLDER/FORMAT.PROTOCOL`, as one UI stream before the hand-over and one after it.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use tests::six_turns;
use tool_runtime::Event;
use tool_runtime::agent::TurnOutcome;
use tool_runtime::wire::Format;
use tool_runtime::wire::ui::{Protocol, UiEncoder};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "six-turns: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("usage: six-turns FOLDER")?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for &format in Format::ALL {
        let bodies = runtime.block_on(six_turns::typed(format))?;
        std::fs::write(folder.join(format!("{format}.typed.jsonl")), bodies.join("\n") + "\n")?;
        for strict in [false, true] {
            let six = runtime.block_on(six_turns::hold(format, strict))?;
            if !matches!(six.ended, TurnOutcome::Answered { .. }) {
                return Err(format!("{format}: {:?}", six.ended).into());
            }
            let bodies: Vec<_> = six.asked.iter().map(|asked| asked.body.as_str()).collect();
            let name = if strict { format!("{format}.strict.jsonl") } else { format!("{format}.jsonl") };
            std::fs::write(folder.join(name), bodies.join("\n") + "\n")?;
            let handed_over = six.events.iter().position(|event| matches!(event, Event::Done { .. }));
            let (first, second) = six.events.split_at(handed_over.ok_or("no hand-over")? + 1);
            for &protocol in Protocol::ALL {
                for (part, events) in [("first", first), ("second", second)] {
                    let mut encoder = UiEncoder::new(protocol);
                    let mut bytes: Vec<u8> = events.iter().flat_map(|event| encoder.push_event(event)).collect();
                    bytes.extend(encoder.finish());
                    std::fs::write(folder.join(format!("{format}-{part}.{protocol}")), bytes)?;
                }
            }
        }
    }
    Ok(())
}
