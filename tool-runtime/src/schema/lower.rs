//! Lowering: rewrites a generated schema into a subset of JSON Schema without loss, and reports parts that do not fit.

use serde_json::{Map, Value};

use crate::error::Problem;
use crate::schema::problem::Pointer;
use crate::schema::{defaults, engine, formats, merge};
use crate::text::sentence;

/// The use of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lowering {
    /// Arguments, which a model writes. Only the subset is allowed, objects refuse unknown members, and numbers get
    /// bounds.
    Arguments,
    /// A tool's output. It is rewritten in the same way, but may leave the subset.
    Output,
}

/// The keywords that a lowered schema of arguments may have.
const SUBSET: [&str; 26] = [
    "$comment",
    "additionalProperties",
    "default",
    "deprecated",
    "description",
    "enum",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "pattern",
    "properties",
    "required",
    "title",
    "type",
    "uniqueItems",
];

/// Lowers a schema in place.
pub(crate) fn lower(root: &mut Value, lowering: Lowering) -> Result<(), Vec<Problem>> {
    let mut walk = Walk { lowering, pointer: Pointer::default(), problems: Vec::new() };
    let object = matches!(root.get("type"), Some(ty) if ty == "object");
    if lowering == Lowering::Arguments && !object {
        walk.refuse("arguments are not an object", "write a struct with named fields");
    } else {
        walk.schema(root);
    }
    if walk.problems.is_empty() { Ok(()) } else { Err(walk.problems) }
}

struct Walk {
    lowering: Lowering,
    pointer: Pointer,
    problems: Vec<Problem>,
}

impl Walk {
    fn refuse(&mut self, message: impl Into<String>, remedy: impl Into<String>) {
        self.problems.push(self.pointer.problem(message, remedy));
    }

    fn schema(&mut self, schema: &mut Value) {
        match schema {
            Value::Object(members) => self.object(members),
            Value::Bool(_) if self.lowering == Lowering::Output => {}
            _ => self.untyped(),
        }
    }

    fn object(&mut self, schema: &mut Map<String, Value>) {
        let nullable = merge::hoist(schema, self.lowering == Lowering::Arguments);
        merge::fold_constants(schema);
        let private = formats::drop_private(schema);
        if self.lowering == Lowering::Arguments {
            // `const` is outside the subset; an `enum` of one value means the same.
            if let Some(constant) = schema.remove("const") {
                schema.insert("enum".to_owned(), Value::Array(vec![constant]));
            }
            if let Some(format) = private {
                formats::write_bounds(schema, &format);
                formats::write_pattern(schema, &format);
            }
            self.check(schema);
        } else if schema.contains_key("$ref") || schema.contains_key("$dynamicRef") {
            self.refuse("a reference is left over", "let the type's schema be inlined");
        }
        self.children(schema);
        if nullable {
            merge::add_null(schema);
        }
        if self.lowering == Lowering::Arguments {
            // Checked after `null` was added, because the default may be `null`.
            self.check_default(schema);
        }
    }

    fn children(&mut self, schema: &mut Map<String, Value>) {
        for (keyword, value) in schema.iter_mut() {
            let mark = self.pointer.enter(keyword);
            match (keyword.as_str(), value) {
                ("properties" | "patternProperties" | "dependentSchemas", Value::Object(named)) => {
                    for (name, inner) in named {
                        let mark = self.pointer.enter(name);
                        self.schema(inner);
                        self.pointer.leave(mark);
                    }
                }
                ("oneOf" | "anyOf" | "allOf" | "prefixItems" | "items", Value::Array(branches)) => {
                    for (at, inner) in branches.iter_mut().enumerate() {
                        let mark = self.pointer.enter(&at.to_string());
                        self.schema(inner);
                        self.pointer.leave(mark);
                    }
                }
                ("items" | "additionalProperties" | "contains" | "unevaluatedProperties", inner @ Value::Object(_)) => {
                    self.schema(inner);
                }
                _ => {}
            }
            self.pointer.leave(mark);
        }
    }

    /// Checks one schema of arguments without its children. An object is made to refuse unknown members.
    fn check(&mut self, schema: &mut Map<String, Value>) {
        let mut known = true;
        for keyword in schema.keys().filter(|keyword| !SUBSET.contains(&keyword.as_str())) {
            let (message, remedy) = refusal(keyword, schema.get(keyword));
            self.problems.push(self.pointer.problem(message, remedy));
            known = false;
        }
        // A refused keyword often explains the other mistakes, so one report is enough.
        if !known {
            return;
        }
        if !schema.contains_key("type") {
            let types = schema.get("enum").and_then(Value::as_array).map(|values| {
                let mut types: Vec<_> = values.iter().filter_map(merge::scalar_type).collect();
                types.sort_unstable();
                types.dedup();
                types
            });
            match types.as_deref() {
                Some([ty]) => {
                    schema.insert("type".to_owned(), (*ty).into());
                }
                _ if schema.contains_key("properties") => {
                    schema.insert("type".to_owned(), "object".into());
                }
                _ => return self.untyped(),
            }
        }
        if has_type(schema, "object") {
            self.close(schema);
        }
        if has_type(schema, "array") {
            match schema.get("items") {
                // An array that is always empty needs no schema for its items.
                None if schema.get("maxItems") == Some(&0.into()) => {}
                None => self.untyped(),
                Some(Value::Bool(_)) => self.untyped_in("items"),
                Some(_) => {}
            }
        }
        if let Some(Value::String(pattern)) = schema.get("pattern")
            && !engine::is_pattern(pattern)
        {
            let message = format!("the pattern `{}` is not a regular expression", sentence(pattern, 100));
            self.refuse(message, "write one in the syntax of ECMA 262");
        }
        let reversed = |low: &str, high: &str| {
            let (Some(low), Some(high)) = (schema.get(low), schema.get(high).and_then(Value::as_number)) else {
                return false;
            };
            formats::compare(low, high).is_some_and(std::cmp::Ordering::is_gt)
        };
        let pairs = [("minimum", "maximum"), ("minLength", "maxLength"), ("minItems", "maxItems")].into_iter();
        if let Some((low, high)) = pairs.into_iter().find(|(low, high)| reversed(low, high)) {
            self.refuse(format!("`{low}` is above `{high}`, so no value fits"), "widen the range or the type");
        }
    }

    fn close(&mut self, schema: &mut Map<String, Value>) {
        let named = schema.contains_key("properties");
        match schema.get("additionalProperties") {
            None | Some(Value::Bool(false)) => {
                schema.insert("additionalProperties".to_owned(), Value::Bool(false));
                schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
                schema.entry("required").or_insert_with(|| Value::Array(Vec::new()));
            }
            Some(Value::Object(_)) if !named => {}
            Some(Value::Object(_)) => {
                self.refuse("the object has named fields and a map next to them", "put the map into its own field");
            }
            Some(_) => self.untyped_in("additionalProperties"),
        }
    }

    fn check_default(&mut self, schema: &Map<String, Value>) {
        let Some(default) = schema.get("default") else { return };
        if !defaults::fits(schema, default) {
            let mark = self.pointer.enter("default");
            self.refuse("the default breaks its own schema", "choose a default that the rules of the argument allow");
            self.pointer.leave(mark);
        }
    }

    fn untyped_in(&mut self, keyword: &str) {
        let mark = self.pointer.enter(keyword);
        self.untyped();
        self.pointer.leave(mark);
    }

    fn untyped(&mut self) {
        self.refuse(
            "the schema says nothing about the value",
            "write a type with its own schema instead of a JSON value, or pass the JSON as text in a `String`",
        );
    }
}

/// Whether a schema allows a type by name.
pub(crate) fn has_type(schema: &Map<String, Value>, ty: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(only)) => only == ty,
        Some(Value::Array(types)) => types.iter().any(|one| one == ty),
        _ => false,
    }
}

/// Returns the message and the correction for a keyword outside of the subset.
fn refusal(keyword: &str, value: Option<&Value>) -> (String, &'static str) {
    match keyword {
        "oneOf" | "anyOf" => (
            format!("an enum with data (`{keyword}`) has no schema that every provider accepts"),
            "write a struct with a unit enum for the kind and optional fields for the data",
        ),
        "prefixItems" | "additionalItems" => {
            ("a tuple has no schema that every provider accepts".to_owned(), "write a struct with named fields")
        }
        "patternProperties" => {
            let digits = value
                .and_then(Value::as_object)
                .is_some_and(|patterns| patterns.keys().all(|pattern| pattern.contains(r"\d+")));
            let kind = if digits { "integer keys" } else { "patterned keys" };
            (
                format!("a map with {kind} (`patternProperties`) has no schema that every provider accepts"),
                "write a list of structs with a key and a value, or a map with `String` keys",
            )
        }
        "not" => ("`not` is outside the subset".to_owned(), "write a range instead of a non-zero or excluding type"),
        "$ref" | "$dynamicRef" => ("a reference is left over".to_owned(), "let the type's schema be inlined"),
        "allOf" | "unevaluatedProperties" => (
            format!("`{keyword}` is outside the subset"),
            "write the fields out instead of flattening a type into another",
        ),
        _ => (format!("`{keyword}` is outside the subset"), "remove it from the type's schema attributes"),
    }
}
