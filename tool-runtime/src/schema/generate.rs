//! Generates the schema of a type with schemars. The size is measured before any reference is expanded.

use std::collections::HashMap;

use schemars::generate::{Contract, SchemaSettings};
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value};

use crate::error::Problem;
use crate::schema::constraints;
use crate::schema::lower::{Lowering, lower};
use crate::schema::positions::{MAX_DEPTH, subschemas};
use crate::schema::problem::Pointer;
use crate::schema::texts;
use crate::text::pointer;
use crate::tool::Schema;

/// The maximum number of schemas that one schema may consist of once its references are inlined. Inlining is
/// exponential in the nesting of types, so this is counted beforehand.
const MAX_SCHEMAS: u64 = 2_000;

/// The prefix of the references in generated schemas.
const DEFINITIONS: &str = "#/$defs/";

/// A function that generates the schema of a type. It is a trait object, so that the code around it is compiled once,
/// not for each tool.
pub(crate) type Generate<'f> = dyn Fn(&mut SchemaGenerator) -> schemars::Schema + 'f;

/// Compiles the schema of a value that a model writes into the supported subset. `constraints` are those of a tool's
/// arguments, see [`Declaration::constraints`](crate::component::declaration::Declaration::constraints).
///
/// # Errors
///
/// All places that cannot be written in the subset: recursion, enums with data, tuples, maps with keys that are not
/// text, values that can be anything, expansion past the limits, defaults that break their own schema. Also constraints
/// that the schema does not contain.
pub(crate) fn compile_input(schema: &Generate<'_>, constraints: &[(&str, &str)]) -> Result<Schema, Vec<Problem>> {
    let mut generated = generate(schema, &Contract::Deserialize)?;
    // The tool's definition has its own title and description, which these could contradict.
    for key in ["title", "description", "default", "examples"] {
        if let Value::Object(root) = &mut generated {
            root.remove(key);
        }
    }
    let mut problems = constraints::dropped(&generated, constraints);
    problems.extend(lower(&mut generated, Lowering::Arguments).err().unwrap_or_default());
    if !problems.is_empty() {
        return Err(problems);
    }
    texts::schema_text(&generated).map_err(|problem| vec![problem])
}

/// Generates a schema without `$schema`, definitions and references.
pub(crate) fn generate(schema: &Generate<'_>, contract: &Contract) -> Result<Value, Vec<Problem>> {
    let (referring, definitions) = run(schema, contract, false);
    if definitions.is_empty() {
        return Ok(referring);
    }
    Measure::of(&referring, &definitions)?;
    // schemars loses the range or length of a field whose type is a reference, so the second run inlines rather
    // than resolving the references of the first.
    let (inlined, _) = run(schema, contract, true);
    Ok(inlined)
}

fn run(schema: &Generate<'_>, contract: &Contract, inline: bool) -> (Value, Map<String, Value>) {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = inline;
        settings.contract = contract.clone();
    });
    let mut generator = settings.into_generator();
    let mut value = schema(&mut generator).to_value();
    let mut definitions = generator.take_definitions(true);
    if let Value::Object(root) = &mut value {
        root.remove("$schema");
        if let Some(Value::Object(own)) = root.remove("$defs") {
            definitions.extend(own);
        }
    }
    (value, definitions)
}

/// Counts the schemas of an expanded document without expanding it.
struct Measure<'a> {
    definitions: &'a Map<String, Value>,
    /// The number of schemas and the depth of each definition; `None` while it is being counted.
    known: HashMap<&'a str, Option<(u64, usize)>>,
    pointer: Pointer,
    problems: Vec<Problem>,
}

impl<'a> Measure<'a> {
    fn of(root: &'a Value, definitions: &'a Map<String, Value>) -> Result<(), Vec<Problem>> {
        let mut measure =
            Measure { definitions, known: HashMap::new(), pointer: Pointer::default(), problems: Vec::new() };
        let (schemas, depth) = measure.count(root);
        let mut problems = measure.problems;
        if schemas > MAX_SCHEMAS {
            problems.push(Problem::schema(
                "",
                format!("the types expand to {schemas} schemas, over the limit of {MAX_SCHEMAS}"),
                "nest types less, or pass ids instead of whole values",
            ));
        }
        if depth > MAX_DEPTH {
            problems.push(Problem::schema(
                "",
                format!("the types nest {depth} deep, over the limit of {MAX_DEPTH}"),
                "nest types less, or pass ids instead of whole values",
            ));
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    fn count(&mut self, schema: &'a Value) -> (u64, usize) {
        let Value::Object(members) = schema else { return (1, 1) };
        let (mut schemas, mut depth) = (1_u64, 1);
        if let Some(Value::String(reference)) = members.get("$ref") {
            (schemas, depth) = self.follow(reference);
        }
        for position in subschemas(members) {
            let mark = position.enter(&mut self.pointer);
            let (inner, below) = self.count(position.schema);
            self.pointer.leave(mark);
            schemas = schemas.saturating_add(inner);
            depth = depth.max(below.saturating_add(1));
        }
        (schemas, depth)
    }

    fn follow(&mut self, reference: &'a str) -> (u64, usize) {
        let definitions = self.definitions;
        let name = reference.strip_prefix(DEFINITIONS).unwrap_or(reference);
        let found = definitions.get_key_value(name).or_else(|| {
            definitions.iter().find(|(key, _)| pointer::percent_unescape(name).is_some_and(|name| name == **key))
        });
        let Some((key, definition)) = found else {
            // `#` is how schemars writes a type inside itself; any other reference is an author's own.
            self.problems.push(recursion(&self.pointer, reference));
            return (1, 1);
        };
        match self.known.get(key.as_str()) {
            Some(Some(known)) => *known,
            Some(None) => {
                self.problems.push(recursion(&self.pointer, reference));
                (1, 1)
            }
            None => {
                self.known.insert(key, None);
                let counted = self.count(definition);
                self.known.insert(key, Some(counted));
                counted
            }
        }
    }
}

fn recursion(pointer: &Pointer, reference: &str) -> Problem {
    let name = reference.rsplit('/').next().unwrap_or(reference);
    let message = if reference == "#" || reference.starts_with(DEFINITIONS) {
        format!("the type `{name}` contains itself")
    } else {
        format!("the reference `{name}` points out of the schema")
    };
    pointer.problem(message, "write a flat list whose items name their parent by id")
}

/// Compiles the schema of a model's typed answer. If the type is not an object, the schema is an object with the answer
/// as its only property `wrap`, and the returned flag is `true`.
///
/// # Errors
/// The same errors as [`compile_input`].
pub(crate) fn compile_answer<T: JsonSchema>(wrap: &str) -> Result<(Schema, bool), Vec<Problem>> {
    let (plain, _) = run(&T::json_schema, &Contract::Deserialize, true);
    if plain.get("type").and_then(Value::as_str) == Some("object") {
        return compile_input(&T::json_schema, &[]).map(|schema| (schema, false));
    }
    let wrapped = |generator: &mut SchemaGenerator| {
        let inner = generator.subschema_for::<T>();
        schemars::json_schema!({ "type": "object", "properties": { wrap: inner }, "required": [wrap] })
    };
    compile_input(&wrapped, &[]).map(|schema| (schema, true))
}
