//! Opens a file in the user's editor. The tool prepares the request, and the client executes it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tool_runtime::{ToolError, tool};

use crate::files::FileReader;

/// The payload for the client.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OpenRequest {
    /// The path below the workspace folder.
    pub path: String,
    /// The line, from 1.
    pub line: u32,
}

/// The client's result.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Opened {
    /// Whether the editor shows the file.
    pub opened: bool,
}

/// Open a workspace file in the user's editor.
#[tool(
    name = "editor__open_in_editor",
    effect = read_only,
    execution = client,
    client_result = Opened,
    prepare = ["path", "line"],
    redact = ["opened"]
)]
pub async fn open_in_editor(
    files: &dyn FileReader,
    /// Path below the workspace folder.
    #[schemars(length(min = 1))]
    path: String,
    /// The line to show; the first by default.
    #[schemars(range(min = 1))]
    line: Option<u32>,
) -> Result<OpenRequest, ToolError> {
    // If the file does not exist, the call fails here and not at the client.
    let file = files.read(&path, 1).await.map_err(|failure| failure.of("file"))?;
    Ok(OpenRequest { path: file.path, line: line.unwrap_or(1) })
}
