//! Decides which schemas allow null, and removes the nulls that only a closed copy allows (rule T3 of `wire`).

use crate::wire::encode::strict::node::Node;

/// The maximum number of references and branches to follow; a longer chain is treated as circular.
const MAX_HOPS: usize = 32;

/// Whether null is valid under the schema. If this is undecidable, it returns `true`, so that the null is not removed.
pub(super) fn allows_null(schema: &Node, root: &Node) -> bool {
    allows(schema, root, MAX_HOPS)
}

fn allows(schema: &Node, root: &Node, hops: usize) -> bool {
    let Some(hops) = hops.checked_sub(1) else { return true };
    if schema.is("false") {
        return false;
    }
    let is_null_type = |ty: &Node| ty.is("\"null\"");
    let by_type = schema.get("type").is_none_or(|ty| is_null_type(ty) || ty.items().iter().any(is_null_type));
    let by_enum = schema.get("enum").is_none_or(|values| values.items().iter().any(Node::is_null));
    let by_const = schema.get("const").is_none_or(Node::is_null);
    let any = |key: &str| {
        schema.get(key).is_none_or(|branches| branches.items().iter().any(|branch| allows(branch, root, hops)))
    };
    let all =
        schema.get("allOf").is_none_or(|branches| branches.items().iter().all(|branch| allows(branch, root, hops)));
    by_type
        && by_enum
        && by_const
        && any("anyOf")
        && any("oneOf")
        && all
        && referenced(schema, root).is_none_or(|target| allows(target, root, hops))
}

fn referenced<'a>(schema: &Node, root: &'a Node) -> Option<&'a Node> {
    root.resolve(&schema.get("$ref")?.as_str()?)
}

/// Removes each null from `value` that belongs to an optional property and that the authoritative schema does not
/// allow. Returns whether it removed one.
pub(super) fn remove(value: &mut Node, schema: &Node, root: &Node) -> bool {
    let shapes = shapes(schema, root, MAX_HOPS);
    match value {
        Node::Object(entries) => {
            let before = entries.len();
            entries.retain(|(key, value)| !(value.is_null() && only_closed_copy_allows(key, &shapes, root)));
            let mut removed = entries.len() < before;
            for (key, value) in entries {
                for schema in shapes.iter().filter_map(|shape| shape.get("properties")?.get(key)) {
                    removed |= remove(value, schema, root);
                }
            }
            removed
        }
        Node::Array(items) => {
            let mut removed = false;
            for schema in shapes.iter().filter_map(|shape| shape.get("items")) {
                for item in &mut *items {
                    removed |= remove(item, schema, root);
                }
            }
            removed
        }
        Node::Scalar(_) => false,
    }
}

/// Whether at least one of the [`shapes`] of a schema declares the property, and each that does makes it optional and
/// not nullable.
fn only_closed_copy_allows(key: &str, shapes: &[&Node], root: &Node) -> bool {
    let mut known = shapes.iter().filter_map(|shape| Some((shape, shape.get("properties")?.get(key)?))).peekable();
    known.peek().is_some()
        && known.all(|(shape, property)| {
            let required = shape
                .get("required")
                .is_some_and(|names| names.items().iter().any(|name| name.as_str().as_deref() == Some(key)));
            !required && !allows_null(property, root)
        })
}

/// The schema itself, its branches, and the schemas that it refers to.
fn shapes<'a>(schema: &'a Node, root: &'a Node, hops: usize) -> Vec<&'a Node> {
    let mut found = vec![schema];
    let Some(hops) = hops.checked_sub(1) else { return found };
    if let Some(target) = referenced(schema, root) {
        found.extend(shapes(target, root, hops));
    }
    for branch in ["anyOf", "oneOf", "allOf"].iter().filter_map(|key| schema.get(key)).flat_map(Node::items) {
        // Circular branches would double the list at each level.
        if found.len() < 256 {
            found.extend(shapes(branch, root, hops));
        }
    }
    found
}
