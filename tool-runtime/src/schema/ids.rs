//! Required ids: white space around them is cut off, and what only looks like one is refused.

use std::borrow::Cow;

use serde_json::Value;

use crate::call::Violation;
use crate::json::Tree;
use crate::text::pointer::segment;
use crate::tool::Schema;

/// The required string arguments of a tool that are ids by their name: `id`, `*_id`, `*Id`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IdArguments(Box<[Box<str>]>);

impl IdArguments {
    /// Reads them off an input schema, once.
    #[must_use]
    pub fn of(schema: &Schema) -> Self {
        Self::of_value(&schema.to_value())
    }

    /// The same of a schema as a value.
    #[must_use]
    pub fn of_value(schema: &Value) -> Self {
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let is_string = |name: &str| {
            let property =
                schema.get("properties").and_then(|all| all.get(name)).map(|property| inlined(schema, property));
            match property.and_then(|property| property.get("type")) {
                Some(Value::String(ty)) => ty == "string",
                Some(Value::Array(types)) => types.iter().any(|ty| ty == "string"),
                _ => false,
            }
        };
        Self(required.filter(|name| is_id_name(name) && is_string(name)).map(Into::into).collect())
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|name| &**name)
    }

    /// Cuts white space off both ends of each, before the schema sees them.
    pub fn trim(&self, arguments: &mut Tree<'_>) {
        for name in self.names() {
            if let Some(Tree::String(id)) = arguments.get_mut(name) {
                trim(id);
            }
        }
    }

    /// Refuses those that are blank or stand for nothing.
    #[must_use]
    pub fn check(&self, arguments: &Tree<'_>) -> Vec<Violation> {
        self.names()
            .filter(|name| arguments.get(name).and_then(Tree::as_str).is_some_and(is_placeholder))
            .map(|name| {
                Violation::new(segment(name), "semantic", "a real id, not a blank or a placeholder")
                    .with_hint("take the id from a tool's result or ask the user; never make one up")
            })
            .collect()
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
    name == "id" || name.ends_with("_id") || (name.len() > 2 && name.ends_with("Id"))
}

/// One level of reference inside the document.
fn inlined<'s>(schema: &'s Value, property: &'s Value) -> &'s Value {
    let target = property.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix('#'));
    target.and_then(|pointer| schema.pointer(pointer)).unwrap_or(property)
}

/// A text that stands where an id should: blank, invisible, punctuation only, `null`, `<id>` and the like.
#[must_use]
pub fn is_placeholder(text: &str) -> bool {
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

/// Characters that show nothing: controls, zero-width and bidirectional marks, fillers.
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
