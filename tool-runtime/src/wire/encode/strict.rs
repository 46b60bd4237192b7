//! Strict schemas: the closed copy that binds a model (T1, T2), and the way back for its nulls (T3).

use std::borrow::Cow;

use serde_json::Value;

use crate::call::{Arguments, ToolCall};
use crate::text::pointer;
use crate::tool::Schema;
use crate::wire::encode::node::Node;
use crate::wire::encode::nulls;

/// Formats that strict modes know; others are dropped from the copy.
const FORMATS: &[&str] = &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// Keywords whose meaning a closed copy cannot keep.
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

/// A closed copy of a schema.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Closed {
    /// The copy to send.
    pub schema: Value,
    /// What the copy leaves out: JSON pointer, and the keyword.
    pub dropped: Vec<(String, String)>,
}

/// T1: a copy in which every object is closed and every property required, the optional ones nullable. T2: the
/// error is the JSON pointer of what cannot be closed.
pub fn close(schema: &str) -> Result<Closed, String> {
    let root = Node::parse(schema).ok_or_else(String::new)?;
    let mut copy = root.clone();
    let mut closer = Closer { root: &root, dropped: Vec::new() };
    if root.get("anyOf").is_some() {
        return Err("/anyOf".to_owned());
    }
    if copy.get("properties").is_none() {
        // A tool without arguments: the root of nothing is an empty object, not a free map.
        copy.set("properties", Node::Object(Vec::new()));
    }
    closer.schema(&mut copy, "")?;
    let schema = serde_json::from_str(&copy.to_string()).map_err(|_| String::new())?;
    Ok(Closed { schema, dropped: closer.dropped })
}

/// T3: the arguments without the nulls that only the closed copy allows, read against the authoritative schema.
/// Text that does not parse is returned as it is.
#[must_use]
pub fn remove_nulls<'a>(schema: &str, arguments: &'a str) -> Cow<'a, str> {
    let (Some(root), Some(mut value)) = (Node::parse(schema), Node::parse(arguments)) else {
        return Cow::Borrowed(arguments);
    };
    if nulls::remove(&mut value, &root, &root) { Cow::Owned(value.to_string()) } else { Cow::Borrowed(arguments) }
}

/// [`remove_nulls`] on a call, before it is validated.
pub fn remove_nulls_from(call: &mut ToolCall, schema: &Schema) {
    let (Arguments::Text(text) | Arguments::Object(text)) = &mut call.arguments;
    if let Cow::Owned(less) = remove_nulls(schema.as_str(), text) {
        *text = less;
    }
}

struct Closer<'a> {
    root: &'a Node,
    dropped: Vec<(String, String)>,
}

impl Closer<'_> {
    fn schema(&mut self, node: &mut Node, path: &str) -> Result<(), String> {
        // A schema that says nothing about the type allows everything, and a closed one cannot.
        let says = ["type", "$ref", "anyOf", "enum", "const"].iter().any(|key| node.get(key).is_some());
        if !says {
            let refused = node.entries().iter().find(|(key, _)| REFUSED.contains(&key.as_str()));
            return Err(refused.map_or_else(|| path.to_owned(), |(key, _)| format!("{path}/{key}")));
        }
        if let Some((key, _)) = node.entries().iter().find(|(key, _)| REFUSED.contains(&key.as_str())) {
            return Err(format!("{path}/{key}"));
        }
        if let Some(reference) = node.get("$ref") {
            let target = reference.as_str().and_then(|reference| self.root.resolve(&reference));
            if target.is_none() {
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
        if node.get("properties").is_none() || !closed {
            return Err(path.to_owned());
        }
        self.each(node, "properties", path)?;
        let mut required: Vec<Node> = node.get("required").map_or_else(Vec::new, |names| names.items().to_vec());
        let named: Vec<String> = required.iter().filter_map(Node::as_str).collect();
        if let Some(Node::Object(properties)) = node.get_mut("properties") {
            if let Some(unknown) = named.iter().find(|name| !properties.iter().any(|(key, _)| key == *name)) {
                // Strict modes take `required` for declared properties only.
                return Err(format!("{path}/required/{}", named.iter().position(|name| name == unknown).unwrap_or(0)));
            }
            for (name, property) in properties.iter_mut().filter(|(name, _)| !named.contains(name)) {
                make_nullable(property, self.root);
                required.push(Node::text(name));
            }
        }
        node.set("required", Node::Array(required));
        node.set("additionalProperties", Node::Scalar("false".to_owned()));
        Ok(())
    }

    fn each(&mut self, node: &mut Node, key: &str, path: &str) -> Result<(), String> {
        let Some(Node::Object(schemas)) = node.get_mut(key) else { return Ok(()) };
        for (name, schema) in schemas {
            let mut path = format!("{path}/{key}");
            pointer::push(&mut path, name);
            self.schema(schema, &path)?;
        }
        Ok(())
    }

    fn drop_unknown(&mut self, node: &mut Node, path: &str) {
        let known = node.get("format").and_then(Node::as_str).is_none_or(|format| FORMATS.contains(&format.as_str()));
        // A closed copy has every property always, so how many there must be at least is for the full schema to say.
        let drops = [("format", !known || !has_type(node, "string")), ("default", true), ("minProperties", true)];
        for (key, drop) in drops {
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

/// The same schema, or null. One that allows null already is left alone.
fn make_nullable(node: &mut Node, root: &Node) {
    if nulls::allows_null(node, root) {
        return;
    }
    if node.get("$ref").is_some() {
        // Nothing may stand beside a reference, so what describes it moves out of the branch.
        let mut outer = Node::Object(Vec::new());
        for key in ["title", "description"] {
            if let Some(note) = node.remove(key) {
                outer.set(key, note);
            }
        }
        let inner = std::mem::replace(node, Node::null());
        outer.set("anyOf", Node::Array(vec![inner, null_schema()]));
        *node = outer;
        return;
    }
    if let Some(Node::Array(branches)) = node.get_mut("anyOf")
        && !branches.iter().any(|branch| nulls::allows_null(branch, root))
    {
        branches.push(null_schema());
    }
    match node.get_mut("type") {
        Some(Node::Array(types)) if !types.iter().any(|ty| ty.is("\"null\"")) => types.push(Node::text("null")),
        Some(ty @ Node::Scalar(_)) => {
            let name = std::mem::replace(ty, Node::null());
            *ty = Node::Array(vec![name, Node::text("null")]);
        }
        _ => {}
    }
    if let Some(value) = node.remove("const") {
        node.set("enum", Node::Array(vec![value]));
    }
    if let Some(Node::Array(values)) = node.get_mut("enum")
        && !values.iter().any(Node::is_null)
    {
        values.push(Node::null());
    }
}

fn null_schema() -> Node {
    Node::Object(vec![("type".to_owned(), Node::text("null"))])
}
