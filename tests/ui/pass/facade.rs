//! An author who knows the runtime under another path only.

mod facade {
    pub mod inner {
        pub use tool_runtime as rt;
    }
}

// Shadows the default path: whatever names it does not compile.
mod tool_runtime {}

use facade::inner::rt::{Call, Cap, Connection, ToolComponent, ToolError, capability, tool};

/// Reads the time.
#[capability(effect = read_only, kind = "clock", crate = crate::facade::inner::rt)]
trait Clock {
    fn now(&self) -> i64;
}

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"], crate = crate::facade::inner::rt)]
fn add(
    clock: &Connection<dyn Clock>,
    /// Left.
    #[arg(default = 1)]
    left: i64,
) -> Result<i64, ToolError> {
    Ok(left + clock.now())
}

/// Subtracts.
#[tool(name = "core__subtract", effect = read_only, redact = ["$"], crate = crate::facade::inner::rt)]
struct Subtract {
    /// Left.
    #[arg(default = 1)]
    left: i64,
}

impl ToolComponent for Subtract {
    type Capabilities = (Cap<Connection<dyn Clock>>,);
    type Output = i64;

    async fn run(self, (clock,): Self::Capabilities, _: &Call<Self>) -> Result<i64, ToolError> {
        Ok(self.left - clock.now())
    }
}

fn main() {
    let names =
        [facade::inner::rt::definition!(add), Subtract::definition()].map(|spec| spec.unwrap().name.to_string());
    assert_eq!(names, ["core__add", "core__subtract"]);
}
