//! Validators compile a schema and check values against it. The default one uses the crate `jsonschema`, offline.

use std::collections::HashSet;
use std::sync::Arc;

use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::{PatternOptions, ValidationError, ValidationOptions};
use serde_json::{Map, Value};

use crate::call::Violation;
use crate::error::Problem;
pub use crate::json::Tree;
use crate::schema::expected::expected;
use crate::schema::instance::TreeJson;
use crate::schema::positions::patterns;
use crate::text::is_similar;
use crate::tool::Schema;

/// The maximum number of violations that are listed for one value.
const MOST_VIOLATIONS: usize = 100;

/// The maximum number of backtracks of a pattern with look-around. After that, the text is treated as not matching.
const BACKTRACKS: usize = 10_000;

/// The maximum number of different patterns in a foreign schema, from a server or a file. Each pattern is compiled.
pub(super) const MAX_PATTERNS: usize = 64;

/// The maximum size of a compiled pattern, in bytes. Short patterns can be large: `\p{L}{180}` compiles to 10 MiB. The
/// patterns of a foreign schema share this size equally. In every schema, the caches of the patterns share it, too.
const PATTERN_BYTES: usize = 8 << 20;

/// The version of the `jsonschema` crate that this package's manifest requires.
const LIBRARY: &str = requirement(
    include_str!("../../Cargo.toml"),
    "\njsonschema = { version = \"",
    "[dependencies.jsonschema]\nversion = \"",
);

/// Returns the version that follows one of two texts in the manifest: `written` occurs in the manifest of the
/// repository, `published` in a manifest that cargo rewrote for a registry. Without either, this does not compile.
#[expect(clippy::panic, reason = "evaluated by the compiler only")]
const fn requirement<'a>(manifest: &'a str, written: &str, published: &str) -> &'a str {
    let start = match (find(manifest.as_bytes(), written.as_bytes()), find(manifest.as_bytes(), published.as_bytes())) {
        (Some(at), _) => at + written.len(),
        (None, Some(at)) => at + published.len(),
        (None, None) => panic!("Cargo.toml states no version of jsonschema"),
    };
    let (_, rest) = manifest.split_at(start);
    match find(rest.as_bytes(), b"\"") {
        Some(end) => rest.split_at(end).0,
        None => panic!("the version of jsonschema has no end"),
    }
}

/// Returns the position of the needle.
const fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    let mut at = 0;
    while at + needle.len() <= text.len() {
        let mut same = 0;
        while same < needle.len() && text[at + same] == needle[same] {
            same += 1;
        }
        if same == needle.len() {
            return Some(at);
        }
        at += 1;
    }
    None
}

/// Compiles schemas. Implement it to validate with another library.
///
/// ```
/// use std::sync::Arc;
/// use tool_runtime::call::Violation;
/// use tool_runtime::error::Problem;
/// use tool_runtime::schema::validator::{Compiled, JsonSchemaValidator, Tree, Validator};
/// use tool_runtime::tool::Schema;
///
/// /// The default rules, and no text that is longer than a line.
/// struct OneLine;
///
/// struct Line(Arc<dyn Compiled>);
///
/// impl Validator for OneLine {
///     fn name(&self) -> &str {
///         "one line"
///     }
///
///     fn version(&self) -> &str {
///         "1"
///     }
///
///     fn compile(&self, schema: &Schema) -> Result<Arc<dyn Compiled>, Problem> {
///         Ok(Arc::new(Line(JsonSchemaValidator.compile(schema)?)))
///     }
/// }
///
/// impl Compiled for Line {
///     fn check(&self, value: &Tree<'_>) -> Result<(), Vec<Violation>> {
///         self.0.check(value)?;
///         for (name, member) in value.as_object().unwrap_or_default() {
///             if member.as_str().is_some_and(|text| text.contains('\n')) {
///                 return Err(vec![Violation::new(format!("/{name}"), "line", "a single line")]);
///             }
///         }
///         Ok(())
///     }
/// }
/// # let _ = OneLine;
/// ```
pub trait Validator: Send + Sync {
    /// Returns the name for records.
    fn name(&self) -> &str;

    /// Returns the version for records.
    fn version(&self) -> &str;

    /// Compiles a schema. An implementation must not fetch anything.
    ///
    /// # Errors
    ///
    /// The schema is not valid, or refers to something outside itself.
    fn compile(&self, schema: &Schema) -> Result<Arc<dyn Compiled>, Problem>;
}

impl<V: Validator + ?Sized> Validator for Arc<V> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn version(&self) -> &str {
        (**self).version()
    }

    fn compile(&self, schema: &Schema) -> Result<Arc<dyn Compiled>, Problem> {
        (**self).compile(schema)
    }
}

/// A compiled schema.
///
/// [`Validator`] has an example.
pub trait Compiled: Send + Sync {
    /// Checks a value.
    ///
    /// # Errors
    ///
    /// Every broken rule, up to 100, in the order of pointers. No violation quotes a value.
    fn check(&self, value: &Tree<'_>) -> Result<(), Vec<Violation>>;
}

/// The default validator, for all of draft-07 and 2020-12. It checks formats, limits patterns, and does no IO.
///
/// ```
/// use serde_json::json;
/// use tool_runtime::schema::validator::{JsonSchemaValidator, Tree};
///
/// let schema = json!({ "type": "object", "properties": { "count": { "type": "integer", "minimum": 1 } } });
/// let compiled = JsonSchemaValidator.compile_value(&schema)?;
/// let broken = compiled.check(&Tree::Object(vec![("count".into(), Tree::Int(0))])).err().ok_or("the value is valid")?;
/// assert_eq!((broken[0].pointer.as_str(), broken[0].keyword.as_str()), ("/count", "minimum"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct JsonSchemaValidator;

impl JsonSchemaValidator {
    /// Compiles a schema from a JSON value.
    ///
    /// # Errors
    ///
    /// The same errors as [`Validator::compile`].
    pub fn compile_value(&self, schema: &Value) -> Result<Arc<dyn Compiled>, Problem> {
        compile(schema, || Schema::from_text(schema.to_string()))
    }

    /// Checks a schema against the meta-schema of its dialect, without compiling it.
    pub(super) fn check_meta(schema: &Value) -> Result<(), Problem> {
        jsonschema::meta::validate(schema).map_err(|error| problem(&error))
    }

    /// Checks that a foreign schema compiles if its patterns share the maximum size.
    pub(super) fn check_compiled(schema: &Value) -> Result<(), Problem> {
        validator(schema, share(schema)).map(drop)
    }
}

impl Validator for JsonSchemaValidator {
    fn name(&self) -> &'static str {
        "jsonschema"
    }

    fn version(&self) -> &'static str {
        LIBRARY
    }

    fn compile(&self, schema: &Schema) -> Result<Arc<dyn Compiled>, Problem> {
        compile(&schema.to_value(), || schema.clone())
    }
}

fn compile(schema: &Value, text: impl FnOnce() -> Schema) -> Result<Arc<dyn Compiled>, Problem> {
    let validator = validator(schema, PATTERN_BYTES)?;
    Ok(Arc::new(CompiledSchema { validator, text: text() }))
}

/// Compiles a schema. `size` limits each compiled pattern, but does not change a pattern that fits.
fn validator(schema: &Value, size: usize) -> Result<jsonschema::Validator<TreeJson>, Problem> {
    let cache = share(schema);
    // The linear engine has no look-around; patterns that need it run in a backtracking one, with a low limit.
    options()
        .with_pattern_options(PatternOptions::regex().size_limit(size).dfa_size_limit(cache))
        .build(schema)
        .or_else(|_| {
            let backtracking = PatternOptions::fancy_regex().backtrack_limit(BACKTRACKS);
            options().with_pattern_options(backtracking.size_limit(size).dfa_size_limit(cache)).build(schema)
        })
        .map_err(|error| problem(&error))
}

/// Returns the share of [`PATTERN_BYTES`] for each pattern. An authored schema can exceed [`MAX_PATTERNS`].
fn share(schema: &Value) -> usize {
    PATTERN_BYTES / patterns(schema).len().clamp(1, MAX_PATTERNS)
}

fn options<'i>() -> ValidationOptions<'i, Arc<dyn jsonschema::Retrieve>, TreeJson> {
    jsonschema::options_for::<TreeJson>().offline().should_validate_formats(true)
}

fn problem(error: &ValidationError<'_>) -> Problem {
    if let Kind::Format { format } = error.kind()
        && format == "regex"
    {
        // The pattern is a value that the meta-schema refused, or a part of the compiled schema.
        let place = Some(error.instance_path().as_str()).filter(|place| !place.is_empty());
        return Problem::schema(
            place.unwrap_or(error.schema_path().as_str()),
            "the pattern is not a regular expression, or too large once compiled",
            "write one in the syntax of ECMA 262, and repeat `\\p{..}` less often",
        );
    }
    Problem::schema(
        error.instance_path().as_str(),
        format!("not a valid JSON Schema (`{}`)", error.kind().keyword()),
        "write it as draft-07 or 2020-12 define it, without references to other documents",
    )
}

struct CompiledSchema {
    validator: jsonschema::Validator<TreeJson>,
    // The text is parsed only to describe the expected value.
    text: Schema,
}

impl Compiled for CompiledSchema {
    fn check(&self, value: &Tree<'_>) -> Result<(), Vec<Violation>> {
        if self.validator.is_valid(value) {
            return Ok(());
        }
        let schema = self.text.to_value();
        let mut seen = HashSet::new();
        let mut violations = Vec::new();
        for error in self.validator.iter_errors(value) {
            let violation = violation(&error, &schema, value);
            if seen.insert((violation.pointer.clone(), violation.keyword.clone(), violation.expected.clone())) {
                violations.push(violation);
            }
            if violations.len() == MOST_VIOLATIONS {
                break;
            }
        }
        violations.sort_by(|one, two| one.pointer.cmp(&two.pointer));
        Err(violations)
    }
}

fn violation(error: &ValidationError<'_>, schema: &Value, value: &Tree<'_>) -> Violation {
    let kind = error.kind();
    let pointer = error.instance_path().as_str();
    let violation = |expected| Violation::new(pointer, kind.keyword(), expected);
    let object = value.pointer(pointer);
    // The keyword belongs to the schema of the object.
    let holder = error.schema_path().as_str().rsplit_once('/').and_then(|(holder, _)| schema.pointer(holder));
    let properties = holder.and_then(|holder| holder.get("properties")).and_then(Value::as_object);
    match kind {
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let known = properties.map(|known| list(known.keys())).filter(|known| !known.is_empty());
            let expected = known.map_or_else(|| expected(kind), |known| format!("only the properties {known}"));
            match properties.and_then(|known| suggestion(known, unexpected, object)) {
                Some(hint) => violation(expected).with_hint(hint),
                None => violation(expected),
            }
        }
        Kind::Required { property: Value::String(property) } => {
            let slip =
                |name: &str| properties.is_none_or(|known| !known.contains_key(name)) && is_similar(name, property);
            let slipped =
                object.and_then(Tree::as_object).is_some_and(|members| members.iter().any(|(name, _)| slip(name)));
            let violation = violation(format!("the property `{property}`"));
            if slipped { violation.with_hint(format!("write the name exactly as `{property}`")) } else { violation }
        }
        _ => violation(expected(kind)),
    }
}

/// Suggests known names that are similar to the unknown ones. Only names from the schema are shown.
fn suggestion(known: &Map<String, Value>, unexpected: &[String], object: Option<&Tree<'_>>) -> Option<String> {
    let absent = |name: &str| object.is_none_or(|object| object.get(name).is_none());
    let suggestion =
        list(known.keys().filter(|name| absent(name) && unexpected.iter().any(|wrong| is_similar(wrong, name))));
    (!suggestion.is_empty()).then(|| format!("did you mean {suggestion}?"))
}

/// Lists names in sorted order, because another crate may make `serde_json` keep the order of the source.
fn list<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let mut names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
    names.sort_unstable();
    names.join(", ")
}

#[cfg(test)]
mod tests;
