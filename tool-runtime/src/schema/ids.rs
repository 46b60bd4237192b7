//! Ids in arguments: white space around them is cut off, and text that only looks like one is refused.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::Value;

use crate::call::Violation;
use crate::json::Tree;
use crate::text::pointer;
use crate::tool::{Schema, ToolSpec};

/// The string arguments of a tool that are ids by their name, at any depth, alone or in an array: `id`, `*_id`,
/// `*_ids`, `*Id`, `*Ids`. Arguments that need evidence are ids whatever they are called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct IdArguments {
    /// Properties of the schema; `None` for a tool without a schema, where the name of an argument alone decides.
    names: Option<BTreeSet<Box<str>>>,
    evidence: Box<[Box<str>]>,
}

impl IdArguments {
    /// Reads them off a definition, once.
    pub(crate) fn of(spec: &ToolSpec) -> Self {
        let names = spec.no_schema.is_none().then(|| Self::of_schema(&spec.input_schema));
        Self { names, evidence: spec.evidence.keys().map(|name| name.as_str().into()).collect() }
    }

    /// The same of a schema as a value.
    #[cfg(test)]
    pub(crate) fn of_value(schema: &Value) -> Self {
        let mut names = BTreeSet::new();
        properties(schema, &mut names);
        Self { names: Some(names), evidence: Box::default() }
    }

    fn of_schema(schema: &Schema) -> BTreeSet<Box<str>> {
        let mut names = BTreeSet::new();
        // Most schemas have none, and reading one is most of the work of building a catalog.
        if ["id\"", "ids\"", "Id\"", "Ids\""].iter().any(|end| schema.as_str().contains(end)) {
            properties(&schema.to_value(), &mut names);
        }
        names
    }

    /// Cuts white space off both ends of each, before the schema sees them.
    pub(crate) fn trim(&self, arguments: &mut Tree<'_>) {
        if self.looks() {
            self.each_mut(arguments, true);
        }
    }

    /// Refuses those that are blank or stand for no value.
    #[must_use]
    pub(crate) fn check(&self, arguments: &Tree<'_>) -> Vec<Violation> {
        let mut violations = Vec::new();
        // Most calls have none, and pointers are made only for those that do.
        if self.looks() && self.any_placeholder(arguments, true) {
            self.each(arguments, true, &mut String::new(), &mut |pointer| {
                violations.push(
                    Violation::new(pointer, "semantic", "a real id, not a blank or a placeholder")
                        .with_hint("take the id from a tool's result or ask the user; never make one up"),
                );
            });
        }
        violations
    }

    fn looks(&self) -> bool {
        !self.evidence.is_empty() || self.names.as_ref().is_none_or(|names| !names.is_empty())
    }

    fn has(&self, name: &str, at_root: bool) -> bool {
        self.names.as_ref().map_or_else(|| is_id_name(name), |names| names.contains(name))
            || (at_root && self.evidence.iter().any(|one| **one == *name))
    }

    fn each_mut(&self, tree: &mut Tree<'_>, at_root: bool) {
        match tree {
            Tree::Array(items) => items.iter_mut().for_each(|item| self.each_mut(item, false)),
            Tree::Object(members) => {
                for (name, value) in members {
                    match value {
                        Tree::String(id) if self.has(name, at_root) => trim(id),
                        Tree::Array(items) if self.has(name, at_root) => {
                            for item in items {
                                match item {
                                    Tree::String(id) => trim(id),
                                    other => self.each_mut(other, false),
                                }
                            }
                        }
                        other => self.each_mut(other, false),
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

/// Collects the properties that are ids by their name, wherever in the document they are. One whose values are listed
/// is a choice, and one whose default is a placeholder has a meaning for it.
fn properties(schema: &Value, names: &mut BTreeSet<Box<str>>) {
    match schema {
        Value::Array(items) => items.iter().for_each(|item| properties(item, names)),
        Value::Object(members) => {
            for (name, member) in members.get("properties").and_then(Value::as_object).into_iter().flatten() {
                let default = member.get("default").and_then(Value::as_str);
                let listed = member.get("enum").is_some() || member.get("const").is_some();
                if is_id_name(name) && !listed && !default.is_some_and(is_placeholder) {
                    names.insert(name.as_str().into());
                }
            }
            members.values().for_each(|member| properties(member, names));
        }
        _ => {}
    }
}

fn trim(id: &mut Cow<'_, str>) {
    match id {
        Cow::Borrowed(text) => *text = text.trim(),
        Cow::Owned(text) => {
            let trimmed = text.trim();
            if trimmed.len() < text.len() {
                *text = trimmed.to_owned();
            }
        }
    }
}

fn is_id_name(name: &str) -> bool {
    let camel = |end: &str| name.len() > end.len() && name.ends_with(end);
    matches!(name, "id" | "ids") || name.ends_with("_id") || name.ends_with("_ids") || camel("Id") || camel("Ids")
}

/// The arguments that an input schema names.
pub(crate) fn argument_names(schema: &Schema) -> BTreeSet<String> {
    fn collect(root: &Value, schema: &Value, depth: usize, names: &mut BTreeSet<String>) {
        // Deeper than this an author who names an argument does not look either.
        if depth > 8 {
            return;
        }
        names.extend(
            schema.get("properties").and_then(Value::as_object).into_iter().flatten().map(|(name, _)| name.clone()),
        );
        let target = schema.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix('#'));
        let branches = ["allOf", "anyOf", "oneOf"].iter().filter_map(|key| schema.get(key)?.as_array()).flatten();
        for inner in target.and_then(|pointer| root.pointer(pointer)).into_iter().chain(branches) {
            collect(root, inner, depth + 1, names);
        }
    }
    let (root, mut names) = (schema.to_value(), BTreeSet::new());
    collect(&root, &root, 0, &mut names);
    names
}

/// Whether a text only takes the place of an id: blank, invisible, punctuation only, `null`, `<id>` and the like.
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

/// What people write between brackets to be filled in: `<id>`, `{{task_id}}`, `<the task id>`.
fn is_label(text: &str) -> bool {
    let inner = text.trim_matches(['<', '>', '{', '}', '[', ']', ' ']);
    inner.is_empty()
        || inner.chars().all(|character| character.is_alphabetic() || matches!(character, ' ' | '_' | '-' | '.'))
}

/// Invisible characters: controls, zero-width and bidirectional marks, fillers.
fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
                | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
                | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
        )
}
