//! Checks of single patterns, default values and whole schemas with the default validator.

use serde_json::{Value, json};

use crate::error::Problem;
use crate::json::Tree;
use crate::schema::positions::names_definition;
use crate::schema::validator::JsonSchemaValidator;

/// Whether a string is a regular expression that the validator accepts.
pub(crate) fn is_pattern(pattern: &str) -> bool {
    compiles(&json!({ "pattern": pattern })).is_ok()
}

/// Returns whether a value conforms to a schema; `false` if the schema does not compile.
pub(crate) fn is_valid(schema: &Value, value: &Value) -> bool {
    JsonSchemaValidator.compile_value(schema).is_ok_and(|compiled| compiled.check(&Tree::from_value(value)).is_ok())
}

/// Returns whether a part of a document accepts a value. `None` if the part is not an object, or cannot be compiled on
/// its own.
pub(crate) fn takes(document: &Value, part: &Value, value: &Value) -> Option<bool> {
    let mut schema = part.as_object()?.clone();
    // A part has the dialect of its document, and may refer to the document's definitions.
    for key in ["$schema", "$defs", "definitions"] {
        if let Some(shared) = document.get(key) {
            schema.entry(key).or_insert_with(|| shared.clone());
        }
    }
    let compiled = JsonSchemaValidator.compile_value(&Value::Object(schema)).ok()?;
    Some(compiled.check(&Tree::from_value(value)).is_ok())
}

/// Checks that a document fits its meta-schema and compiles. The caller has checked that its references stay inside the
/// document.
///
/// Compiling a schema is a large part of building a catalog, and its tool may never be called. So this function
/// compiles only a schema with rules that a meta-schema cannot check. Every other schema is compiled at the first call
/// of its tool.
pub(crate) fn compiles(schema: &Value) -> Result<(), Problem> {
    if is_plain(schema) {
        return JsonSchemaValidator::check_meta(schema);
    }
    JsonSchemaValidator::check_compiled(schema)
}

/// The known values of `$schema` at the root of a document. Their meta-schemas are built in.
const DIALECTS: [&str; 2] = ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"];

/// Keywords with rules that a meta-schema does not check. For example, the regex engine has to accept a pattern, and an
/// identifier changes the targets of references.
const JUDGED_BY_COMPILING: [&str; 13] = [
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveAnchor",
    "$recursiveRef",
    "$schema",
    "$vocabulary",
    "contentEncoding",
    "contentMediaType",
    "multipleOf",
    "pattern",
    "patternProperties",
];

/// Keywords whose numbers are counts. A meta-schema accepts any integer, even `1e30` and `2.0`, so a schema is compiled
/// if one of its counts is not a `u64`.
const COUNTS: [&str; 8] =
    ["maxContains", "maxItems", "maxLength", "maxProperties", "minContains", "minItems", "minLength", "minProperties"];

/// Whether a document that fits its meta-schema is certain to compile. Names of properties are treated as keywords,
/// too: a property that is called `pattern` only makes the result `false`, which costs a compilation.
fn is_plain(schema: &Value) -> bool {
    let Value::Object(members) = schema else { return false };
    members.iter().all(|(name, value)| match name.as_str() {
        "$schema" => value.as_str().is_some_and(|dialect| DIALECTS.contains(&dialect)),
        _ => is_plain_member(name, value),
    })
}

fn is_plain_member(name: &str, value: &Value) -> bool {
    if JUDGED_BY_COMPILING.contains(&name) || (COUNTS.contains(&name) && value.is_number() && !value.is_u64()) {
        return false;
    }
    if name == "$ref" {
        return value.as_str().is_some_and(names_definition);
    }
    match value {
        Value::Object(members) => members.iter().all(|(name, value)| is_plain_member(name, value)),
        // Items have no name. The empty name is not a keyword.
        Value::Array(items) => items.iter().all(|item| is_plain_member("", item)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYWORDS: &str = "\
        type enum const minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength \
        pattern format items prefixItems additionalItems minItems maxItems uniqueItems contains minContains \
        maxContains unevaluatedItems properties patternProperties additionalProperties unevaluatedProperties \
        propertyNames required minProperties maxProperties dependencies dependentRequired dependentSchemas \
        allOf anyOf oneOf not if then else $ref $defs definitions $comment title description default \
        examples deprecated readOnly writeOnly contentMediaType contentEncoding contentSchema $id $anchor \
        $dynamicRef $dynamicAnchor $vocabulary x-own id";

    fn full(schema: &Value) -> Result<(), Problem> {
        JsonSchemaValidator.compile_value(schema).map(|_| ())
    }

    /// Values of every kind, for every keyword.
    #[test]
    fn what_is_not_compiled_would_compile() {
        let values = [
            json!(null),
            json!(true),
            json!(0),
            json!(1),
            json!(-1),
            json!(2.0),
            json!(0.5),
            json!(1e30),
            json!(-0.0),
            json!(u64::MAX),
            json!(""),
            json!("string"),
            json!("array"),
            json!("("),
            json!("(?=a)"),
            json!("date"),
            json!("no-such-format"),
            json!("#"),
            json!("#/$defs/a"),
            json!("#/$defs/a%20b"),
            json!("regex"),
            json!([]),
            json!(["a"]),
            json!(["a", "a"]),
            json!([1, "a", null]),
            json!([{}]),
            json!([{"type": "string"}, true]),
            json!([["a"]]),
            json!({}),
            json!({"a": {}}),
            json!({"a": true}),
            json!({"a": 1}),
            json!({"a": ["b"]}),
            json!({"a": ["b", "b"]}),
            json!({"(": {}}),
            json!({"type": "object"}),
            json!({"type": "nothing"}),
            json!({"minLength": -1}),
            json!({"properties": {"pattern": {"type": "string"}}}),
            json!({"$ref": "#/$defs/a"}),
            json!({"a": {"$ref": "#"}}),
        ];
        let mut plain = 0;
        for dialect in [None, Some(DIALECTS[0]), Some(DIALECTS[1])] {
            for (keyword, value) in
                KEYWORDS.split(' ').flat_map(|keyword| values.iter().map(move |value| (keyword, value)))
            {
                for at_root in [true, false] {
                    let part = json!({keyword: value});
                    let mut schema = if at_root { part } else { json!({"type": "object", "properties": {"p": part}}) };
                    let members = schema.as_object_mut().unwrap();
                    members.entry("$defs").or_insert_with(|| json!({"a": {"type": "string"}, "a b": {}}));
                    if let Some(dialect) = dialect {
                        members.insert("$schema".to_owned(), dialect.into());
                    }
                    plain += usize::from(is_plain(&schema));
                    assert_eq!(compiles(&schema), full(&schema), "{schema}");
                }
            }
        }
        assert!(plain > 5_000, "{plain}");
    }
}
