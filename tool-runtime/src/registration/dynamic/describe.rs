//! Converts a dynamic tool into the declaration that a catalog checks.

use std::sync::Arc;

use serde_json::{Value, json};

#[cfg(feature = "mcp-client")]
use crate::registration::OnAccount;
use crate::registration::dynamic::{DynamicTool, Runs};
use crate::registration::handled::Handled;
use crate::registration::{Behaviour, Described};
use crate::schema::{self, pin};
use crate::tool::{Hash, Once, ToolName, is_discovered, is_graph, name};

impl DynamicTool {
    pub(crate) fn describe(self) -> Described {
        let written = match &self.namespace {
            Some(namespace) => format!("{namespace}__{}", self.name),
            None => self.name.clone(),
        };
        let (pin, published) = match self.published.clone() {
            Some((pin, server)) => (Some(pin), Some(server)),
            None => (self.discovered.then(|| self.mcp_pin(&written)), None),
        };
        // A model would confuse `MCP__` with `mcp__`.
        let lower = written.to_ascii_lowercase();
        let reserved = is_discovered(&lower) && !self.discovered;
        let forged = is_graph(&lower) && !matches!(self.runs, Runs::Graph(..));
        let taken = lower == name::SEARCH && !matches!(self.runs, Runs::BuiltIn(_));
        // A server's tools get their namespace from the server.
        let keeps = self.discovered || self.foreign;
        let name = if keeps { ToolName::foreign(&written) } else { ToolName::dynamic(&written) };
        let name = name.and_then(|name| match self.discovered {
            false if reserved => Err(name::RESERVED),
            _ if forged => Err(name::GRAPH),
            _ if taken => Err(name::BUILT_IN),
            // With another namespace, no rule for the tools of MCP servers would apply to it.
            true if !is_discovered(&written) => Err(name::DISCOVERED),
            _ => Ok(name),
        });
        let output = self.output.as_ref().map(schema::check_foreign);
        #[cfg(feature = "mcp-client")]
        let requirements = self.account.iter().map(OnAccount::requirement).collect();
        #[cfg(not(feature = "mcp-client"))]
        let requirements = Vec::new();
        let (graph, behaviour): (_, Arc<dyn Behaviour>) = match self.runs {
            Runs::Handler(handler) => {
                let output = output.as_ref().and_then(|output| output.clone().ok());
                let handled = Handled {
                    handler,
                    output,
                    compiled: Arc::default(),
                    #[cfg(feature = "mcp-client")]
                    account: self.account,
                };
                (None, Arc::new(handled))
            }
            Runs::Graph(declared, behaviour) => (Some(declared), behaviour),
            Runs::BuiltIn(behaviour) => (None, behaviour),
        };
        Described {
            written,
            name,
            title: self.title.map(Into::into),
            description: self.description.into(),
            summary: self.summary,
            input: schema::check_foreign(&self.input),
            output,
            answer: self.answer.as_ref().map(schema::check_foreign),
            effect: self.effect,
            allow: self.redact,
            model: self.model,
            prepare: self.prepare,
            tags: self.tags,
            also: self.also,
            sensitive: self.sensitive,
            evidence: self.evidence,
            require_any: self.require_any,
            idempotent: self.idempotent,
            once: self.once.map(|once| Once { keep: self.keep, ..once }),
            no_schema: self.no_schema,
            timeout: self.timeout,
            max_result_bytes: self.max_result_bytes,
            location: None,
            has_media: None,
            requirements,
            pin,
            published,
            graph,
            behaviour,
        }
    }

    /// Returns the hash of the definition in MCP's form.
    fn mcp_pin(&self, written: &str) -> Hash {
        let name =
            written.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")).map_or(written, |(_, name)| name);
        let mut definition = json!({"name": name, "description": self.description, "inputSchema": self.input});
        for (key, value) in [("title", self.title.clone().map(Value::from)), ("outputSchema", self.output.clone())] {
            if let (Some(members), Some(value)) = (definition.as_object_mut(), value) {
                members.insert(key.to_owned(), value);
            }
        }
        pin(&definition)
    }
}
