//! `replay`: recorded responses are decoded and their calls executed; the records come out as JSON lines.

use std::path::PathBuf;

use crate::cli::call::json;
use crate::cli::exit::{Exit, Failure};
use crate::cli::progress::Progress;
use crate::cli::session::Cli;
use crate::cli::{recorded, terminal};
use crate::wire::Format;

pub(super) async fn replay(
    cli: &Cli<'_>,
    format: Format,
    files: &[PathBuf],
    user_text: Option<String>,
) -> Result<Exit, Failure> {
    // Everything is read before anything runs: an unreadable file must not leave half of the work done.
    let responses = files.iter().map(|file| recorded::decode(format, file)).collect::<Result<Vec<_>, _>>()?;
    let mut gravest = Exit::Done;
    let mut progress = Progress::new("responses", files.len());
    for (file, decoded) in files.iter().zip(responses) {
        let session = cli.start(user_text.as_deref(), None).await?;
        session.run.begin_turn();
        if let Some(error) = &decoded.error {
            terminal::message(&terminal::safe(&format!("{}: {error}", file.display())));
        }
        if !decoded.ended_well() {
            gravest = gravest.max(Exit::Failed);
        }
        for call in decoded.calls {
            let result = session.run.exec(call.call).await;
            gravest = gravest.max(Exit::of(result.outcome()));
        }
        for record in session.records().await? {
            terminal::line(&json(&record)?);
        }
        progress.step();
    }
    Ok(gravest)
}
