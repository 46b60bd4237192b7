//! Makes optional properties of a closed copy nullable (rule T1 of `wire`).

use crate::wire::encode::strict::node::Node;
use crate::wire::encode::strict::nulls;

/// Replaces a schema by one that also allows null. A schema that already allows null stays unchanged.
pub(super) fn make_nullable(node: &mut Node, root: &Node) {
    if nulls::allows_null(node, root) {
        return;
    }
    if node.get("$ref").is_some() {
        // A `$ref` must not have siblings, so the description moves to the outer schema.
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
