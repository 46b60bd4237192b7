//! The toolbox: an application that links the office tools, binds their adapters, and runs the command line.

mod adapters;
mod commands;
mod composition;
#[cfg(feature = "otlp")]
mod otlp;
#[cfg(test)]
mod recorded;

use std::process::ExitCode;

// This line links the tools. Without it, the catalog is empty.
use office_tools as _;
use tool_runtime::ToolCatalog;
use tool_runtime::error::BuildError;
use tool_runtime::registration::DynamicTool;
use tool_runtime_cli::App;

use commands::{Hydrate, Replay, Wire};

fn main() -> ExitCode {
    let app =
        App::new("toolbox", env!("CARGO_PKG_VERSION"), "Runs office tools for a language model, through one gate")
            .policy(include_str!("../policy.toml"))
            .principal(composition::PRINCIPAL)
            .tenant(composition::TENANT)
            .catalog(catalog)
            .adapters(composition::open)
            .inspect(composition::inspect)
            .command::<Replay>()
            .command::<Wire>()
            .command::<Hydrate>();
    run(app)
}

/// Returns the linked tools, and the tool that searches them.
fn catalog() -> Result<ToolCatalog, BuildError> {
    let catalog = ToolCatalog::builder().collect().dynamic(DynamicTool::search_tools());
    #[cfg(feature = "code-mode")]
    let catalog = catalog.dynamic(scripts());
    catalog.build()
}

/// Returns a tool that runs scripts, which can call `read_only` tools. `code.toml` is a policy for it.
#[cfg(feature = "code-mode")]
fn scripts() -> tool_runtime::agent::CodeMode {
    tool_runtime::agent::CodeMode::new("code", "1").tools([
        "core__get_current_time",
        "docs__search",
        "notes__list_notes",
        "tasks__list_tasks",
        "weather__get_forecast",
    ])
}

#[cfg(not(feature = "otlp"))]
fn run(app: App) -> ExitCode {
    tool_runtime_cli::main(&app)
}

#[cfg(feature = "otlp")]
fn run(app: App) -> ExitCode {
    use std::io::Write as _;

    match otlp::Exporting::start() {
        Ok(None) => tool_runtime_cli::main(&otlp::variables(app)),
        Ok(Some(exporting)) => {
            let app = otlp::variables(app);
            let code = tool_runtime_cli::main(&app.layer(exporting.layer()));
            exporting.finish();
            code
        }
        Err(error) => {
            // A closed stderr leaves no place to report the error.
            let _ = writeln!(std::io::stderr(), "error: spans and metrics cannot be exported: {error}");
            ExitCode::from(2)
        }
    }
}

#[cfg(all(test, not(feature = "code-mode")))]
mod tests {
    use tool_runtime::catalog::ToolLock;

    #[test]
    fn the_definitions_are_the_locked_ones() {
        let lock = ToolLock::parse(include_str!("../tools.lock")).unwrap();
        let report = lock.compare(&ToolLock::of(&crate::catalog().unwrap()));
        assert!(report.is_current(), "{report}\nwrite it with `toolbox check --lock tools.lock --write`");
    }
}
