//! `replay`: decodes recorded responses, executes their calls, and prints the records as JSON lines.

use std::path::PathBuf;

use clap::Args;
use tool_runtime::store::{RecordFilter, Store as _};
use tool_runtime::wire::Format;
use tool_runtime_cli::{AppCommand, Cli, Exit, Failure, Progress, formats, read_response, terminal};

/// Decode recorded responses, execute their calls, print the records as JSON lines
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The provider's format
    #[arg(long, value_parser = formats())]
    format: Format,
    /// Recorded HTTP responses or bare bodies; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Text to treat as the user's: ids in it count as evidence
    #[arg(long, value_name = "TEXT")]
    user_text: Option<String>,
}

impl AppCommand for Replay {
    const NAME: &'static str = "replay";
    const EXAMPLES: &'static str = "% replay --format openai-chat response.http > records.jsonl";

    async fn run(self, cli: &Cli<'_>) -> Result<Exit, Failure> {
        let Self { format, files, user_text } = self;
        // All files are read before the first call, so that an unreadable file does not leave the work half done.
        let responses = files.iter().map(|file| read_response(format, file)).collect::<Result<Vec<_>, _>>()?;
        let mut gravest = Exit::Done;
        let mut progress = Progress::new("responses", files.len());
        for (file, decoded) in files.iter().zip(responses) {
            let gate = cli.gate().await?;
            let options = gate.options(None);
            let run = gate.runner.run(match &user_text {
                Some(text) => options.user_text(text),
                None => options,
            });
            run.begin_turn();
            if let Some(error) = &decoded.error {
                terminal::message(&terminal::safe(&format!("{}: {error}", file.display())));
            }
            if !decoded.ended_well() {
                gravest = gravest.max(Exit::Failed);
            }
            for call in decoded.calls {
                let result = run.exec(call.call).await;
                gravest = gravest.max(Exit::of(result.outcome()));
            }
            // The records of waiting calls come last.
            let (store, own) = (gate.runner.store(), RecordFilter::run(run.id()));
            let mut records = store.calls(&own).await?;
            records.extend(store.open_records(&own).await?);
            for record in records {
                terminal::line(&terminal::json(&record)?);
            }
            progress.step();
        }
        Ok(gravest)
    }
}
