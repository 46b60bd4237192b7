//! Tools without questions: they return texts, files and errors, and report progress.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tool_runtime::capability::Progress;
use tool_runtime::media::Media;
use tool_runtime::registration::{DynamicHandler, DynamicTool};
use tool_runtime::{ToolContext, ToolEffect, ToolError, WithMedia, tool};

/// A PNG of one red pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/// A WAV without a sample.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQAAAAA=";

async fn a_moment() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}

/// Returns a text.
#[tool(name = "fixtures__simple_text", effect = read_only, redact = ["$"])]
fn simple_text() -> Result<String, ToolError> {
    Ok("This is a simple text response for testing.".to_owned())
}

/// Returns an image.
#[tool(name = "fixtures__image", effect = read_only, redact = ["$", "$media"])]
fn image() -> Result<WithMedia<()>, ToolError> {
    Ok(WithMedia::new(()).media(Media::base64("image/png", PNG)?))
}

/// Returns a sound.
#[tool(name = "fixtures__audio", effect = read_only, redact = ["$", "$media"])]
fn audio() -> Result<WithMedia<()>, ToolError> {
    Ok(WithMedia::new(()).media(Media::base64("audio/wav", WAV)?))
}

/// Returns a resource.
#[tool(name = "fixtures__resource", effect = read_only, redact = ["$", "$media"])]
fn resource() -> Result<WithMedia<()>, ToolError> {
    let text = Media::bytes("text/plain", b"This is an embedded resource content.")?;
    Ok(WithMedia::new(()).media(text.with_uri("test://embedded-resource")?))
}

/// Returns a text, an image and a resource.
#[tool(name = "fixtures__mixed", effect = read_only, redact = ["$", "$media"])]
fn mixed() -> Result<WithMedia<String>, ToolError> {
    let data = Media::bytes("application/json", br#"{"test":"data","value":123}"#)?;
    let mixed = WithMedia::new("Multiple content types test:".to_owned());
    Ok(mixed.media(Media::base64("image/png", PNG)?).media(data.with_uri("test://mixed-content-resource")?))
}

/// Sends three lines of a log.
#[tool(name = "fixtures__logging", effect = read_only, redact = ["$"])]
async fn logging(progress: &dyn Progress) -> Result<String, ToolError> {
    let notice = |line| progress.notice(tracing::Level::INFO, line);
    notice("Tool execution started");
    a_moment().await;
    notice("Tool processing data");
    a_moment().await;
    notice("Tool execution completed");
    Ok("Tool with logging executed successfully".to_owned())
}

/// Fails.
#[tool(name = "fixtures__error", effect = read_only, redact = ["$"])]
fn error() -> Result<String, ToolError> {
    Err(ToolError::safe("This tool intentionally returns an error for testing"))
}

/// Reports progress three times.
#[tool(name = "fixtures__progress", effect = read_only, redact = ["$"])]
async fn progress(progress: &dyn Progress) -> Result<String, ToolError> {
    progress.report(0.0, Some(100.0));
    a_moment().await;
    progress.report(50.0, Some(100.0));
    a_moment().await;
    progress.report(100.0, Some(100.0));
    Ok("Tool with progress executed successfully".to_owned())
}

/// Takes long enough for a client to lose its connection.
#[tool(name = "fixtures__reconnection", effect = read_only, redact = ["$"])]
async fn reconnection() -> Result<String, ToolError> {
    tokio::time::sleep(Duration::from_millis(100)).await;
    Ok("Reconnection test completed successfully".to_owned())
}

/// Returns a tool with a foreign schema, which is published unchanged.
pub(crate) fn schema() -> DynamicTool {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            },
        },
        "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
        "additionalProperties": false,
    });
    let description = "Takes arguments by a schema of 2020-12.";
    DynamicTool::new("fixtures__schema", description, schema, ToolEffect::ReadOnly, Arc::new(Names)).redact(["name"])
}

struct Names;

#[async_trait]
impl DynamicHandler for Names {
    async fn call(&self, arguments: &Value, _: &ToolContext) -> Result<Value, ToolError> {
        Ok(json!({"name": arguments["name"]}))
    }
}
