//! The server of MCP 2026-07-28 over standard input and output.

use rmcp::ServiceExt as _;
use tests::modern::Modern;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    Modern::default().serve(rmcp::transport::stdio()).await?.waiting().await?;
    Ok(())
}
