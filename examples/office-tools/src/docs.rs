//! Full-text search in the documents.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;
use tool_runtime::{ToolError, capability, tool};

use crate::Failure;

/// Searches documents.
#[capability(effect = read_only)]
#[async_trait]
pub trait DocumentIndex {
    /// Returns the best hits, best first. The query is a list of words.
    async fn search(&self, query: &str, limit: u32) -> Result<Vec<Hit>, Failure>;
}

/// A document that was found.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Hit {
    /// Its id.
    pub document_id: String,
    /// Its title.
    pub title: String,
    /// An excerpt around the words.
    pub snippet: String,
}

/// Full text search in the documents.
#[tool(
    name = "docs__search",
    effect = read_only,
    redact = ["document_id", "title", "snippet"],
    tags = ["untrusted_content"],
    timeout = "10s"
)]
pub async fn search(
    index: &dyn DocumentIndex,
    /// Words to look for.
    #[schemars(length(min = 1))]
    query: String,
    /// The most documents to return; 10 by default.
    #[schemars(range(min = 1, max = 50))]
    limit: Option<u32>,
) -> Result<Vec<Hit>, ToolError> {
    index.search(&query, limit.unwrap_or(10)).await.map_err(|failure| failure.of("document index"))
}
