//! Checks that each constraint of an argument, such as `#[schemars(regex(..))]`, applies to the type of the argument.
//! schemars silently drops a constraint that does not apply, and the gate would then accept every value.

use serde_json::{Map, Value};

use crate::error::Problem;
use crate::schema::lower::has_type;
use crate::schema::problem::Pointer;

/// Returns a problem for each constraint that the generated schema of the arguments does not contain. A constraint is
/// the JSON name of an argument and the keys of the attribute: `regex`, or `inner.regex` for the items of a list.
pub(crate) fn dropped(arguments: &Value, constraints: &[(&str, &str)]) -> Vec<Problem> {
    let argument = |name: &str| arguments.get("properties")?.get(name)?.as_object();
    let mut problems = Vec::new();
    for (name, keys) in constraints {
        let mut pointer = Pointer::default();
        pointer.enter("properties");
        pointer.enter(name);
        let Some(mut schema) = argument(name) else { continue };
        for key in keys.split('.') {
            match schema.get("items").and_then(Value::as_object).filter(|_| key == "inner") {
                Some(items) => {
                    pointer.enter("items");
                    schema = items;
                }
                None if applies(key, schema) => {}
                None => {
                    let message = format!("`{key}` does not constrain {}", kind(schema));
                    problems.push(pointer.problem(message, remedy(key, schema)));
                    break;
                }
            }
        }
    }
    problems
}

/// Whether schemars writes this constraint into a schema of this type, and values of the type can violate it.
fn applies(key: &str, schema: &Map<String, Value>) -> bool {
    match key {
        "range" => has_type(schema, "number") || has_type(schema, "integer"),
        "length" => has_type(schema, "string") || has_type(schema, "array"),
        "inner" => false,
        _ => has_type(schema, "string"),
    }
}

fn kind(schema: &Map<String, Value>) -> &'static str {
    let kinds = [
        ("array", "a list"),
        ("object", "an object or a map"),
        ("string", "a text"),
        ("integer", "a number"),
        ("number", "a number"),
        ("boolean", "a `bool`"),
    ];
    kinds.into_iter().find(|(ty, _)| has_type(schema, ty)).map_or("a value of this type", |(_, words)| words)
}

fn remedy(key: &str, schema: &Map<String, Value>) -> String {
    let items = schema.get("items").and_then(Value::as_object);
    if items.is_some_and(|items| applies(key, items)) {
        let constraint = if matches!(key, "email" | "url" | "ip") { key.to_owned() } else { format!("{key}(..)") };
        return format!("write `inner({constraint})`");
    }
    let instead = match kind(schema) {
        "a text" => "write `length(..)` or `regex(..)`",
        "a number" => "write `range(..)`",
        "a list" => "write `length(..)`, or `inner(..)` with a constraint of its items",
        "an object or a map" => "write it on a field of the type, or check the value in `validate`",
        _ => "remove it, or check the value in `validate`",
    };
    instead.to_owned()
}
