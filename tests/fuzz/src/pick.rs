//! Picking: any text can be a description and a query, and takes bounded time.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use tool_runtime::catalog::PickIndex;
use tool_runtime::catalog::PickOptions;
use tool_runtime::registration::{DynamicHandler, DynamicTool};
use tool_runtime::{ToolCatalog, ToolContext, ToolEffect, ToolError};

struct Never;

#[async_trait]
impl DynamicHandler for Never {
    async fn call(&self, _: &Value, _: &ToolContext) -> Result<Value, ToolError> {
        Err(ToolError::safe("never run"))
    }
}

/// Uses the text as a description, as an argument and as a query: scores are sorted, between 0 and 1, and the same each
/// time, and a tool that was added and removed leaves no trace.
pub fn picks_are_sound(text: &str) {
    let tool = |name: &str, description: &str, argument: &str| {
        let schema =
            json!({"type": "object", "properties": {argument: {"type": "string", "description": description}}});
        DynamicTool::new(name, description, schema, ToolEffect::ReadOnly, Arc::new(Never))
    };
    let catalog = ToolCatalog::builder()
        .dynamic(tool("fuzz__one", "Lists open tasks of a project.", "project"))
        .dynamic(tool("fuzz__two", "Sends an email.", "address"));
    let Ok(hostile) = ToolCatalog::builder().dynamic(tool("fuzz__text", text, text)).build() else { return };
    let catalog = catalog.build().expect("both are sound");
    let mut index = PickIndex::default();
    catalog.specs().for_each(|spec| {
        index.insert(spec);
    });
    let options = PickOptions::new(3).min_score(0.0);
    let before = index.pick(text, &options, &|_| true);
    hostile.specs().for_each(|spec| {
        index.insert(spec);
    });
    let picks = index.pick(text, &options, &|_| true);
    assert!(picks.iter().all(|pick| (0.0..=1.0).contains(&pick.score)), "a score is from 0 to 1");
    assert!(picks.windows(2).all(|pair| pair[0].score >= pair[1].score), "the best come first");
    assert_eq!(picks, index.pick(text, &options, &|_| true), "picks are the same each time");
    assert!(index.remove("fuzz__text"));
    assert_eq!(before, index.pick(text, &options, &|_| true), "a tool that went leaves no trace");
}
