//! [`View`]: a schema whose references are followed and whose types are a set.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::catalog::lock::shape::{RULES, WHOLE};
use crate::text::pointer;

/// The longest chain of references that is followed from one place.
const MAX_CHAIN: usize = 32;

/// Keywords without an effect on the values that fit.
pub(super) const TEXTS: [&str; 6] = ["title", "description", "examples", "deprecated", "readOnly", "writeOnly"];

/// Keywords that set no rule at the place where they are written.
pub(super) const ELSEWHERE: [&str; 6] = ["$comment", "$defs", "$id", "$ref", "$schema", "definitions"];

pub(super) const STRING: u8 = 16;
pub(super) const NUMBER: u8 = 12;
pub(super) const ARRAY: u8 = 32;
pub(super) const OBJECT: u8 = 64;
const NULL_TYPE: u8 = 1;
const INTEGER: u8 = 4;
const ANY: u8 = 127;

/// A schema, and the schemas that it refers to.
pub(super) struct View<'a> {
    chain: Vec<&'a Map<String, Value>>,
    /// Whether no value fits.
    pub(super) is_never: bool,
    /// Whether keywords cannot be compared, because rules are in several places or a reference has no target.
    pub(super) is_opaque: bool,
    /// Whether the schema is a branch of an `anyOf` whose other branch is `null`.
    or_null: bool,
}

static NULL: Value = Value::Null;

impl<'a> View<'a> {
    pub(super) fn of(root: &'a Value, schema: &'a Value) -> Self {
        let mut view = Self { chain: Vec::new(), is_never: false, is_opaque: false, or_null: false };
        let mut schema = schema;
        while let Value::Object(members) = schema {
            view.chain.push(members);
            if let Some(inner) = without_null(members) {
                view.or_null = true;
                schema = inner;
                continue;
            }
            match members.get("$ref") {
                None => return view.checked(),
                Some(reference) => match resolve(root, reference).filter(|_| view.chain.len() < MAX_CHAIN) {
                    // Rules next to a reference apply together with the rules of its target. This chain cannot
                    // express that.
                    Some(target) if !has_rules(members) => schema = target,
                    _ => {
                        view.is_opaque = true;
                        return view;
                    }
                },
            }
        }
        view.is_never = *schema == Value::Bool(false);
        view.is_opaque = !schema.is_boolean();
        view
    }

    fn checked(mut self) -> Self {
        // A type that JSON Schema does not define, or a malformed keyword, cannot be compared.
        let is_wrong = |value: &Value| match value {
            Value::String(name) => bits(name) == 0,
            Value::Array(names) => names.iter().any(|name| name.as_str().is_none_or(|name| bits(name) == 0)),
            _ => true,
        };
        let lists = ["enum", "required", "anyOf", "oneOf", "allOf"];
        self.is_opaque = self.get("type").is_some_and(is_wrong)
            || lists.iter().any(|key| self.get(key).is_some_and(|value| !value.is_array()))
            || self.get("properties").is_some_and(|value| !value.is_object());
        self
    }

    /// Returns the value of a keyword from the first schema of the chain that has it.
    pub(super) fn get(&self, keyword: &str) -> Option<&'a Value> {
        // The chain continues inside an `anyOf` with `null`, so that `anyOf` is not a separate rule.
        let is_followed = |members: &Map<String, Value>| keyword == "anyOf" && without_null(members).is_some();
        self.chain.iter().filter(|members| !is_followed(members)).find_map(|members| members.get(keyword))
    }

    pub(super) fn keywords(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.chain.iter().flat_map(|members| members.keys().map(String::as_str))
    }

    /// Returns the keywords that decide which values fit, each once.
    pub(super) fn rules(&self) -> BTreeSet<&'a str> {
        let rules = self.keywords().filter(|key| RULES.contains(key) || WHOLE.contains(key));
        rules.filter(|key| *key != "default").collect()
    }

    /// Whether both schemas have a `null` branch, or neither has.
    pub(super) const fn has_null_of(&self, other: &Self) -> bool {
        self.or_null == other.or_null
    }

    /// Returns the alternatives, if they are the only rule.
    pub(super) fn alternatives(&self) -> Option<&'a [Value]> {
        let is_only = !self.or_null && self.rules().iter().eq(["anyOf"].iter());
        self.get("anyOf").filter(|_| is_only)?.as_array().map(Vec::as_slice)
    }

    /// Returns the types of values that fit, as a set of bits.
    pub(super) fn types(&self) -> u8 {
        let types = match self.constants() {
            Some(values) if self.get("type").is_none() => {
                values.iter().fold(0, |all, value| all | bits(type_of(value)))
            }
            _ => self.declared(),
        };
        if self.or_null { types | NULL_TYPE } else { types }
    }

    /// Returns the types that `type` names; all types without it.
    fn declared(&self) -> u8 {
        match self.get("type") {
            Some(Value::String(name)) => bits(name),
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).fold(0, |all, name| all | bits(name)),
            _ => ANY,
        }
    }

    pub(super) fn is_integer(&self) -> bool {
        self.types() & NUMBER == INTEGER
    }

    /// Returns the values of `enum` or `const` that `type` allows.
    pub(super) fn constants(&self) -> Option<Vec<&'a Value>> {
        let mut values: Vec<_> = match (self.get("enum"), self.get("const")) {
            (Some(Value::Array(values)), None) => values.iter().collect(),
            (_, Some(value)) => vec![value],
            _ => return None,
        };
        let declared = self.declared();
        values.retain(|value| declared & bits(type_of(value)) != 0);
        if self.or_null {
            values.push(&NULL);
        }
        Some(values)
    }

    /// Returns the types as text, such as `string, null`.
    pub(super) fn type_text(&self) -> String {
        let types = self.types();
        if types == ANY {
            return "any".to_owned();
        }
        let names = ["boolean", "number", "integer", "string", "array", "object", "null"];
        let has = |name: &&&str| match **name {
            "integer" => types & NUMBER == INTEGER,
            name => types & bits(name) == bits(name),
        };
        names.iter().filter(has).copied().collect::<Vec<_>>().join(", ")
    }
}

/// Returns the schema that a reference inside the document leads to.
pub(super) fn resolve<'a>(root: &'a Value, reference: &Value) -> Option<&'a Value> {
    let path = pointer::percent_decode(reference.as_str()?.strip_prefix('#')?)?;
    // Only pointers are resolved. An anchor does not begin with a slash.
    (path.is_empty() || path.starts_with('/')).then(|| root.pointer(&path)).flatten()
}

/// Follows references that have no other keywords, and returns the last target.
pub(super) fn behind<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let mut found = schema;
    for _ in 0..MAX_CHAIN {
        match found.as_object().filter(|members| members.len() == 1).and_then(|members| members.get("$ref")) {
            Some(reference) => match resolve(root, reference) {
                Some(target) => found = target,
                None => break,
            },
            None => break,
        }
    }
    found
}

/// Returns the branch of an `anyOf` whose only other branch is `null`, if the schema has no other rule.
fn without_null(members: &Map<String, Value>) -> Option<&Value> {
    let branches = members.get("anyOf")?.as_array()?;
    let is_null = |branch: &Value| {
        let only = branch.as_object().filter(|members| members.len() == 1);
        only.and_then(|members| members.get("type")).is_some_and(|name| name == "null")
    };
    let inner = match branches.as_slice() {
        [null, inner] | [inner, null] if is_null(null) && inner.is_object() => inner,
        _ => return None,
    };
    let is_rule = |key: &&String| RULES.contains(&key.as_str()) || WHOLE.contains(&key.as_str());
    members.keys().filter(is_rule).all(|key| key == "anyOf" || key == "default").then_some(inner)
}

/// Whether a schema with a reference adds rules.
fn has_rules(members: &Map<String, Value>) -> bool {
    members.keys().any(|key| key != "default" && (RULES.contains(&&**key) || WHOLE.contains(&&**key)))
}

fn bits(name: &str) -> u8 {
    match name {
        "null" => NULL_TYPE,
        "boolean" => 2,
        "integer" => INTEGER,
        "number" => NUMBER,
        "string" => STRING,
        "array" => ARRAY,
        "object" => OBJECT,
        _ => 0,
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() && number.as_f64().is_none_or(|number| number.fract() != 0.0) => {
            "number"
        }
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
