//! Holds a policy against a catalog: what it names must exist.

use std::collections::HashMap;

use crate::policy::ToolPolicy;
use crate::policy::label::is_discovered;
use crate::policy::problem::PolicyProblem;
use crate::text::{nearest, pointer};
use crate::tool::{Schema, ToolEffect, ToolSpec};

/// A tool of the catalog, as far as a policy may refer to it.
#[derive(Debug, Clone, Copy)]
pub struct KnownTool<'a> {
    /// Its name.
    pub name: &'a str,
    /// The effect it declares.
    pub effect: ToolEffect,
    /// The schema of its arguments, where paths into them are to be checked.
    pub input: Option<&'a Schema>,
}

impl<'a> KnownTool<'a> {
    /// A tool whose arguments are not known.
    #[must_use]
    pub const fn new(name: &'a str, effect: ToolEffect) -> Self {
        Self { name, effect, input: None }
    }

    /// What a definition says.
    #[must_use]
    pub fn of(spec: &'a ToolSpec) -> Self {
        Self { name: spec.name.as_str(), effect: spec.effect, input: Some(&spec.input_schema) }
    }
}

impl ToolPolicy {
    /// Everything in the policy that does not fit these tools: unknown names, effects below what a tool declares,
    /// paths that arguments do not have. Names under `mcp__` may wait for their server. Allowlists (`redact`,
    /// `model`) are checked where they are compiled.
    #[must_use]
    pub fn check(&self, known: &[KnownTool<'_>]) -> Vec<PolicyProblem> {
        let index: HashMap<&str, &KnownTool<'_>> = known.iter().map(|tool| (tool.name, tool)).collect();
        let mut problems = Vec::new();
        for (path, name) in self.names() {
            if !index.contains_key(name) && !is_discovered(name) {
                let nearest = nearest(name, known.iter().map(|tool| tool.name)).map(str::to_owned);
                problems.push(PolicyProblem { path, message: format!("there is no tool `{name}`"), nearest });
            }
        }
        for (name, rule) in &self.data().tools {
            let Some(tool) = index.get(name.as_str()) else { continue };
            let path = format!("tools.{name}");
            if let Some(effect) = rule.effect.filter(|effect| *effect < tool.effect && !is_discovered(name)) {
                let message = format!(
                    "`{effect}` is less than the tool declares; write `{}` or more, or change the tool",
                    tool.effect
                );
                problems.push(PolicyProblem { path: format!("{path}.effect"), message, nearest: None });
            }
            if !is_discovered(name) {
                let given = [("redact", rule.redact.is_some()), ("model", !rule.model.is_empty())];
                for (key, _) in given.into_iter().filter(|(_, given)| *given) {
                    let message = "an authored tool brings its own allowlist; change it there".to_owned();
                    problems.push(PolicyProblem { path: format!("{path}.{key}"), message, nearest: None });
                }
            }
            let Some(input) = tool.input.map(Schema::to_value) else { continue };
            for (at, rule) in rule.arguments.iter().enumerate() {
                if let Err((message, nearest)) = resolve(&input, &rule.pointer) {
                    let path = format!("{path}.arguments[{at}].pointer");
                    problems.push(PolicyProblem { path, message, nearest });
                }
            }
        }
        problems
    }

    /// Every name in the policy, with the place it stands at.
    fn names(&self) -> impl Iterator<Item = (String, &str)> {
        let data = self.data();
        let lists = [
            ("allowed_tools".to_owned(), &data.allowed_tools),
            ("require_approval_for_tools".to_owned(), &data.require_approval_for_tools),
        ];
        let grants = [("roles", &data.roles), ("principals", &data.principals), ("tenants", &data.tenants)];
        let grants = grants.into_iter().flat_map(|(key, grants)| {
            grants.iter().flat_map(move |(id, grant)| {
                let path = format!("{key}.{id}");
                [
                    (format!("{path}.allowed_tools"), &grant.allowed_tools),
                    (format!("{path}.denied_tools"), &grant.denied_tools),
                ]
            })
        });
        let labels = data.labels.iter().map(|(label, rule)| (format!("labels.{label}.from_tools"), &rule.from_tools));
        let lists = lists.into_iter().chain(grants).chain(labels);
        let keys = data.budgets.tools.keys().map(|name| (format!("budgets.tools.{name}"), name.as_str()));
        let keys = keys.chain(data.tools.keys().map(|name| (format!("tools.{name}"), name.as_str())));
        lists.flat_map(|(path, names)| names.iter().map(move |name| (path.clone(), name.as_str()))).chain(keys)
    }
}

/// Follows a pointer through the properties and items of a schema; what the schema leaves open is taken as there.
fn resolve(schema: &serde_json::Value, pointer: &str) -> Result<(), (String, Option<String>)> {
    let mut schema = schema;
    for segment in pointer::split(pointer).into_iter().flatten() {
        let properties = schema.get("properties").and_then(|properties| properties.as_object());
        let property = properties.and_then(|properties| properties.get(&*segment));
        let item = schema.get("items").filter(|_| segment.bytes().all(|byte| byte.is_ascii_digit()));
        let Some(next) = property.or(item) else {
            let open = schema.get("additionalProperties") != Some(&serde_json::Value::Bool(false));
            if open && schema.get("items").is_none() {
                return Ok(());
            }
            let names = properties.into_iter().flat_map(|properties| properties.keys().map(String::as_str));
            let nearest = nearest(&segment, names).map(str::to_owned);
            return Err((format!("the arguments have nothing at `{pointer}`"), nearest));
        };
        schema = next;
    }
    Ok(())
}
