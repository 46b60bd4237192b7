//! The declaration of a graph, which is an agent or a script that runs as a tool.

use serde_json::json;

use crate::json;
use crate::tool::Hash;

/// The declaration of a graph. The catalog derives its effect and its hash from its tools.
pub(crate) struct GraphDeclaration {
    pub(crate) version: String,
    pub(crate) tools: Vec<String>,
    /// The hashes of the tools' definitions. The catalog adds them.
    pub(crate) definitions: Vec<Hash>,
    /// Whether the graph may only use `read_only` tools. The catalog then refuses others.
    pub(crate) only_reads: bool,
    /// Whether each call with an effect waits for an approval, even if the policy requires none.
    pub(crate) asks_each: bool,
    /// The hash of the agent's instructions; `None` for a script. It is part of the version of a run, but not of the
    /// definition, so pins and locks do not depend on it.
    pub(crate) instructions: Option<Hash>,
}

impl GraphDeclaration {
    /// Returns the hash of a graph's published part, its version, and its tools with their definitions.
    pub(crate) fn hash(&self, published: Hash) -> Hash {
        let definitions: Vec<_> = self.definitions.iter().map(ToString::to_string).collect();
        json::digest(json!([published.to_string(), self.version, self.tools, definitions]).to_string())
    }
}
