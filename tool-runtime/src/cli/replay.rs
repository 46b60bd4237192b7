//! `replay`: recorded responses are decoded and their calls executed; the records come out as JSON lines.

use std::path::PathBuf;

use crate::cli::app::App;
use crate::cli::args::Global;
use crate::cli::call::json;
use crate::cli::exit::{Exit, Failure};
use crate::cli::{recorded, session, terminal};
use crate::wire::Format;

pub(super) async fn replay(
    app: &App,
    global: &Global,
    format: Format,
    files: &[PathBuf],
    user_text: Option<String>,
) -> Result<Exit, Failure> {
    // Everything is read before anything runs: an unreadable file must not leave half of the work done.
    let responses = files.iter().map(|file| recorded::decode(format, file)).collect::<Result<Vec<_>, _>>()?;
    let mut gravest = Exit::Done;
    for (file, decoded) in files.iter().zip(responses) {
        let session = session::start(app, global, user_text.as_deref(), None)?;
        session.run.begin_turn();
        if let Some(error) = &decoded.error {
            terminal::message(&format!("{}: {}", file.display(), terminal::safe(&error.to_string())));
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
    }
    Ok(gravest)
}
