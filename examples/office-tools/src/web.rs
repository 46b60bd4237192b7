//! Pages of the web.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;
use tool_runtime::{ToolError, capability, tool};

use crate::Failure;

/// Fetches pages. The request itself can send data to the server, so the effect is not `read_only`.
#[capability(effect = external_side_effect)]
#[async_trait]
pub trait PageFetcher {
    /// Fetches a page.
    async fn fetch(&self, url: &str) -> Result<Page, Failure>;
}

/// A page.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Page {
    /// The status code of the response.
    pub status: u16,
    /// The text.
    pub text: String,
}

/// Fetch a public web page as text.
#[tool(
    name = "web__fetch_page",
    effect = external_side_effect,
    redact = ["status", "text"],
    tags = ["untrusted_content"],
    timeout = "30s",
    max_result_bytes = 16384
)]
pub async fn fetch_page(
    pages: &dyn PageFetcher,
    /// An http or https address.
    #[schemars(length(min = 1, max = 2000))]
    url: String,
) -> Result<Page, ToolError> {
    pages.fetch(&url).await.map_err(|failure| failure.of("page"))
}
