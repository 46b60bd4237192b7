//! The schema of an output after its allowlist.

use serde_json::{Map, Value, json};

use crate::redact::Projector;
use crate::redact::plan::{Member, Plan};
use crate::schema;

impl Projector {
    /// Returns the schema of the values that everyone may see, derived from the schema of the whole output. It has only
    /// members that the allowlist names.
    pub(crate) fn shown_schema(&self, output: &Value) -> Value {
        let mut shown = left(&self.allow, &schema::inlined(output));
        if let (Some(members), Some(dialect)) = (shown.as_object_mut(), output.get("$schema")) {
            members.insert("$schema".to_owned(), dialect.clone());
        }
        shown
    }
}

/// Returns the part of a schema that a plan (a compiled allowlist) allows. If the schema has alternatives, the result
/// allows everything that the writer could write there.
fn left(plan: &Plan, schema: &Value) -> Value {
    let Plan::Object { members, any, .. } = plan else { return schema.clone() };
    let is = |name: &str| names(schema, name);
    if let Some(items) = schema.get("items").filter(|items| is("array") && items.is_object()) {
        return described(schema, json!({"items": left(plan, items)}));
    }
    if !is("object") {
        return json!({});
    }
    let mut properties = Map::new();
    let mut required = Vec::new();
    for Member { name, plan, .. } in members {
        let Some(member) = schema.get("properties").and_then(|all| all.get(&**name)) else { return json!({}) };
        properties.insert(name.to_string(), left(plan, member));
        if requires(schema, name) && always(plan, member) {
            required.push(Value::from(&**name));
        }
    }
    let values = schema.get("additionalProperties").filter(|values| values.is_object());
    let additional = match (any, values) {
        (None, _) => Value::Bool(false),
        (Some(plan), Some(values)) => left(plan, values),
        (Some(_), None) => json!({}),
    };
    let mut object = json!({"properties": properties, "additionalProperties": additional});
    if !required.is_empty() {
        object["required"] = required.into();
    }
    described(schema, object)
}

/// Adds the type, the title and the description of a schema to the part that is left.
fn described(schema: &Value, mut left: Value) -> Value {
    for key in ["type", "title", "description"] {
        if let Some(value) = schema.get(key) {
            left[key] = value.clone();
        }
    }
    left
}

/// Whether the type of a schema is this one, or this one and `null`.
fn names(schema: &Value, ty: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(one)) => one == ty,
        Some(Value::Array(types)) => types.iter().all(|one| one == ty || one == "null") && types.contains(&ty.into()),
        _ => false,
    }
}

fn requires(schema: &Value, name: &str) -> bool {
    schema.get("required").and_then(Value::as_array).is_some_and(|names| names.iter().any(|one| one == name))
}

/// Whether a part of a value is always written. The writer omits an object without visible members, and a `null` in
/// place of an object.
fn always(plan: &Plan, schema: &Value) -> bool {
    let Plan::Object { members, .. } = plan else { return true };
    match schema.get("type").and_then(Value::as_str) {
        Some("array") => schema.get("items").is_some_and(|items| always(plan, items)),
        Some("object") => members.iter().any(|Member { name, plan, .. }| {
            let member = schema.get("properties").and_then(|all| all.get(&**name));
            requires(schema, name) && member.is_some_and(|member| always(plan, member))
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::validator::{JsonSchemaValidator, Validator as _};
    use crate::tool::Schema;

    fn shown(allow: &[&str], schema: &Value) -> (Projector, Value) {
        let allow: Vec<_> = allow.iter().map(|&path| path.to_owned()).collect();
        let projector = Projector::compile(&allow, &[], schema).unwrap();
        let shown = projector.shown_schema(schema);
        (projector, shown)
    }

    fn person() -> Value {
        json!({
            "type": "object",
            "required": ["id", "home", "notes"],
            "properties": {
                "id": {"type": "string"},
                "secret": {"type": "string"},
                "home": {
                    "type": "object",
                    "required": ["town", "street"],
                    "properties": {"town": {"type": "string"}, "street": {"type": "string"}},
                },
                "work": {
                    "type": ["object", "null"],
                    "required": ["town"],
                    "properties": {"town": {"type": "string"}},
                },
                "notes": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"text": {"type": "string"}, "by": {"type": "string"}}},
                },
            },
        })
    }

    #[test]
    fn what_is_left_out_is_not_in_the_schema() {
        let (_, schema) = shown(&["id", "home.town", "work.town", "notes.text"], &person());
        let text = schema.to_string();
        assert!(!text.contains("secret") && !text.contains("street") && !text.contains("\"by\""), "{text}");
        // `work` may be null and every note may lack a text, so the writer may leave both out.
        assert_eq!(schema["required"], json!(["home", "id"]));
        assert_eq!(schema["additionalProperties"], json!(false));
        assert_eq!(schema["properties"]["home"]["required"], json!(["town"]));
    }

    #[test]
    fn what_is_written_fits_the_schema() {
        let values = [
            json!({"id": "1", "secret": "s", "home": {"town": "a", "street": "b"}, "work": null, "notes": []}),
            json!({"id": "1", "home": {"town": "a", "street": "b"}, "notes": [{"by": "c"}, {"text": "t"}]}),
            json!({"id": "1", "home": {"town": "a", "street": "b"}, "work": {"town": "c"}, "notes": [{"by": "c"}]}),
        ];
        let lists: [&[&str]; 4] = [&["id"], &["home.town", "notes.text"], &["work.town"], &["notes.by", "home.street"]];
        for allow in lists {
            let (projector, schema) = shown(allow, &person());
            let compiled = JsonSchemaValidator.compile(&Schema::from_text(schema.to_string())).unwrap();
            for value in &values {
                let written = projector.project(value, 10_000).unwrap();
                let tree = crate::json::parse_value(written.shown.get(), &crate::json::Limits::UNBOUNDED).unwrap();
                assert!(compiled.check(&tree).is_ok(), "{allow:?}: {} is not {schema}", written.shown);
            }
        }
    }
}
