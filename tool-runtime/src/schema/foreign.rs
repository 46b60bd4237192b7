//! Checks foreign schemas (from servers and files), which may use all of draft-07 and 2020-12 within limits. Nothing is
//! fetched.

use serde_json::Value;

use crate::error::{Problem, SchemaProblemKind};
use crate::json::{self, Limits};
use crate::schema::graph::{Document, Expansion};
use crate::schema::positions::patterns;
use crate::schema::validator::MAX_PATTERNS;
use crate::schema::{engine, texts, visits};
use crate::text::lex::outside_strings;
use crate::tool::Schema;

/// The maximum depth of the JSON of a schema document.
const MAX_JSON_DEPTH: usize = 100;

/// The supported dialects, by the text of `$schema` without a trailing `#`.
const DIALECTS: [&str; 3] = [
    "http://json-schema.org/draft-07/schema",
    "https://json-schema.org/draft-07/schema",
    "https://json-schema.org/draft/2020-12/schema",
];

/// Checks the schema of a tool that is made at run time or listed by an MCP server, and returns it unchanged.
///
/// References stay. They must lead to places inside the document or to one of the two meta-schemas. Recursion is
/// allowed if checking a value stays linear. A `default` or `enum` value that breaks its own schema is tolerated.
///
/// # Errors
///
/// The document is not a valid schema of its dialect, exceeds a limit of size, depth, expansion or patterns, or has a
/// reference out of the document.
pub(crate) fn check_foreign(schema: &Value) -> Result<Schema, Vec<Problem>> {
    let one = |problem| vec![problem];
    if json::is_deeper(schema, MAX_JSON_DEPTH) {
        return Err(one(too_deep()));
    }
    let text = texts::schema_text(schema).map_err(one)?;
    if !(schema.is_object() || schema.is_boolean()) {
        return Err(one(Problem::schema("", "a schema is an object", "write `{\"type\": \"object\", ..}`")));
    }
    if let Some(dialect) = schema.get("$schema")
        && !dialect.as_str().is_some_and(|dialect| DIALECTS.contains(&dialect.trim_end_matches('#')))
    {
        let remedy = "write it in 2020-12, the default, or in draft-07";
        return Err(one(Problem::schema("/$schema", "unsupported JSON Schema dialect", remedy)));
    }
    if patterns(schema).len() > MAX_PATTERNS {
        let message = format!("the schema has over {MAX_PATTERNS} different patterns");
        let problem = Problem::schema("", message, "describe texts by `format` or `enum`, or split the tool");
        return Err(one(problem.of_kind(SchemaProblemKind::Size)));
    }
    let document = Document::read(schema)?;
    Expansion::check(&document, schema).map_err(one)?;
    visits::check(&document, schema).map_err(one)?;
    engine::compiles(schema).map_err(one)?;
    Ok(text)
}

/// Reads a schema document from text. Its size and depth are checked before it is parsed.
///
/// # Errors
///
/// The text exceeds a limit, or is not JSON.
pub(crate) fn parse_foreign(text: &str) -> Result<Value, Problem> {
    if deeper_text(text, MAX_JSON_DEPTH) {
        return Err(too_deep());
    }
    if text.len() > texts::MAX_BYTES {
        return Err(texts::too_large());
    }
    match json::parse_value(text, &Limits { bytes: texts::MAX_BYTES, depth: MAX_JSON_DEPTH }) {
        Ok(tree) => Ok(tree.to_value()),
        Err(error) => {
            let message = format!("the schema cannot be read at line {} column {}", error.line, error.column);
            Err(Problem::schema("", message, "write one JSON object that names each member once"))
        }
    }
}

/// The problem of a document that nests too deeply.
fn too_deep() -> Problem {
    let message = format!("the document nests over {MAX_JSON_DEPTH} levels deep");
    Problem::schema("", message, "nest less, or name the inner schemas in `$defs`").of_kind(SchemaProblemKind::Depth)
}

/// Whether brackets outside of strings are nested deeper than `levels`.
fn deeper_text(text: &str, levels: usize) -> bool {
    let mut depth = 0_usize;
    outside_strings(text).any(|(_, byte)| {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > levels
    })
}
