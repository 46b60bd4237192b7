//! An MCP server with the tools for the protocol's conformance suite.
//!
//! `mcp-fixtures` serves one client over standard input and output. `mcp-fixtures 127.0.0.1:PORT [ORIGIN..]` serves
//! many over HTTP until it gets SIGTERM or Ctrl-C, and prints its address to standard output. At its end it prints the
//! records of all calls as JSON lines: to standard output, or to standard error if standard output belongs to the
//! protocol.

mod questions;
mod tools;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tool_runtime::error::BuildError;
use tool_runtime::mcp::serve::{HttpOptions, McpServer, Peer};
use tool_runtime::store::{MemoryStore, RecordFilter, Store as _};
use tool_runtime::{RunOptions, ToolCatalog, ToolPolicy, ToolRunner};

type Error = Box<dyn std::error::Error>;

/// The tools in the catalog, with their names in the suite.
const EXPOSED: &[(&str, &str)] = &[
    ("fixtures__simple_text", "test_simple_text"),
    ("fixtures__image", "test_image_content"),
    ("fixtures__audio", "test_audio_content"),
    ("fixtures__resource", "test_embedded_resource"),
    ("fixtures__mixed", "test_multiple_content_types"),
    ("fixtures__logging", "test_tool_with_logging"),
    ("fixtures__error", "test_error_handling"),
    ("fixtures__progress", "test_tool_with_progress"),
    ("fixtures__sampling", "test_sampling"),
    ("fixtures__elicitation", "test_elicitation"),
    ("fixtures__defaults", "test_elicitation_sep1034_defaults"),
    ("fixtures__enums", "test_elicitation_sep1330_enums"),
    ("fixtures__schema", "json_schema_2020_12_tool"),
    ("fixtures__reconnection", "test_reconnection"),
];

fn catalog() -> Result<ToolCatalog, BuildError> {
    ToolCatalog::builder().collect().dynamic(tools::schema()).build()
}

fn server(store: &Arc<MemoryStore>) -> Result<McpServer, Error> {
    let policy = ToolPolicy::allow(EXPOSED.iter().map(|(tool, _)| *tool));
    let runner = ToolRunner::builder(catalog()?, policy).store(Arc::clone(store)).build()?;
    let server = McpServer::builder(runner, |_: &Peer<'_>| Some(RunOptions::new().principal("tester")));
    let server = EXPOSED
        .iter()
        .fold(server.name("fixtures", env!("CARGO_PKG_VERSION")), |server, (tool, name)| server.expose(*tool, *name));
    Ok(server.build()?)
}

async fn serve(words: &[String]) -> Result<(), Error> {
    let store = Arc::new(MemoryStore::new());
    let server = server(&store)?;
    let Some((address, origins)) = words.split_first() else {
        server.stdio().await?;
        server.close(Duration::from_secs(1)).await;
        return records(&store, &mut std::io::stderr()).await;
    };
    let options = origins.iter().fold(HttpOptions::new(), HttpOptions::origin);
    let (address, serving) = server.bind(address.parse()?, &options).await?;
    writeln!(std::io::stdout(), "listening on http://{address}/mcp")?;
    let serving = tokio::spawn(serving);
    told_to_end().await?;
    server.close(Duration::from_secs(1)).await;
    serving.await?;
    records(&store, &mut std::io::stdout()).await
}

async fn records(store: &MemoryStore, out: &mut impl std::io::Write) -> Result<(), Error> {
    for record in store.calls(&RecordFilter::default()).await? {
        writeln!(out, "{}", serde_json::to_string(&record)?)?;
    }
    Ok(())
}

#[cfg(unix)]
async fn told_to_end() -> Result<(), Error> {
    let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        _ = terminated.recv() => Ok(()),
        ended = tokio::signal::ctrl_c() => Ok(ended?),
    }
}

#[cfg(not(unix))]
async fn told_to_end() -> Result<(), Error> {
    Ok(tokio::signal::ctrl_c().await?)
}

#[tokio::main]
async fn main() -> ExitCode {
    let words: Vec<_> = std::env::args().skip(1).collect();
    match serve(&words).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A closed standard error leaves no place to report the error.
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tool_runtime::assert_catalog_ok;
    use tool_runtime::media::Media;
    use tool_runtime::testing::{Fault, harness};

    use super::catalog;

    #[test]
    fn schemas_and_parsers_agree() {
        assert_catalog_ok!(catalog().expect("a catalog"));
    }

    #[tokio::test]
    async fn a_tool_returns_its_text_and_its_files() {
        let fixtures = harness(catalog().expect("a catalog"));
        let text = fixtures.call("fixtures__simple_text", json!({})).await;
        text.assert_value(json!("This is a simple text response for testing."));
        let mixed = fixtures.call("fixtures__mixed", json!({})).await;
        let types: Vec<_> = mixed.media().iter().map(Media::media_type).collect();
        assert_eq!(types, ["image/png", "application/json"], "{mixed}");
    }

    #[tokio::test]
    async fn a_panic_ends_one_call() {
        let fixtures = harness(catalog().expect("a catalog")).fault("fixtures__image", Fault::Panic);
        fixtures.call("fixtures__image", json!({})).await.assert_outcome("panicked");
        fixtures.call("fixtures__audio", json!({})).await.assert_outcome("ok");
    }
}
