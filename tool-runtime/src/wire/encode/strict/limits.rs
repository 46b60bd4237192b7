//! Providers' limits on schemas: the size of strict requests, the names of properties, and circular references.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::wire::encode::strict::node::{Node, step};
use crate::wire::encode::strict::{Closed, Closing};

/// The maximum numbers of strict tools, optional properties and union types in one Anthropic request.
const STRICT_LIMITS: [(usize, &str); 3] =
    [(20, "20 strict tools"), (24, "24 optional properties"), (16, "16 union types")];

/// The maximum number of bytes of a property's name for Anthropic.
const MAX_NAME: usize = 64;

/// The usage of the provider's limits by the strict tools of one request.
#[derive(Clone, Copy, Default)]
pub(crate) struct Room([usize; 3]);

impl Room {
    /// Adds a closed copy to the counts. The error is the limit that it would exceed.
    pub(crate) fn take(&mut self, closing: Closing, closed: &Closed) -> Result<(), &'static str> {
        if closing == Closing::Nullable {
            return Ok(());
        }
        let uses = [1, closed.optional, closed.unions];
        let sums = [0, 1, 2].map(|at| self.0[at] + uses[at]);
        if let Some((_, (_, limit))) = sums.iter().zip(STRICT_LIMITS).find(|(sum, (most, _))| *sum > most) {
            return Err(limit);
        }
        self.0 = sums;
        Ok(())
    }
}

/// The JSON pointer of the first property whose name is outside `[a-zA-Z0-9_.-]{1,64}`.
pub(crate) fn long_property(schema: &Value) -> Option<String> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    let refused = |name: &str| name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(legal);
    match schema {
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(at, item)| Some(format!("/{at}{}", long_property(item)?)))
        }
        // The pointer is built only after such a property was found, because most schemas have none.
        Value::Object(members) => members.iter().find_map(|(key, value)| {
            let below = match key.as_str() {
                "properties" | "$defs" | "definitions" | "patternProperties" | "dependentSchemas" => {
                    value.as_object()?.iter().find_map(|(name, schema)| {
                        let here = key == "properties" && refused(name);
                        let below = if here { String::new() } else { long_property(schema)? };
                        Some(step("", name) + below.as_str())
                    })?
                }
                // These keywords hold values, not schemas.
                "default" | "enum" | "const" | "examples" => return None,
                _ => long_property(value)?,
            };
            Some(step("", key) + below.as_str())
        }),
        _ => None,
    }
}

/// Whether a property's type is a union.
pub(super) fn is_union(property: &Node) -> bool {
    property.get("anyOf").is_some() || property.get("type").is_some_and(|ty| !ty.items().is_empty())
}

/// Whether a reference leads back to itself; the provider refuses such schemas in strict mode.
pub(super) fn is_circular(reference: &str, root: &Node) -> bool {
    let (mut seen, mut next) = (BTreeSet::new(), vec![reference.to_owned()]);
    while let Some(target) = next.pop().and_then(|reference| root.resolve(&reference)) {
        let mut found = Vec::new();
        references(target, &mut found);
        if found.iter().any(|found| found == reference) {
            return true;
        }
        next.extend(found.into_iter().filter(|found| seen.insert(found.clone())));
    }
    false
}

fn references(node: &Node, found: &mut Vec<String>) {
    found.extend(node.get("$ref").and_then(Node::as_str));
    let inner = node.entries().iter().filter(|(key, _)| !matches!(key.as_str(), "$defs" | "definitions"));
    inner.map(|(_, value)| value).chain(node.items()).for_each(|node| references(node, found));
}
