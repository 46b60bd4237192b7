//! `six-turns FOLDER`: holds the conversation of six turns in every format, and writes the request bodies that were
//! sent to `FOLDER/FORMAT.jsonl`, one a line.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use tests::six_turns;
use tool_runtime::agent::Ended;
use tool_runtime::wire::Format;

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
    for format in [Format::OpenAiChat, Format::OpenAiResponses, Format::Anthropic, Format::Ollama] {
        for strict in [false, true] {
            let six = runtime.block_on(six_turns::hold(format, strict))?;
            if !matches!(six.ended, Ended::Answered { .. }) {
                return Err(format!("{format}: {:?}", six.ended).into());
            }
            let bodies: Vec<_> = six.asked.iter().map(|asked| asked.body.as_str()).collect();
            let name = if strict { format!("{format}.strict.jsonl") } else { format!("{format}.jsonl") };
            std::fs::write(folder.join(name), bodies.join("\n") + "\n")?;
        }
    }
    Ok(())
}
