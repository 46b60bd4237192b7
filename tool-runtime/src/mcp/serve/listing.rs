//! [`Listing`]: the tools of a catalog, with the names and the descriptions that clients see.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::Value;

use crate::capability::InjectedFrom;
use crate::catalog::{CatalogView, Entry};
use crate::json::{self, Limits};
use crate::mcp::effect::Hints;
use crate::mcp::header::{Mark, marks};
use crate::mcp::name::is_name;
use crate::mcp::serve::error::McpServerError;
use crate::runner::ServedRuns;
use crate::runner::ToolRunner;
use crate::schema::validator::{Compiled, JsonSchemaValidator};
use crate::tool::{Execution, is_discovered};

/// The tools that the server offers, by the names that clients see.
pub(super) struct Listing {
    runner: ToolRunner,
    /// The names that the application chose, by tool.
    exposed: BTreeMap<String, String>,
    offered: BTreeMap<String, Arc<Offered>>,
    /// The tools that MCP servers listed after the catalog was built.
    late: Mutex<BTreeMap<String, Arc<Offered>>>,
}

/// One tool as clients see it.
pub(super) struct Offered {
    /// The name in the catalog.
    pub(super) tool: String,
    /// Whether its calls can be suspended until a person decides.
    pub(super) waits: bool,
    /// The arguments that a client also sends in `Mcp-Param-` headers.
    pub(super) params: Vec<Mark>,
    /// The kind of value in its results, in addition to files.
    pub(super) value: Shape,
    /// Checks a value against the output schema that clients see. `None` if they see no schema.
    check: Option<Arc<dyn Compiled>>,
    /// The entry of the tool in `tools/list`, for the protocol revision 2026-07-28 and later ones.
    described: Tool,
    /// The entry of the tool in `tools/list`, for the revisions before 2026-07-28.
    described_before: Tool,
}

/// The kind of a result's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Always `null`.
    Nothing,
    /// An object with a schema.
    Object,
    /// A value other than an object, with a schema.
    Other,
    /// A value without a schema.
    Unknown,
}

impl Listing {
    /// Collects the tools of the catalog with their names and descriptions.
    pub(super) fn of(runner: &ToolRunner, exposed: BTreeMap<String, String>) -> Result<Self, McpServerError> {
        // The names in a catalog are unique, and clients accept them. Only the names that the application chose are
        // checked here, also for tools that an MCP server might list later.
        let (catalog, mut chosen) = (runner.catalog(), BTreeSet::new());
        for (tool, name) in &exposed {
            match catalog.get(tool) {
                None if catalog.missing(tool).is_some() => {}
                None => return Err(McpServerError::Unknown { tool: tool.clone() }),
                Some(spec) if spec.execution == Execution::Client => {
                    return Err(McpServerError::Client { tool: tool.clone() });
                }
                Some(_) => {}
            }
            if !is_name(name) {
                return Err(McpServerError::Name { tool: tool.clone() });
            }
            // A different tool might have this name, or an MCP server might list such a tool later.
            let is_tool = match catalog.get(name) {
                Some(spec) => spec.execution == Execution::Server,
                None => catalog.missing(name).is_some(),
            };
            if !chosen.insert(name) || is_tool && !exposed.contains_key(name) {
                return Err(McpServerError::Taken { name: name.clone() });
            }
        }
        let fixed = catalog.fixed_entries().iter().filter(|entry| entry.spec.execution == Execution::Server);
        // Not checked: discovered tools, because MCP servers wrote their schemas, and denied tools, because clients do
        // not see them.
        let is_own = |name: &str| !is_discovered(name) && runner.policy().mentions(name);
        for entry in fixed.clone().filter(|entry| is_own(entry.spec.name.as_str())) {
            if let Err(why) = marks(&entry.spec.input_schema.to_value()) {
                return Err(McpServerError::Header { tool: entry.spec.name.to_string(), why });
            }
        }
        let offered = fixed.map(|entry| {
            let tool = entry.spec.name.as_str();
            let name = exposed.get(tool).map_or(tool, String::as_str);
            (name.to_owned(), Arc::new(Offered::of(runner, entry, name)))
        });
        let (offered, runner) = (offered.collect(), runner.clone());
        Ok(Self { runner, exposed, offered, late: Mutex::default() })
    }

    pub(super) fn len(&self) -> usize {
        self.offered.len()
    }

    /// Returns the tool that clients see under this name.
    pub(super) fn get(&self, name: &str) -> Option<Arc<Offered>> {
        let known = self.offered.get(name).cloned();
        known.or_else(|| {
            let entry = self.runner.catalog().entry(self.tool_of(name)?)?;
            self.late(entry)
        })
    }

    /// Waits until the MCP server of a tool has listed its tools, if the policy may allow the tool.
    pub(super) async fn arrival(&self, name: &str) {
        if !self.offered.contains_key(name)
            && let Some(tool) = self.tool_of(name)
            && self.runner.policy().mentions(tool)
            && let Some(server) = self.runner.catalog().missing(tool)
        {
            // If the server fails, its tools stay unknown.
            let _ = server.ready().await;
        }
    }

    /// Returns the tools that a run may see, sorted by name.
    pub(super) fn visible(&self, view: &CatalogView, objects_only: bool) -> Vec<Tool> {
        let late = view.entries().filter_map(|entry| self.late(entry));
        let fixed = self.offered.values().filter(|offered| view.get(&offered.tool).is_some()).cloned();
        let mut seen: Vec<_> = fixed.chain(late).collect();
        // Every list has the same order.
        seen.sort_by(|one, other| one.described(objects_only).name.cmp(&other.described(objects_only).name));
        seen.into_iter().map(|offered| offered.described(objects_only).clone()).collect()
    }

    /// Returns the name in the catalog for a name that clients use. The tool need not exist. `None` if `name` is the
    /// catalog's name of a tool that clients see under another name.
    fn tool_of<'n>(&'n self, name: &'n str) -> Option<&'n str> {
        let chosen = self.exposed.iter().find(|(_, exposed)| *exposed == name).map(|(tool, _)| tool.as_str());
        chosen.or_else(|| (!self.exposed.contains_key(name)).then_some(name))
    }

    /// Returns a tool that an MCP server listed after the catalog was built, and caches its description. `None` for any
    /// other tool.
    fn late(&self, entry: &Entry) -> Option<Arc<Offered>> {
        entry.deferred?;
        let tool = entry.spec.name.as_str();
        let name = self.exposed.get(tool).map_or(tool, String::as_str);
        let late = || self.late.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = late().get(tool) {
            return Some(Arc::clone(known));
        }
        let offered = Arc::new(Offered::of(&self.runner, entry, name));
        late().insert(tool.to_owned(), Arc::clone(&offered));
        Some(offered)
    }
}

impl Offered {
    fn of(runner: &ToolRunner, entry: &Entry, name: &str) -> Self {
        let spec = &entry.spec;
        let effect = runner.policy().effect_of(spec.name.as_str(), spec.effect);
        let outside = |source: InjectedFrom| matches!(source, InjectedFrom::Connection(_));
        let outside = spec.name.is_discovered() || entry.requirements.iter().any(|one| outside(one.source));
        let Hints { read_only, destructive, idempotent, open_world } = Hints::of(effect, spec.idempotent, outside);
        let annotations = ToolAnnotations::new()
            .read_only(read_only)
            .destructive(destructive)
            .idempotent(idempotent)
            .open_world(open_world);
        let input = spec.input_schema.to_value();
        let params = marks(&input).unwrap_or_default();
        let input = object(input);
        let mut tool = Tool::new(name.to_owned(), spec.description.to_string(), Arc::new(closed(input)));
        tool = tool.with_annotations(annotations);
        if let Some(title) = &spec.title {
            tool = tool.with_title(title.to_string());
        }
        let schema = runner.shown_schema(entry);
        let value = Shape::of(schema.as_ref());
        // Without the compiled schema, no value can be checked against it, so clients do not see a schema that cannot
        // be compiled.
        let compile = |schema: &Value| JsonSchemaValidator.compile_value(schema);
        let check = match (value, &schema) {
            (Shape::Object | Shape::Other, Some(schema)) => compile(schema).ok(),
            _ => None,
        };
        let with = |tool: &Tool, schema: Value| tool.clone().with_raw_output_schema(Arc::new(object(schema)));
        let (described, described_before) = match (value, schema.filter(|_| check.is_some())) {
            (Shape::Object, Some(schema)) => (with(&tool, schema.clone()), with(&tool, schema)),
            (Shape::Other, Some(schema)) => (with(&tool, schema.clone()), with(&tool, wrapped_schema(schema))),
            _ => (tool.clone(), tool),
        };
        Self {
            tool: spec.name.to_string(),
            waits: ServedRuns(runner).can_wait(entry),
            params,
            value,
            check,
            described,
            described_before,
        }
    }

    /// Whether a value satisfies the output schema that clients see. `true` if they see none.
    pub(super) fn fits(&self, value: &Value) -> bool {
        let Some(check) = &self.check else { return true };
        let text = value.to_string();
        json::parse_value(&text, &Limits::UNBOUNDED).is_ok_and(|tree| check.check(&tree).is_ok())
    }

    /// Returns the entry of the tool in `tools/list`. `objects_only` selects the entry for the revisions before
    /// 2026-07-28.
    pub(super) const fn described(&self, objects_only: bool) -> &Tool {
        if objects_only { &self.described_before } else { &self.described }
    }
}

impl Shape {
    fn of(schema: Option<&Value>) -> Self {
        match schema.map(|schema| schema.get("type").and_then(Value::as_str)) {
            None => Self::Unknown,
            Some(Some("null")) => Self::Nothing,
            Some(Some("object")) => Self::Object,
            Some(_) => Self::Other,
        }
    }
}

/// Wraps an output schema for revisions before 2026-07-28. A result is an object there, so any other value becomes the
/// member `result` of an object.
fn wrapped_schema(mut schema: Value) -> Value {
    let dialect = schema.as_object_mut().and_then(|schema| schema.remove("$schema"));
    let mut wrapped = serde_json::json!({"type": "object", "properties": {"result": schema}, "required": ["result"]});
    if let Some(dialect) = dialect {
        wrapped["$schema"] = dialect;
    }
    wrapped
}

/// Converts a schema to a JSON object. `true` and `false` become an empty object, because clients expect objects.
fn object(schema: Value) -> JsonObject {
    match schema {
        Value::Object(schema) => schema,
        _ => JsonObject::new(),
    }
}

/// Gives the root of a schema of arguments the type `object`, which the protocol requires.
fn closed(mut schema: JsonObject) -> JsonObject {
    schema.entry("type").or_insert_with(|| "object".into());
    schema
}
