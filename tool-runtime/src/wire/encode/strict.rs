//! Strict schemas: makes the closed copy of a schema (rules T1 and T2 of `wire`), which a provider enforces, and
//! removes its nulls (T3).

mod limits;
mod node;
mod nullable;
mod nulls;

pub(crate) use limits::{Room, long_property};

use std::borrow::Cow;

use serde_json::Value;

use node::{Node, step};

/// The values of `format` that strict modes know; the copy drops others.
const FORMATS: &[&str] = &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// Keywords whose meaning a closed copy cannot preserve.
const REFUSED: &[&str] = &[
    "oneOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "patternProperties",
    "propertyNames",
    "maxProperties",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "unevaluatedProperties",
    "unevaluatedItems",
    "prefixItems",
    "additionalItems",
    "contains",
    "minContains",
    "maxContains",
    "$dynamicRef",
    "$recursiveRef",
];

/// Keywords that [`Closing::Optional`] leaves out, because the provider refuses them in strict schemas. The runner
/// still checks them against the authoritative schema.
const BOUNDS: &[&str] = &[
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
];

/// The maximum depth of nested objects in a copy closed as [`Closing::Nullable`]; the root is the first level.
const MAX_LEVELS: usize = 10;

/// How a provider's strict mode treats optional properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closing {
    /// OpenAI: every property is required, and optional ones become nullable.
    Nullable,
    /// Anthropic: optional properties stay optional, and bounds such as `minimum` are left out.
    Optional,
}

/// A closed copy of a schema.
pub(crate) struct Closed {
    /// The copy to send.
    pub(crate) schema: Value,
    /// The keywords that the copy omits: the JSON pointer and the name of each.
    pub(crate) dropped: Vec<(String, String)>,
    /// The number of optional properties.
    optional: usize,
    /// The number of properties whose type is a union.
    unions: usize,
}

/// Makes a copy in which every object is closed (T1). The error is the JSON pointer of the part that cannot be closed
/// (T2).
pub(crate) fn close(schema: &str, closing: Closing) -> Result<Closed, String> {
    let root = Node::parse(schema).ok_or_else(String::new)?;
    let mut copy = root.clone();
    let mut closer = Closer { root: &root, closing, level: 0, dropped: Vec::new(), optional: 0, unions: 0 };
    if root.get("anyOf").is_some() {
        return Err("/anyOf".to_owned());
    }
    if copy.get("properties").is_none() {
        // A tool without arguments accepts only an empty object.
        copy.set("properties", Node::Object(Vec::new()));
    }
    closer.schema(&mut copy, "")?;
    let schema = serde_json::from_str(&copy.to_string()).map_err(|_| String::new())?;
    let Closer { dropped, optional, unions, .. } = closer;
    Ok(Closed { schema, dropped, optional, unions })
}

/// See [`WireTool::remove_nulls`](crate::wire::WireTool::remove_nulls).
pub(super) fn remove_nulls<'a>(schema: &str, arguments: &'a str) -> Cow<'a, str> {
    let (Some(root), Some(mut value)) = (Node::parse(schema), Node::parse(arguments)) else {
        return Cow::Borrowed(arguments);
    };
    if nulls::remove(&mut value, &root, &root) { Cow::Owned(value.to_string()) } else { Cow::Borrowed(arguments) }
}

struct Closer<'a> {
    root: &'a Node,
    closing: Closing,
    /// The number of objects around the schema that is read.
    level: usize,
    dropped: Vec<(String, String)>,
    optional: usize,
    unions: usize,
}

impl Closer<'_> {
    fn schema(&mut self, node: &mut Node, path: &str) -> Result<(), String> {
        // A schema without a type allows every value, which no closed schema can express.
        let says = ["type", "$ref", "anyOf", "enum", "const"].iter().any(|key| node.get(key).is_some());
        if !says {
            let refused = node.entries().iter().find(|(key, _)| REFUSED.contains(&key.as_str()));
            return Err(refused.map_or_else(|| path.to_owned(), |(key, _)| format!("{path}/{key}")));
        }
        if let Some((key, _)) = node.entries().iter().find(|(key, _)| REFUSED.contains(&key.as_str())) {
            return Err(format!("{path}/{key}"));
        }
        if let Some(reference) = node.get("$ref") {
            let reference = reference.as_str().filter(|reference| self.root.resolve(reference).is_some());
            let circular =
                |reference: &str| self.closing == Closing::Optional && limits::is_circular(reference, self.root);
            if reference.is_none_or(|reference| circular(&reference)) {
                return Err(format!("{path}/$ref"));
            }
        }
        self.drop_unknown(node, path);
        if has_type(node, "object") || node.get("properties").is_some() {
            self.object(node, path)?;
        }
        if has_type(node, "array") || node.get("items").is_some() {
            let items = node.get_mut("items").ok_or_else(|| path.to_owned())?;
            self.schema(items, &format!("{path}/items"))?;
        }
        if let Some(Node::Array(branches)) = node.get_mut("anyOf") {
            for (at, branch) in branches.iter_mut().enumerate() {
                self.schema(branch, &format!("{path}/anyOf/{at}"))?;
            }
        }
        for key in ["$defs", "definitions"] {
            self.each(node, key, path)?;
        }
        Ok(())
    }

    fn object(&mut self, node: &mut Node, path: &str) -> Result<(), String> {
        let closed = node.get("additionalProperties").is_none_or(|more| more.is("false"));
        let too_deep = self.closing == Closing::Nullable && self.level == MAX_LEVELS;
        if node.get("properties").is_none() || !closed || too_deep {
            return Err(path.to_owned());
        }
        self.level += 1;
        self.each(node, "properties", path)?;
        self.level -= 1;
        let mut required: Vec<Node> = node.get("required").map_or_else(Vec::new, |names| names.items().to_vec());
        let named: Vec<String> = required.iter().filter_map(Node::as_str).collect();
        if let Some(Node::Object(properties)) = node.get_mut("properties") {
            if let Some(unknown) = named.iter().find(|name| !properties.iter().any(|(key, _)| key == *name)) {
                // Strict modes accept `required` only for declared properties.
                return Err(format!("{path}/required/{}", named.iter().position(|name| name == unknown).unwrap_or(0)));
            }
            self.unions += properties.iter().filter(|(_, property)| limits::is_union(property)).count();
            for (name, property) in properties.iter_mut().filter(|(name, _)| !named.contains(name)) {
                self.optional += 1;
                if self.closing == Closing::Nullable {
                    nullable::make_nullable(property, self.root);
                    required.push(Node::text(name));
                }
            }
        }
        node.set("required", Node::Array(required));
        node.set("additionalProperties", Node::Scalar("false".to_owned()));
        Ok(())
    }

    fn each(&mut self, node: &mut Node, key: &str, path: &str) -> Result<(), String> {
        let Some(Node::Object(schemas)) = node.get_mut(key) else { return Ok(()) };
        for (name, schema) in schemas {
            self.schema(schema, &step(&format!("{path}/{key}"), name))?;
        }
        Ok(())
    }

    fn drop_unknown(&mut self, node: &mut Node, path: &str) {
        let known = node.get("format").and_then(Node::as_str).is_none_or(|format| FORMATS.contains(&format.as_str()));
        // A copy with nullable properties always has every property, so `minProperties` has no meaning in it. The
        // runner still checks `minProperties` against the authoritative schema.
        let drops = [("format", !known || !has_type(node, "string")), ("default", true), ("minProperties", true)];
        let bounds = BOUNDS.iter().map(|key| (*key, self.closing == Closing::Optional));
        for (key, drop) in drops.into_iter().chain(bounds) {
            if drop && node.remove(key).is_some() {
                self.dropped.push((format!("{path}/{key}"), key.to_owned()));
            }
        }
    }
}

fn has_type(node: &Node, name: &str) -> bool {
    let Some(ty) = node.get("type") else { return false };
    let is = |ty: &Node| ty.as_str().as_deref() == Some(name);
    is(ty) || ty.items().iter().any(is)
}
