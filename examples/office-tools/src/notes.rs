//! Notes.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;
use tool_runtime::{ToolError, capability, tool};

use crate::Failure;

/// Reads notes.
#[capability(effect = read_only)]
#[async_trait]
pub trait NoteReader {
    /// Returns all notes, newest first.
    async fn list(&self) -> Result<Vec<Note>, Failure>;
}

/// Stores notes.
#[capability(effect = state_change)]
#[async_trait]
pub trait NoteWriter {
    /// Stores a note.
    async fn add(&self, text: &str) -> Result<Note, Failure>;
}

/// A note.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Note {
    /// Its id.
    pub note_id: i64,
    /// Its text.
    pub text: String,
}

/// List the notes, newest first.
#[tool(name = "notes__list_notes", effect = read_only, redact = ["note_id", "text"])]
pub async fn list_notes(notes: &dyn NoteReader) -> Result<Vec<Note>, ToolError> {
    notes.list().await.map_err(|failure| failure.of("note"))
}

/// Store a note.
#[tool(name = "notes__add_note", effect = state_change, redact = ["note_id"])]
pub async fn add_note(
    notes: &dyn NoteWriter,
    /// The text.
    #[schemars(length(min = 1, max = 4000))]
    text: String,
) -> Result<Note, ToolError> {
    notes.add(&text).await.map_err(|failure| failure.of("note"))
}
