//! `call`: one call through the gate.

use std::sync::Arc;

use crate::call::{Event, EventSink, ToolCall};
use crate::cli::app::App;
use crate::cli::args::{Call, Global, View};
use crate::cli::exit::{Exit, Failure};
use crate::cli::{input, session, terminal};
use crate::runner::Run;
use crate::text::nearest;

/// Writes each event as a JSON line to stderr.
struct EventsToStderr;

impl EventSink for EventsToStderr {
    fn emit(&self, event: Event) {
        if let Ok(line) = serde_json::to_string(&event) {
            terminal::message(&terminal::safe_json(&line));
        }
    }
}

pub(super) async fn call(app: &App, global: &Global, call: Call) -> Result<Exit, Failure> {
    let Call { name, arguments, view, events, detail, user_text } = call;
    let arguments = input::arguments(arguments.as_deref())?;
    let sink = events.then(|| Arc::new(EventsToStderr) as Arc<dyn EventSink>);
    let session = session::start(app, global, user_text.as_deref(), sink)?;
    let result = session.run.exec(ToolCall::text("", name.as_str(), arguments)).await;
    match view {
        View::Model => terminal::line(&terminal::safe_lines(&result.to_model())),
        View::Ui => terminal::line(&json(&result)?),
        View::Audit => {
            let records = session.records().await?;
            for record in &records {
                terminal::line(&json(record)?);
            }
        }
    }
    if session.run.catalog().get(&name).is_none() {
        hint(&session.run, &name);
    }
    if let Some(text) = result.detail().filter(|_| detail) {
        terminal::message(&format!("the tool's error: {}", terminal::safe(text)));
    }
    Ok(Exit::of(result.outcome()))
}

/// What the person at the keyboard may have meant; the model is told nothing of it.
fn hint(run: &Run, name: &str) {
    let nearest = nearest(name, run.catalog().specs().map(|spec| spec.name.as_str()));
    let meant = nearest.map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default();
    terminal::message(&format!("the policy shows no tool `{}`{meant}", terminal::safe(name)));
}

/// JSON for stdout; escapes keep it safe for a terminal.
pub(super) fn json<T: serde::Serialize>(value: &T) -> Result<String, Failure> {
    let text = serde_json::to_string(value).map_err(|error| Failure::failed(error.to_string()))?;
    Ok(terminal::safe_json(&text))
}
