//! Ids in arguments: white space around them is cut off, and placeholders are refused.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::Value;

use crate::call::Violation;
use crate::json::Tree;
use crate::text::{is_invisible, pointer};
use crate::tool::{Schema, ToolSpec};

/// Advice for an id that is blank or a placeholder.
pub(crate) const TAKE_OR_ASK: &str = "take the id from a tool's result or ask the user; never make one up";

/// Advice for an id that is blank or a placeholder, if the model can call a tool that lists the ids.
pub(crate) const TAKE: &str = "take the id from a tool's result; never make one up";

/// The string arguments of a tool that are ids by their name, at any depth, alone or in an array: `id`, `*_id`,
/// `*_ids`, `*Id`, `*Ids`, `*ID`, `*IDs`. Arguments that need evidence are ids, regardless of their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct IdArguments {
    /// Properties of the schema, sorted; `None` for a tool without a schema, where only the name of an argument
    /// decides.
    names: Option<Box<[Box<str>]>>,
    evidence: Box<[Box<str>]>,
}

impl IdArguments {
    /// Reads the id arguments from a definition. `read` runs only if the schema may have any.
    pub(crate) fn of<'s>(spec: &ToolSpec, read: impl FnOnce() -> &'s Tree<'s>) -> Self {
        let names = spec.no_schema.is_none().then(|| Self::of_schema(&spec.input_schema, read));
        Self { names, evidence: spec.evidence.keys().map(|name| name.as_str().into()).collect() }
    }

    /// Like [`of`](Self::of), for a schema as a value.
    #[cfg(test)]
    pub(crate) fn of_value(schema: &Value) -> Self {
        let mut names = BTreeSet::new();
        properties(&Tree::from_value(schema), &mut names);
        Self { names: Some(names.into_iter().collect()), evidence: Box::default() }
    }

    fn of_schema<'s>(schema: &Schema, read: impl FnOnce() -> &'s Tree<'s>) -> Box<[Box<str>]> {
        let mut names = BTreeSet::new();
        if ["id\"", "ids\"", "Id\"", "Ids\"", "ID\"", "IDs\""].iter().any(|end| schema.as_str().contains(end)) {
            properties(read(), &mut names);
        }
        names.into_iter().collect()
    }

    /// Removes outer white space from each id, before validation. Returns whether an id changed.
    pub(crate) fn trim(&self, arguments: &mut Tree<'_>) -> bool {
        let mut trimmed = false;
        if self.looks() {
            self.each_mut(arguments, true, &mut |id| trimmed |= trim(id));
        }
        trimmed
    }

    /// Reports ids that are blank or placeholders.
    pub(crate) fn check(&self, arguments: &Tree<'_>, violations: &mut Vec<Violation>) {
        // Most calls have no placeholder, so pointers are built only if there is one.
        if self.looks() && self.any_placeholder(arguments, true) {
            self.each(arguments, true, &mut String::new(), &mut |pointer| {
                violations.push(
                    Violation::new(pointer, "semantic", "a real id, not a blank or a placeholder")
                        .with_hint(TAKE_OR_ASK),
                );
            });
        }
    }

    fn looks(&self) -> bool {
        !self.evidence.is_empty() || self.names.as_ref().is_none_or(|names| !names.is_empty())
    }

    fn has(&self, name: &str, at_root: bool) -> bool {
        self.names
            .as_ref()
            .map_or_else(|| is_id_name(name), |names| names.binary_search_by(|known| (**known).cmp(name)).is_ok())
            || (at_root && self.evidence.iter().any(|one| **one == *name))
    }

    fn each_mut(&self, tree: &mut Tree<'_>, at_root: bool, change: &mut impl FnMut(&mut Cow<'_, str>)) {
        match tree {
            Tree::Array(items) => items.iter_mut().for_each(|item| self.each_mut(item, false, change)),
            Tree::Object(members) => {
                for (name, value) in members {
                    match value {
                        Tree::String(id) if self.has(name, at_root) => change(id),
                        Tree::Array(items) if self.has(name, at_root) => {
                            for item in items {
                                match item {
                                    Tree::String(id) => change(id),
                                    other => self.each_mut(other, false, change),
                                }
                            }
                        }
                        other => self.each_mut(other, false, change),
                    }
                }
            }
            _ => {}
        }
    }

    fn any_placeholder(&self, tree: &Tree<'_>, at_root: bool) -> bool {
        match tree {
            Tree::Array(items) => items.iter().any(|item| self.any_placeholder(item, false)),
            Tree::Object(members) => members.iter().any(|(name, value)| match value {
                Tree::String(id) => self.has(name, at_root) && is_placeholder(id),
                Tree::Array(items) => {
                    let mut ids = items.iter().filter_map(Tree::as_str);
                    (self.has(name, at_root) && ids.any(is_placeholder)) || self.any_placeholder(value, false)
                }
                other => self.any_placeholder(other, false),
            }),
            _ => false,
        }
    }

    /// Calls `found` with the pointer of each id that is a placeholder.
    fn each(&self, tree: &Tree<'_>, at_root: bool, pointer: &mut String, found: &mut dyn FnMut(&str)) {
        let mut inside = |segment: &str, value: &Tree<'_>, is_id: bool, pointer: &mut String| {
            let mark = pointer.len();
            pointer::push(pointer, segment);
            match value {
                Tree::String(id) if is_id && is_placeholder(id) => found(pointer),
                Tree::Array(items) if is_id => {
                    for (at, item) in items.iter().enumerate() {
                        if item.as_str().is_some_and(is_placeholder) {
                            let mark = pointer.len();
                            pointer::push(pointer, &at.to_string());
                            found(pointer);
                            pointer.truncate(mark);
                        }
                    }
                    self.each(value, false, pointer, found);
                }
                other => self.each(other, false, pointer, found),
            }
            pointer.truncate(mark);
        };
        match tree {
            Tree::Array(items) => {
                for (at, item) in items.iter().enumerate().filter(|(_, item)| !is_scalar(item)) {
                    inside(&at.to_string(), item, false, pointer);
                }
            }
            Tree::Object(members) => {
                for (name, value) in members {
                    let is_id = self.has(name, at_root);
                    if is_id || !is_scalar(value) {
                        inside(name, value, is_id, pointer);
                    }
                }
            }
            _ => {}
        }
    }
}

const fn is_scalar(tree: &Tree<'_>) -> bool {
    !matches!(tree, Tree::Array(_) | Tree::Object(_))
}

/// Collects the properties that are ids by their names, anywhere in the document. A property with listed values is a
/// choice and not collected. Neither is a property whose default is a placeholder, which then has a meaning.
fn properties(schema: &Tree<'_>, names: &mut BTreeSet<Box<str>>) {
    match schema {
        Tree::Array(items) => items.iter().for_each(|item| properties(item, names)),
        Tree::Object(members) => {
            for (name, member) in schema.get("properties").and_then(Tree::as_object).into_iter().flatten() {
                let default = member.get("default").and_then(Tree::as_str);
                let listed = member.get("enum").is_some() || member.get("const").is_some();
                if is_id_name(name) && !listed && !default.is_some_and(is_placeholder) {
                    names.insert((**name).into());
                }
            }
            members.iter().for_each(|(_, member)| properties(member, names));
        }
        _ => {}
    }
}

fn trim(id: &mut Cow<'_, str>) -> bool {
    let before = id.len();
    match id {
        Cow::Borrowed(text) => *text = text.trim(),
        Cow::Owned(text) => {
            let trimmed = text.trim();
            if trimmed.len() < text.len() {
                *text = trimmed.to_owned();
            }
        }
    }
    id.len() < before
}

fn is_id_name(name: &str) -> bool {
    let camel = |end: &str| name.len() > end.len() && name.ends_with(end);
    matches!(name, "id" | "ids")
        || name.ends_with("_id")
        || name.ends_with("_ids")
        || ["Id", "Ids"].into_iter().any(camel)
        || ["ID", "IDs"].into_iter().any(|end| name.ends_with(end))
}

/// Returns the names that an input schema has at a place: the arguments, or the members of one of them. Empty if the
/// schema names none.
pub(crate) fn names_at(schema: &Schema, path: &[String]) -> BTreeSet<String> {
    fn collect<'s>(root: &'s Value, schema: &'s Value, depth: usize, found: &mut Vec<(&'s String, &'s Value)>) {
        // Authors do not name arguments deeper than this.
        if depth > 8 {
            return;
        }
        found.extend(schema.get("properties").and_then(Value::as_object).into_iter().flatten());
        let target = schema.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix('#'));
        let branches = ["allOf", "anyOf", "oneOf"].iter().filter_map(|key| schema.get(key)?.as_array()).flatten();
        for inner in target.and_then(|pointer| root.pointer(pointer)).into_iter().chain(branches) {
            collect(root, inner, depth + 1, found);
        }
    }
    let root = schema.to_value();
    let mut found = Vec::new();
    collect(&root, &root, 0, &mut found);
    for segment in path {
        let below: Vec<_> = found.drain(..).filter(|(name, _)| *name == segment).map(|(_, schema)| schema).collect();
        below.into_iter().for_each(|schema| collect(&root, schema, 0, &mut found));
    }
    found.into_iter().map(|(name, _)| name.clone()).collect()
}

/// Whether some value of an argument can have evidence: a text, a whole number, or an item of a list.
pub(crate) fn can_have_evidence(schema: &Schema, name: &str) -> bool {
    fn can(root: &Value, schema: &Value, depth: usize, is_item: bool) -> bool {
        let target = schema.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix('#'));
        if let Some(target) = target.and_then(|pointer| root.pointer(pointer)).filter(|_| depth < 8) {
            return can(root, target, depth + 1, is_item);
        }
        let branches = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(key)?.as_array());
        if let Some(branches) = branches.filter(|_| depth < 8) {
            return branches.iter().any(|branch| can(root, branch, depth + 1, is_item));
        }
        let can_be = |ty: &Value| match ty.as_str() {
            Some("array") => !is_item && schema.get("items").is_none_or(|items| can(root, items, depth + 1, true)),
            ty => !matches!(ty, Some("object" | "boolean" | "null")),
        };
        match schema.get("type") {
            Some(Value::Array(types)) => types.iter().any(can_be),
            ty => ty.is_none_or(can_be),
        }
    }
    let root = schema.to_value();
    let argument = root.get("properties").and_then(|properties| properties.get(name));
    argument.is_none_or(|argument| can(&root, argument, 0, false))
}

/// Whether the arguments of every call have a value at a place.
pub(crate) enum Presence {
    /// Every call has a value.
    Always,
    /// A call may leave the value out, or set it to `null`.
    Optional,
    /// The schema has no such place. Contains the position of the unknown segment, and the known names.
    Unknown(usize, BTreeSet<String>),
}

/// Returns whether the arguments of every call have a value at this place.
pub(crate) fn presence(schema: &Schema, path: &[String]) -> Presence {
    for (at, segment) in path.iter().enumerate() {
        let known = names_at(schema, path.get(..at).unwrap_or_default());
        if !known.contains(segment) {
            return Presence::Unknown(at, known);
        }
    }
    let root = schema.to_value();
    let mut object = &root;
    for (at, segment) in path.iter().enumerate() {
        let is_required = |object: &Value| {
            let required = object.get("required").and_then(Value::as_array);
            required.is_some_and(|required| required.iter().any(|name| name == segment))
        };
        let Some(below) = object.get("properties").and_then(|properties| properties.get(segment)) else {
            // Only a branch of the schema names it.
            return Presence::Optional;
        };
        // The default of an argument is filled in; the default of a member of an argument is not.
        let has_default = at == 0 && below.get("default").is_some_and(|default| !default.is_null());
        let below = match below.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix('#')) {
            Some(pointer) => root.pointer(pointer).unwrap_or(below),
            None => below,
        };
        if !(is_required(object) || has_default) || may_be_null(below) {
            return Presence::Optional;
        }
        object = below;
    }
    Presence::Always
}

/// Whether a schema allows `null`. A schema without `type`, `enum` and `const` does.
fn may_be_null(schema: &Value) -> bool {
    match schema.get("type") {
        Some(Value::String(one)) => one == "null",
        Some(Value::Array(several)) => several.iter().any(|one| one == "null"),
        _ => match (schema.get("enum"), schema.get("const")) {
            (Some(Value::Array(values)), _) => values.iter().any(Value::is_null),
            (_, Some(value)) => value.is_null(),
            _ => true,
        },
    }
}

/// Whether a string is a placeholder for an id: blank, invisible, punctuation only, `null`, `<id>` and the like.
#[must_use]
pub(crate) fn is_placeholder(text: &str) -> bool {
    let text = text.trim_matches(|character: char| character.is_whitespace() || is_invisible(character));
    let blank = text.chars().all(|character| {
        character.is_whitespace()
            || is_invisible(character)
            || matches!(character, ':' | '-' | '.' | '_' | ',' | ';' | '"' | '\'' | '`' | '?' | '–' | '—' | '…')
    });
    let word = ["null", "none", "nil", "undefined", "nan", "n/a", "todo", "tbd"];
    let bracketed = [("<", ">"), ("{", "}"), ("[", "]"), ("${", "}")];
    blank
        || word.iter().any(|word| text.eq_ignore_ascii_case(word))
        || bracketed.iter().any(|(open, close)| {
            text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close)).is_some_and(is_label)
        })
}

/// Whether a string is a label in brackets, to be filled in: `<id>`, `{{task_id}}`, `<the task id>`.
fn is_label(text: &str) -> bool {
    let inner = text.trim_matches(['<', '>', '{', '}', '[', ']', ' ']);
    inner.is_empty()
        || inner.chars().all(|character| character.is_alphabetic() || matches!(character, ' ' | '_' | '-' | '.'))
}
