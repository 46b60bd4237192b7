use std::cell::RefCell;

use tool_runtime::{ToolError, tool};

struct Database {
    rows: RefCell<u32>,
}

/// Counts the rows.
#[tool(name = "core__rows", effect = read_only, redact = ["$"])]
async fn rows(database: &Database) -> Result<u32, ToolError> {
    Ok(*database.rows.borrow())
}

fn main() {}
