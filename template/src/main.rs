//! The command line: `list`, `show`, `check`, `call`, `chat` and more.

use std::process::ExitCode;
use std::sync::Arc;

use tool_runtime::Capabilities;
use tool_runtime_cli::{Adapters, App};

use {{crate_name}}::adapters::FileShelf;
use {{crate_name}}::shelf::{ShelfReader, ShelfWriter};

fn main() -> ExitCode {
    let app = App::new(
        env!("CARGO_PKG_NAME"),
        env!("CARGO_PKG_VERSION"),
        "Tools for an agent",
    )
    .policy(include_str!("../policy.toml"))
    .adapters(|data| {
        let shelf = Arc::new(FileShelf::open(data)?);
        let capabilities = Capabilities::new()
            .with::<dyn ShelfReader>(Arc::clone(&shelf) as _)
            .with::<dyn ShelfWriter>(shelf);
        Ok(Adapters::new(capabilities))
    });
    tool_runtime_cli::main(&app)
}
