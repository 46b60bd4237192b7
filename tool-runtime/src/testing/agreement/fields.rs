//! Compares the names of members and variants that serde's derived parsers accept with the names in the schema.

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::Value;

use crate::json::Tree;
use crate::json::de::watch;
use crate::text::pointer;

/// The names that the parser of one value accepts: of its members, or of its variants.
pub(super) struct Names {
    pointer: String,
    known: &'static [&'static str],
    is_enum: bool,
}

impl Names {
    /// Whether these are the names of the members of the value at this pointer.
    pub(super) fn are_members_of(&self, pointer: &str) -> bool {
        !self.is_enum && self.pointer == pointer
    }
}

/// Runs a parser, and returns its result and the names that it passed to the deserialiser.
pub(super) fn watched<T>(tree: &Tree<'_>, parse: impl FnOnce() -> T) -> (T, Vec<Names>) {
    let stated = RefCell::new(Vec::new());
    let parsed = watch::during(&stated, parse);
    let mut named = Vec::new();
    locate(tree, &mut String::new(), &stated.into_inner(), &mut named);
    (parsed, named)
}

fn locate(tree: &Tree<'_>, at: &mut String, stated: &[watch::Stated], named: &mut Vec<Names>) {
    let here = std::ptr::from_ref(tree).addr();
    let of_here = stated.iter().filter(|one| one.value == here);
    named.extend(of_here.map(|one| Names { pointer: at.clone(), known: one.names, is_enum: one.is_enum }));
    let before = at.len();
    match tree {
        Tree::Object(members) => {
            for (name, member) in members {
                pointer::push(at, name);
                locate(member, at, stated, named);
                at.truncate(before);
            }
        }
        Tree::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                pointer::push(at, &index.to_string());
                locate(item, at, stated, named);
                at.truncate(before);
            }
        }
        _ => {}
    }
}

/// Compares the parser's names with the names in the schema at the same place, and adds differences to `found`.
pub(super) fn compare(stated: &[Names], schema: &Value, found: &mut BTreeSet<String>) {
    for names in stated {
        let Some(described) = super::mutants::described(schema, &names.pointer) else { continue };
        if names.is_enum {
            let Some(Value::Array(values)) = described.get("enum") else { continue };
            for name in names.known.iter().filter(|name| !values.iter().any(|value| value == **name)) {
                found.insert(format!("{}: the parser takes `{name}`, which the schema does not list", names.pointer));
            }
            continue;
        }
        let Some(Value::Object(properties)) = described.get("properties") else { continue };
        for name in names.known.iter().filter(|name| !properties.contains_key(**name)) {
            found.insert(format!(
                "{}: the parser takes the member `{name}`, which the schema does not have",
                names.pointer
            ));
        }
        for name in properties.keys().filter(|name| !names.known.contains(&name.as_str())) {
            found.insert(format!(
                "{}: the schema has the member `{name}`, which the parser does not know",
                names.pointer
            ));
        }
    }
}
