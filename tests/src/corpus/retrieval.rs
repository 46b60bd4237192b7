//! Rows of `retrieval.jsonl`: which tools of a pool fit a request, best first.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tool_runtime::catalog::PickIndex;
use tool_runtime::catalog::PickOptions;
use tool_runtime::registration::{DynamicHandler, DynamicTool};
use tool_runtime::{ToolCatalog, ToolContext, ToolEffect, ToolError};

/// The maximum number of ids in a result.
const MAX_RESULTS: usize = 20;
/// The number of times that a query is ranked. The shortest time counts, because other load only makes a time longer.
const PASSES: usize = 4;

#[derive(Deserialize)]
struct Tool {
    id: String,
    wire_name: String,
    #[serde(default)]
    description: Option<String>,
    schema: Value,
}

#[derive(Deserialize)]
struct Id {
    id: String,
}

#[derive(Deserialize)]
struct Row {
    id: Value,
    query: String,
    offered: Option<Vec<String>>,
}

/// The tools of a pool. They come from many servers, so some have names that one catalog would refuse together: they
/// are indexed one by one.
pub struct Pool {
    index: PickIndex,
    slots: HashMap<String, usize>,
    ids: HashMap<String, String>,
}

struct Never;

#[async_trait]
impl DynamicHandler for Never {
    async fn call(&self, _: &Value, _: &ToolContext) -> Result<Value, ToolError> {
        Err(ToolError::safe("never run"))
    }
}

impl Pool {
    /// Reads definitions and the ids to pick from. Returns the pool, and a line for each unreadable definition.
    #[must_use]
    pub fn read(tools: &str, pool: Option<&str>) -> (Self, Vec<String>) {
        let wanted: Option<BTreeSet<String>> = pool
            .map(|pool| pool.lines().filter_map(|line| serde_json::from_str(line).ok()).map(|Id { id }| id).collect());
        let mut read = Self { index: PickIndex::default(), slots: HashMap::new(), ids: HashMap::new() };
        let mut left_out = Vec::new();
        for (number, line) in tools.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let added = match serde_json::from_str::<Tool>(line) {
                Ok(tool) if wanted.as_ref().is_some_and(|wanted| !wanted.contains(&tool.id)) => continue,
                Ok(tool) => read.add(tool),
                Err(error) => Err(error.to_string()),
            };
            left_out.extend(added.err().map(|problem| format!("line {}: {problem}", number + 1)));
        }
        (read, left_out)
    }

    fn add(&mut self, tool: Tool) -> Result<(), String> {
        let Tool { id, wire_name, description, schema } = tool;
        // A catalog refuses a tool without a description; here such a tool can be found by its name.
        let description = description.filter(|text| !text.trim().is_empty()).unwrap_or_else(|| "-".to_owned());
        let discovered = wire_name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
        let tool = match discovered {
            Some((server, name)) => DynamicTool::discovered(server, name, description, schema, Arc::new(Never)),
            None => DynamicTool::new(&wire_name, description, schema, ToolEffect::ReadOnly, Arc::new(Never)),
        };
        let catalog = ToolCatalog::builder().dynamic(tool).build().map_err(|error| error.to_string())?;
        for spec in catalog.specs() {
            self.slots.insert(id.clone(), self.index.insert(spec));
            self.ids.insert(spec.name.to_string(), id.clone());
        }
        Ok(())
    }

    /// Answers a row: `{"id","ranked","ms"}`, and `"offered"`, ranked, if the row has a short list. A row that cannot
    /// be read has an empty answer.
    #[must_use]
    pub fn answer(&self, row: &str) -> String {
        let Row { id, query, offered } = match serde_json::from_str(row) {
            Ok(row) => row,
            Err(error) => return json!({"id": null, "ranked": [], "error": error.to_string()}).to_string(),
        };
        let (mut ranked, mut ms) = (Vec::new(), f64::INFINITY);
        for _ in 0..PASSES {
            let started = Instant::now();
            ranked = self.ranked(&query, &|_| true);
            ms = ms.min(started.elapsed().as_secs_f64() * 1e3);
        }
        let mut answer = json!({"id": id, "ranked": ranked, "ms": ms});
        if let Some(offered) = offered {
            let slots: BTreeSet<_> = offered.iter().filter_map(|id| self.slots.get(id)).copied().collect();
            answer["offered"] = self.ranked(&query, &|slot| slots.contains(&slot)).into();
        }
        answer.to_string()
    }

    fn ranked(&self, query: &str, among: &dyn Fn(usize) -> bool) -> Vec<&str> {
        let picks = self.index.pick(query, &PickOptions::new(MAX_RESULTS).min_score(0.0), among);
        picks.iter().filter_map(|pick| self.ids.get(pick.name.as_str())).map(String::as_str).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_ranked() {
        let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
        let tool =
            |id, name, text| json!({"id": id, "wire_name": name, "description": text, "schema": schema}).to_string();
        let tools = [
            tool("a/1", "geo__weather", "Current weather."),
            "broken".to_owned(),
            tool("a/2", "geo__route", "A way between two cities."),
            tool("a/3", "geo__Route", "Looks like another one."),
            tool("a/4", "not a name", "Weather."),
            tool("a/5", "geo__nothing", ""),
        ];
        let (pool, left_out) = Pool::read(&tools.join("\n"), None);
        assert_eq!(left_out.len(), 2, "{left_out:?}");
        let answer = |row: Value| -> Value { serde_json::from_str(&pool.answer(&row.to_string())).unwrap_or_default() };
        let answered = answer(json!({"id": "q", "query": "What is the weather?", "offered": ["a/2", "a/1"]}));
        assert_eq!((&answered["ranked"], &answered["offered"]), (&json!(["a/1"]), &json!(["a/1"])));
        assert_eq!(answer(json!({"id": "q", "query": "🙂"}))["ranked"], json!([]));
        assert_eq!(answer(json!({"id": "q"}))["ranked"], json!([]));
        let (pool, _) = Pool::read(&tools.join("\n"), Some("{\"id\":\"a/2\"}"));
        assert!(!pool.answer("{\"id\":1,\"query\":\"weather city\"}").contains("a/1"));
    }
}
