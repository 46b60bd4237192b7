//! A shelf of books.

use schemars::JsonSchema;
use serde::Serialize;
use tool_runtime::{ToolError, capability, tool};

/// Reads the shelf.
#[capability(effect = read_only)]
pub trait ShelfReader {
    /// Returns all books, oldest first.
    ///
    /// # Errors
    /// The shelf cannot be read.
    fn books(&self) -> std::io::Result<Vec<Book>>;
}

/// Changes the shelf. It is a separate trait because a `read_only` tool may not borrow it.
#[capability(effect = state_change)]
pub trait ShelfWriter {
    /// Adds a book, unless the shelf has a book with this key.
    ///
    /// # Errors
    /// The shelf cannot be written.
    fn add(&self, key: &str, title: &str) -> std::io::Result<Book>;
}

/// A book on the shelf.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Book {
    /// The number on its back.
    pub number: u64,
    /// Its title.
    pub title: String,
    /// What made it; no tool below shows it.
    pub key: String,
}

/// List the books on the shelf, oldest first.
#[tool(name = "shelf__list", effect = read_only, redact = ["number", "title"])]
pub fn list(shelf: &dyn ShelfReader) -> Result<Vec<Book>, ToolError> {
    shelf.books().map_err(ToolError::internal)
}

/// Put a book on the shelf.
#[tool(name = "shelf__add", effect = state_change, redact = ["number", "title"])]
pub fn add(
    shelf: &dyn ShelfWriter,
    call: &tool_runtime::ToolContext,
    /// The title, as on its cover.
    #[schemars(length(min = 1, max = 200))]
    title: String,
) -> Result<Book, ToolError> {
    shelf
        .add(&call.idempotency_key(), &title)
        .map_err(ToolError::internal)
}
