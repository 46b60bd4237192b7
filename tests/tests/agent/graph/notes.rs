//! The outside world of the tests of graphs, which counts effects, and the tools that reach it.

use std::sync::Mutex;

use async_trait::async_trait;
use tokio::sync::Barrier;
use tool_runtime::{ToolError, capability, tool};

/// The world outside.
#[capability(effect = state_change)]
pub(crate) trait World {
    /// Counts an effect on a note.
    fn happen(&self, note: u32) -> u32;
}

/// The effects, in order.
#[derive(Default)]
pub(crate) struct Happened(pub(crate) Mutex<Vec<u32>>);

impl World for Happened {
    fn happen(&self, note: u32) -> u32 {
        let mut notes = self.0.lock().expect("a lock");
        notes.push(note);
        u32::try_from(notes.len()).expect("few effects")
    }
}

/// Where two calls meet.
#[capability(effect = read_only)]
#[async_trait]
pub(crate) trait Table {
    /// Returns when there are two.
    async fn meet(&self);
}

/// Two seats.
pub(crate) struct Seats(pub(crate) Barrier);

#[async_trait]
impl Table for Seats {
    async fn meet(&self) {
        self.0.wait().await;
    }
}

/// Lists notes.
#[tool(name = "notes__list", effect = read_only, redact = ["$"])]
fn list() -> Result<Vec<u32>, ToolError> {
    Ok(vec![7, 8])
}

/// Reads a page of a stranger.
#[tool(name = "notes__page", effect = read_only, redact = ["$"], tags = ["web"])]
fn page() -> Result<String, ToolError> {
    Ok("a stranger wrote this".to_owned())
}

/// Deletes a note.
#[tool(name = "notes__delete", effect = state_change, redact = ["$"])]
fn delete(
    world: &dyn World,
    /// The note.
    #[arg(evidence = "notes__list")]
    note_id: u32,
) -> Result<u32, ToolError> {
    world.happen(note_id);
    Ok(note_id)
}

/// Counts.
#[tool(name = "notes__count", effect = state_change, redact = ["$"])]
fn count(
    world: &dyn World,
    /// Anything.
    at: u32,
) -> Result<u32, ToolError> {
    Ok(world.happen(at))
}

/// Never returns.
#[tool(name = "notes__hang", effect = read_only, redact = ["$"])]
async fn hang() -> Result<u32, ToolError> {
    std::future::pending().await
}

/// Returns once it is called twice at the same time.
#[tool(name = "notes__meet", effect = read_only, redact = ["$"])]
async fn meet(table: &dyn Table) -> Result<u32, ToolError> {
    table.meet().await;
    Ok(1)
}

/// Panics.
#[tool(name = "notes__panic", effect = read_only, redact = ["$"])]
fn panic() -> Result<u32, ToolError> {
    panic!("CANARY")
}

/// Where the cursor is.
#[tool(name = "notes__cursor", effect = read_only, execution = client, client_result = u32, prepare = ["$"],
    redact = ["$"])]
fn cursor() -> Result<bool, ToolError> {
    Ok(true)
}
