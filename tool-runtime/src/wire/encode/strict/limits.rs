//! What providers limit about schemas: the size of strict requests, names of properties, circles.

use std::collections::BTreeSet;

use crate::wire::encode::strict::node::{Node, step};
use crate::wire::encode::strict::{Closed, Closing};

/// The most strict tools, optional properties and properties with a union type of one Anthropic request.
const MOST: [(usize, &str); 3] = [(20, "20 strict tools"), (24, "24 optional properties"), (16, "16 union types")];

/// The longest name of a property that Anthropic takes.
const MAX_NAME: usize = 64;

/// What the strict tools of one request have used of the provider's limits.
#[derive(Default)]
pub(crate) struct Room([usize; 3]);

impl Room {
    /// Counts a closed copy. The error is the limit that it would exceed.
    pub(crate) fn take(&mut self, closing: Closing, closed: &Closed) -> Result<(), &'static str> {
        if closing == Closing::Nullable {
            return Ok(());
        }
        let uses = [1, closed.optional, closed.unions];
        let sums = [0, 1, 2].map(|at| self.0[at] + uses[at]);
        if let Some((_, (_, limit))) = sums.iter().zip(MOST).find(|(sum, (most, _))| *sum > most) {
            return Err(limit);
        }
        self.0 = sums;
        Ok(())
    }
}

/// The pointer of the first property whose name is outside `[a-zA-Z0-9_.-]{1,64}`.
pub(crate) fn long_property(schema: &str) -> Option<String> {
    find_property(&Node::parse(schema)?, "")
}

fn find_property(node: &Node, path: &str) -> Option<String> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    for (key, value) in node.entries() {
        let at = step(path, key);
        match key.as_str() {
            "properties" | "$defs" | "definitions" | "patternProperties" | "dependentSchemas" => {
                for (name, schema) in value.entries() {
                    let at = step(&at, name);
                    let refused = name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(legal);
                    if key == "properties" && refused {
                        return Some(at);
                    }
                    if let Some(found) = find_property(schema, &at) {
                        return Some(found);
                    }
                }
            }
            // Values are not schemas.
            "default" | "enum" | "const" | "examples" => {}
            _ => {
                let items = value.items().iter().enumerate();
                let found = items.map(|(index, item)| (format!("{at}/{index}"), item)).chain([(at.clone(), value)]);
                if let Some(found) = found.into_iter().find_map(|(at, schema)| find_property(schema, &at)) {
                    return Some(found);
                }
            }
        }
    }
    None
}

/// Whether a property is one of several types.
pub(super) fn is_union(property: &Node) -> bool {
    property.get("anyOf").is_some() || property.get("type").is_some_and(|ty| !ty.items().is_empty())
}

/// Whether a reference leads back to itself. The provider refuses such schemas in strict mode.
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
