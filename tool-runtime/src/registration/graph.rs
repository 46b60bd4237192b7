//! The declaration of a graph, before its tools are known.

use serde_json::json;

use crate::json;
use crate::tool::Hash;

/// The declaration of a graph. Effect and hash follow from its tools, which the catalog knows.
pub(crate) struct GraphDeclaration {
    pub(crate) version: String,
    pub(crate) tools: Vec<String>,
    /// The definitions of the tools. The catalog adds them.
    pub(crate) definitions: Vec<Hash>,
    /// Whether its tools must have no effects. The catalog then refuses others.
    pub(crate) only_reads: bool,
    /// Each call with an effect waits for an approval, even if the policy requires none.
    pub(crate) asks_each: bool,
    /// The hash of the instructions of its agent, `None` for a script. It is part of the version of a run, and not of
    /// the definition, which pins and locks name.
    pub(crate) instructions: Option<Hash>,
}

impl GraphDeclaration {
    /// The hash of a graph's definition: of its published part, its version, and its tools with their definitions.
    pub(crate) fn hash(&self, published: Hash) -> Hash {
        let definitions: Vec<_> = self.definitions.iter().map(ToString::to_string).collect();
        json::digest(json!([published.to_string(), self.version, self.tools, definitions]).to_string())
    }
}
