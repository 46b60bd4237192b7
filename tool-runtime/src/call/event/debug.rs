//! `Debug` of events: names, ids and sizes.

use std::fmt;

use crate::call::Event;

// Texts, arguments, outputs and data URLs stay out of logs.
impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sized = |name, bytes: usize| f.debug_struct(name).field("bytes", &bytes).finish_non_exhaustive();
        match self {
            Self::TextDelta { text } => sized("TextDelta", text.len()),
            Self::ReasoningDelta { text } => sized("ReasoningDelta", text.len()),
            Self::Status { text } => sized("Status", text.len()),
            Self::Source { id, .. } => f.debug_struct("Source").field("id", id).finish_non_exhaustive(),
            Self::File { media_type, url } => {
                let mut file = f.debug_struct("File");
                file.field("media_type", media_type).field("bytes", &url.len()).finish_non_exhaustive()
            }
            Self::Data { name, id, .. } => {
                f.debug_struct("Data").field("name", name).field("id", id).finish_non_exhaustive()
            }
            Self::ToolCallDelta { id, name, delta } => {
                let mut call = f.debug_struct("ToolCallDelta");
                call.field("id", id).field("name", name).field("bytes", &delta.len()).finish_non_exhaustive()
            }
            Self::ToolCallStart { id, name } => {
                f.debug_struct("ToolCallStart").field("id", id).field("name", name).finish()
            }
            Self::ToolCallSuspended { id, name, outcome, .. } => {
                let mut call = f.debug_struct("ToolCallSuspended");
                call.field("id", id).field("name", name).field("outcome", outcome).finish_non_exhaustive()
            }
            Self::ToolCallResult { id, name, outcome, executed, .. } => {
                let mut call = f.debug_struct("ToolCallResult");
                call.field("id", id).field("name", name).field("outcome", outcome).field("executed", executed);
                call.finish_non_exhaustive()
            }
            Self::Graph { id, name, event } => {
                f.debug_struct("Graph").field("id", id).field("name", name).field("event", event).finish()
            }
            Self::Usage { input_tokens, output_tokens, estimated, .. } => {
                let mut usage = f.debug_struct("Usage");
                usage.field("input_tokens", input_tokens).field("output_tokens", output_tokens);
                usage.field("estimated", estimated).finish_non_exhaustive()
            }
            Self::Error { code, .. } => f.debug_struct("Error").field("code", code).finish_non_exhaustive(),
            Self::Done { reason } => f.debug_struct("Done").field("reason", reason).finish(),
        }
    }
}
