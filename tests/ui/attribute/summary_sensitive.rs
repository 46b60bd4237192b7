//! A sentence that names what stays hidden.

use tool_runtime::{tool, ToolError};

/// Sets a password.
#[tool(
    name = "accounts__set_password",
    effect = state_change,
    redact = [],
    summary = ["Sets the password of {user} to {password}", "Sets a password, {password.text}"]
)]
fn set_password(
    /// Whose.
    user: Option<String>,
    /// The password.
    #[arg(sensitive)]
    password: String,
) -> Result<usize, ToolError> {
    Ok(user.map_or(0, |user| user.len()) + password.len())
}

fn main() {}
