//! `once-shell`: a command line with a tool whose effect has a key. A call appends a line to the file that the variable
//! `EFFECTS` names, and ends once the file `hold` in its folder is gone.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use tool_runtime::{ToolError, tool};
use tool_runtime_cli::App;

/// Pays a bill, once.
#[tool(name = "bills__pay", effect = external_side_effect, redact = ["$"], once = "pay:{bill}")]
async fn pay(
    /// Which.
    bill: String,
) -> Result<String, ToolError> {
    let effects = std::env::var_os("EFFECTS").map(PathBuf::from).ok_or_else(|| ToolError::code("no_file"))?;
    let written = std::fs::OpenOptions::new().create(true).append(true).open(&effects);
    written.and_then(|mut file| writeln!(file, "{bill}")).map_err(|_| ToolError::code("not_written"))?;
    while effects.with_file_name("hold").exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(format!("paid {bill}"))
}

fn main() -> ExitCode {
    let app = App::new("once-shell", env!("CARGO_PKG_VERSION"), "Pays bills");
    tool_runtime_cli::main(&app.policy("allowed_tools = ['bills__pay']").principal("ada").tenant("acme"))
}
