//! Nine things to borrow.

use tool_runtime::{ToolError, capability, tool};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
struct Add {
    /// Left.
    left: i64,
}

/// Reads.
#[capability(effect = read_only)]
trait C0 {
    fn read(&self) -> i64;
}

/// Reads.
#[capability(effect = read_only)]
trait C1 {
    fn read(&self) -> i64;
}

/// Reads.
#[capability(effect = read_only)]
trait C2 {
    fn read(&self) -> i64;
}

/// Reads.
#[capability(effect = read_only)]
trait C3 {
    fn read(&self) -> i64;
}

/// Reads.
#[capability(effect = read_only)]
trait C4 {
    fn read(&self) -> i64;
}

/// Reads.
#[capability(effect = read_only)]
trait C5 {
    fn read(&self) -> i64;
}

/// Reads.
#[capability(effect = read_only)]
trait C6 {
    fn read(&self) -> i64;
}

/// Reads.
#[capability(effect = read_only)]
trait C7 {
    fn read(&self) -> i64;
}

/// Reads.
#[capability(effect = read_only)]
trait C8 {
    fn read(&self) -> i64;
}

#[tool]
impl Add {
    #[allow(clippy::too_many_arguments)]
    fn run(
        self,
        _: &dyn C0,
        _: &dyn C1,
        _: &dyn C2,
        _: &dyn C3,
        _: &dyn C4,
        _: &dyn C5,
        _: &dyn C6,
        _: &dyn C7,
        last: &dyn C8,
    ) -> Result<i64, ToolError> {
        Ok(last.read())
    }
}

fn main() {}
