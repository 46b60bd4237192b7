//! What a run tells while it goes on: [`Event`], and who listens: [`EventSink`].

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::call::{CallId, Outcome, SafeError};

/// One thing that happened in a run. Holds projected and masked data only.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// Text of the model.
    TextDelta {
        /// The text.
        text: String,
    },
    /// A call that the model writes, for display only: nothing was checked, and the call may never come.
    ///
    /// The first one of a call is empty and announces it, before the start of the call. Text follows for tools without
    /// sensitive arguments only.
    ToolCallDelta {
        /// The id of the call.
        id: CallId,
        /// The name as the model wrote it, cut to 128 bytes.
        name: String,
        /// The next piece of the text.
        delta: String,
    },
    /// A call came in. Comes before anything is checked.
    ToolCallStart {
        /// The id of the call.
        id: CallId,
        /// The name as the model wrote it, cut to 128 bytes.
        name: String,
    },
    /// A call waits for a person or for a client.
    ToolCallSuspended {
        /// The id of the call.
        id: CallId,
        /// The name as the model wrote it, cut to 128 bytes.
        name: String,
        /// The arguments with the sensitive ones masked.
        #[serde(skip_serializing_if = "Option::is_none")]
        arguments: Option<Arc<RawValue>>,
        /// Why: [`Outcome::ApprovalRequired`] or [`Outcome::ClientRequired`].
        outcome: Outcome,
        /// The prepared payload of a client tool.
        #[serde(skip_serializing_if = "Option::is_none")]
        prepared: Option<Arc<RawValue>>,
    },
    /// A call ended. Exactly one per call.
    ToolCallResult {
        /// The id of the call.
        id: CallId,
        /// The name as the model wrote it, cut to 128 bytes.
        name: String,
        /// The arguments with the sensitive ones masked, when they could be read.
        #[serde(skip_serializing_if = "Option::is_none")]
        arguments: Option<Arc<RawValue>>,
        /// How it ended.
        outcome: Outcome,
        /// The projected value.
        #[serde(skip_serializing_if = "Option::is_none")]
        value: Option<Arc<RawValue>>,
        /// What went wrong.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<SafeError>,
        /// The tool began to run.
        executed: bool,
    },
    /// What the model consumed.
    Usage {
        /// Tokens read.
        input_tokens: u64,
        /// Tokens written.
        output_tokens: u64,
    },
    /// Something worth showing a person.
    Status {
        /// The text.
        text: String,
    },
    /// The turn failed.
    Error {
        /// A stable code.
        code: String,
        /// A safe sentence.
        message: String,
    },
    /// The turn is over. Exactly one.
    Done {
        /// Why it is over.
        reason: String,
    },
}

/// Listens to a run. Called inline: hand the event on, do not block. A panic in it is contained.
pub trait EventSink: Send + Sync {
    /// Takes one event.
    fn emit(&self, event: Event);
}

impl<F: Fn(Event) + Send + Sync> EventSink for F {
    fn emit(&self, event: Event) {
        self(event);
    }
}
