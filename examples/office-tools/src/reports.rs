//! Reports: results that are longer than a model can read.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;
use tool_runtime::{ToolError, capability, tool};

use crate::Failure;

/// Reads the log of door sensors.
#[capability(effect = read_only)]
#[async_trait]
pub trait DoorLog {
    /// Returns all entries, oldest first.
    async fn entries(&self) -> Result<Vec<DoorEntry>, Failure>;
}

/// A passage through a door.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DoorEntry {
    /// The time, RFC 3339.
    pub at: String,
    /// The door.
    pub door: String,
    /// The badge; not shown to models.
    pub badge: String,
}

/// Export the whole log of the door sensors. It is long: the result is cut.
#[tool(name = "reports__export_door_log", effect = read_only, redact = ["at", "door"])]
pub async fn export_door_log(log: &dyn DoorLog) -> Result<Vec<DoorEntry>, ToolError> {
    log.entries().await.map_err(|failure| failure.of("log"))
}
