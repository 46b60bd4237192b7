//! `tools__search`: the tool that lets a model search for tools.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::call::Violation;
use crate::capability::Requirement;
use crate::catalog::PickOptions;
use crate::component::Bindings;
use crate::error::ToolError;
use crate::json::{self, DeError, Tree};
use crate::redact::Projector;
use crate::registration::{Behaviour, DynamicTool, Instance, Purpose, RunFailure, Running};
use crate::runner::run::offer::FULL;
use crate::runner::{Host, Run};
use crate::text::sentence;
use crate::tool::{SEARCH, ToolEffect};

const DESCRIPTION: &str = "Finds tools that are not loaded yet, and loads them: from your next turn on you can call \
                           what it returns. Say in a few words what the tool has to do. No tool has the \
                           `unmatched_words` of your query: search again with other words for them.";

/// The maximum length of a returned description, in bytes. The next request contains the whole definition.
const MAX_DESCRIPTION_BYTES: usize = 300;

impl DynamicTool {
    /// Returns `tools__search`, a `read_only` tool that lets a model search for tools that its agent did not pick
    /// ([`Agent::pick`](crate::agent::Agent::pick)). The next requests of the run offer the tools that it found.
    ///
    /// Like every tool, it has to be in the catalog and in the policy's `allowed_tools`. It finds only tools that the
    /// policy lets the run see. An agent without picking does not offer it.
    ///
    /// ```
    /// use tool_runtime::registration::DynamicTool;
    /// use tool_runtime::{ToolCatalog, ToolPolicy, ToolRunner};
    ///
    /// let catalog = ToolCatalog::builder().dynamic(DynamicTool::search_tools()).build()?;
    /// let runner = ToolRunner::builder(catalog, ToolPolicy::allow(["tools__search"])).build()?;
    /// # let _ = runner;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn search_tools() -> Self {
        let input = json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "minLength": 1, "maxLength": 1000,
                    "description": "What the tool has to do, in the words of its task, for example `send an invoice`."},
                "limit": {"type": "integer", "minimum": 1, "maximum": 20, "default": 5,
                    "description": "How many tools to load at most."},
            },
            "required": ["query"],
            "additionalProperties": false,
        });
        let output = json!({
            "type": "object",
            "properties": {"tools": {"type": "array", "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "description": {"type": "string"}},
                "required": ["name", "description"],
            }}, "unmatched_words": {"type": "array", "items": {"type": "string"}}},
            "required": ["tools"],
        });
        Self::built_in(SEARCH, DESCRIPTION, input, ToolEffect::ReadOnly, Arc::new(Searches))
            .output_schema(output)
            .redact(["tools.name", "tools.description", "unmatched_words"])
    }
}

struct Searches;

impl Behaviour for Searches {
    fn requirements(&self) -> Vec<Requirement> {
        Vec::new()
    }

    fn instantiate(&self, arguments: &Tree<'_>) -> Result<Box<dyn Instance>, DeError> {
        Ok(Box::new(json::from_tree::<Search>(arguments)?))
    }
}

#[derive(Deserialize)]
struct Search {
    query: String,
    #[serde(default = "five")]
    limit: usize,
}

const fn five() -> usize {
    5
}

#[derive(Serialize)]
struct SearchOutput {
    tools: Vec<FoundTool>,
    /// The words of the query that no tool has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unmatched_words: Vec<String>,
}

#[derive(Serialize)]
struct FoundTool {
    name: String,
    description: String,
}

impl Instance for Search {
    fn validate(&self) -> Result<(), Violation> {
        Ok(())
    }

    fn run(
        self: Box<Self>,
        _: Purpose,
        bindings: Bindings<'_>,
        projector: Arc<Projector>,
        max_bytes: usize,
    ) -> Option<Running> {
        let host = bindings.host?.downcast::<Host>().ok()?;
        Some(Box::pin(async move {
            let found = self.search(host.run()).map_err(RunFailure::Tool)?;
            projector.project(&found, max_bytes).map_err(RunFailure::Output)
        }))
    }
}

impl Search {
    /// Finds and loads tools. Ignores the minimum score, so that a search returns the best tools that exist.
    fn search(&self, run: &Run) -> Result<SearchOutput, ToolError> {
        let picks = run.pick(&self.query, &PickOptions::new(self.limit + 1).min_score(0.0));
        // The search tool is not a result of its own.
        let names = picks.iter().map(|pick| pick.name.as_str()).filter(|name| *name != SEARCH).take(self.limit);
        let mut names: Vec<_> = names.collect();
        if run.is_picking() {
            let loaded = run.load(names.iter().copied());
            if loaded.is_empty() && !names.is_empty() {
                return Err(ToolError::safe(FULL));
            }
            names = loaded;
        }
        let tools = names.iter().filter_map(|name| run.catalog().get(name));
        let tools = tools.map(|spec| FoundTool {
            name: spec.name.to_string(),
            description: sentence(&spec.description, MAX_DESCRIPTION_BYTES),
        });
        Ok(SearchOutput { tools: tools.collect(), unmatched_words: run.unmatched(&self.query) })
    }
}
