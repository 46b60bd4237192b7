//! Tools of every kind: one that works, one that fails, one that no policy allows, one that the client executes.

use tool_runtime::catalog::CatalogBuilder;
use tool_runtime::{Call, ToolCatalog, ToolComponent, ToolError, tool};

use super::World;

/// A builder with the tools, to which a test can add its own.
pub fn tools() -> CatalogBuilder {
    ToolCatalog::builder().tool::<double>().tool::<fail>().tool::<denied>().tool::<Cursor>()
}

/// Doubles a number.
#[tool(name = "rig__double", effect = read_only, redact = ["$"])]
fn double(
    /// What to double.
    #[schemars(range(min = 0, max = 1000))]
    n: i64,
    /// What to call it.
    label: Option<String>,
) -> Result<i64, ToolError> {
    drop(label);
    Ok(n * 2)
}

/// Always fails.
#[tool(name = "rig__fail", effect = read_only, redact = ["$"])]
fn fail() -> Result<bool, ToolError> {
    Err(ToolError::safe("It always fails."))
}

/// Is not allowed.
#[tool(name = "rig__denied", effect = read_only, redact = ["$"])]
fn denied() -> Result<bool, ToolError> {
    Ok(true)
}

/// Where the user's cursor is.
#[tool(name = "rig__cursor", effect = read_only, execution = client, client_result = u32, prepare = ["$"],
    redact = ["$"])]
pub struct Cursor {
    /// The file.
    file: String,
}

impl ToolComponent for Cursor {
    type Capabilities = ();
    type Output = String;

    async fn run(self, (): (), _: &Call<Self>) -> Result<String, ToolError> {
        Ok(self.file)
    }
}

/// Has an effect, and ends when the door opens.
#[tool(name = "world__write", effect = state_change, redact = ["$"])]
async fn write(
    world: &dyn World,
    /// Which.
    number: u32,
) -> Result<u32, ToolError> {
    world.happen();
    world.door().pass().await;
    Ok(number)
}

/// The same, and may be repeated.
#[tool(name = "world__again", effect = state_change, idempotent, redact = ["$"])]
async fn again(
    world: &dyn World,
    /// Which.
    number: u32,
) -> Result<u32, ToolError> {
    world.happen();
    world.door().pass().await;
    Ok(number)
}
