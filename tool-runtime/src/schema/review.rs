//! Reviews a definition from an untrusted source before it may be enabled: accept, review by a person, or reject.

use serde_json::{Map, Value};

use crate::error::{Problem, SchemaProblemKind};
use crate::schema::foreign::{check_foreign, parse_foreign};
use crate::schema::lower::has_type;
use crate::schema::positions::subschemas;
use crate::schema::problem::Pointer;
use crate::schema::subset::{Outside, outside};
use crate::schema::{formats, suspicion};
use crate::tool::ToolName;

/// The advice on a definition, from the mildest to the most severe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Advice {
    /// There are no findings.
    Accept,
    /// Load the definition disabled and flagged; a person decides.
    Review,
    /// Do not load the definition.
    Reject,
}

impl Advice {
    /// Returns the name used in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Review => "review",
            Self::Reject => "reject",
        }
    }
}

/// The subject of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The name is illegal, or begins with `__`.
    Name,
    /// The name claims a namespace, such as `core` in `core__add`. Only the catalog sets the namespace of a source.
    Namespace,
    /// A description gives the model orders, or contains hidden characters.
    Description,
    /// The document is too large.
    Size,
    /// The document nests too deeply, or expands too far.
    Depth,
    /// The schema is outside of the subset that every provider accepts.
    Subset,
    /// A reference leads out of the document, in a circle, or to a place that is not a definition.
    Reference,
    /// The schema is not valid, contradicts itself, or is not of the type `object`.
    Schema,
    /// The pattern is expensive to match, or means different things to different engines.
    Regex,
}

impl Reason {
    /// Returns the name used in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Namespace => "namespace",
            Self::Description => "description",
            Self::Size => "size",
            Self::Depth => "depth",
            Self::Subset => "p0",
            Self::Reference => "ref",
            Self::Schema => "schema",
            Self::Regex => "regex",
        }
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The advice for this finding alone.
    pub advice: Advice,
    /// The subject.
    pub reason: Reason,
    /// The problem, with its place and a correction.
    pub problem: Problem,
}

/// The result of a review: all findings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Review {
    /// The findings, in the order of the checks.
    pub findings: Vec<Finding>,
}

impl Review {
    /// Returns the most severe advice of all findings.
    #[must_use]
    pub fn advice(&self) -> Advice {
        self.findings.iter().map(|finding| finding.advice).max().unwrap_or(Advice::Accept)
    }

    /// Returns the subject of the first finding with the most severe advice; `None` if there are no findings.
    #[must_use]
    pub fn reason(&self) -> Option<Reason> {
        let gravest = self.advice();
        self.findings.iter().find(|finding| finding.advice == gravest).map(|finding| finding.reason)
    }

    fn add(&mut self, advice: Advice, reason: Reason, problem: Problem) {
        self.findings.push(Finding { advice, reason, problem });
    }
}

/// Reviews the definition of a tool as an untrusted source publishes it. Nothing is fetched.
#[must_use]
pub fn review(name: &str, description: &str, schema: &Value) -> Review {
    let mut verdict = Review::default();
    review_name(name, &mut verdict);
    review_schema(schema, &mut verdict);
    suspicion::texts(description, schema, &mut |problem| {
        verdict.add(Advice::Review, Reason::Description, problem);
    });
    verdict
}

/// Like [`review`], for a schema as text. Its size and depth are checked before it is parsed.
#[must_use]
pub fn review_text(name: &str, description: &str, schema: &str) -> Review {
    match parse_foreign(schema) {
        Ok(schema) => review(name, description, &schema),
        Err(problem) => {
            let mut verdict = Review::default();
            review_name(name, &mut verdict);
            verdict.add(Advice::Reject, of_document(&problem), problem);
            verdict
        }
    }
}

fn review_name(name: &str, verdict: &mut Review) {
    if let Err(error) = ToolName::foreign(name) {
        let problem = Problem::schema("/name", error.to_string(), "publish the tool under a legal name");
        return verdict.add(Advice::Reject, Reason::Name, problem);
    }
    let remedy = "publish the tool under a name without `__`; the catalog adds the namespace";
    match name.split_once("__") {
        Some(("", _)) => {
            let problem = Problem::schema("/name", "the name begins with `__`", remedy);
            verdict.add(Advice::Review, Reason::Name, problem);
        }
        Some(_) => {
            let problem = Problem::schema("/name", "the name claims a namespace", remedy);
            verdict.add(Advice::Reject, Reason::Namespace, problem);
        }
        None => {}
    }
}

fn review_schema(schema: &Value, verdict: &mut Review) {
    let Value::Object(root) = schema else {
        let problem = Problem::schema("", "the schema is not an object", "write `{\"type\": \"object\", ..}`");
        return verdict.add(Advice::Reject, Reason::Schema, problem);
    };
    match root.get("type") {
        Some(ty) if ty == "object" => {}
        None => {
            let problem = Problem::schema("", "the schema has no type", "write `\"type\": \"object\"`");
            verdict.add(Advice::Review, Reason::Schema, problem);
        }
        Some(_) => {
            let problem = Problem::schema("/type", "arguments are not an object", "write `\"type\": \"object\"`");
            verdict.add(Advice::Reject, Reason::Schema, problem);
        }
    }
    for (kind, problem) in outside(schema) {
        let reason = match kind {
            Outside::Keyword => Reason::Subset,
            Outside::Reference => Reason::Reference,
        };
        verdict.add(Advice::Reject, reason, problem);
    }
    if let Err(problems) = check_foreign(schema) {
        for problem in problems {
            verdict.add(Advice::Reject, of_document(&problem), problem);
        }
        return;
    }
    review_rules(root, &mut Pointer::default(), verdict);
}

/// Returns the subject of a problem of a whole document.
fn of_document(problem: &Problem) -> Reason {
    match problem.kind() {
        SchemaProblemKind::Size => Reason::Size,
        SchemaProblemKind::Depth => Reason::Depth,
        SchemaProblemKind::Reference => Reason::Reference,
        SchemaProblemKind::Content => Reason::Schema,
    }
}

/// Reports rules that are valid but allow nothing, contradict each other or are expensive.
fn review_rules(schema: &Map<String, Value>, pointer: &mut Pointer, verdict: &mut Review) {
    let mut odd = |reason, message: String, remedy: &str| {
        verdict.add(Advice::Review, reason, pointer.problem(message, remedy));
    };
    if schema.get("enum").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        odd(Reason::Schema, "`enum` allows nothing".to_owned(), "name the values");
    }
    for (low, high) in [
        ("minimum", "maximum"),
        ("minLength", "maxLength"),
        ("minItems", "maxItems"),
        ("minProperties", "maxProperties"),
    ] {
        let (low_value, high_value) = (schema.get(low), schema.get(high).and_then(Value::as_number));
        if let (Some(low_value), Some(high_value)) = (low_value, high_value)
            && formats::compare(low_value, high_value).is_some_and(std::cmp::Ordering::is_gt)
        {
            odd(Reason::Schema, format!("`{low}` is above `{high}`, so no value fits"), "widen the range");
        }
    }
    let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    let named = schema.get("properties").and_then(Value::as_object);
    let patterned = schema.contains_key("patternProperties");
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    if closed && !patterned && (has_type(schema, "object") || named.is_some()) {
        for name in required.filter(|name| !named.is_some_and(|named| named.contains_key(*name))) {
            odd(Reason::Schema, format!("`{name}` is required and not allowed"), "describe it in `properties`");
        }
    }
    let patterns = schema.get("patternProperties").and_then(Value::as_object).into_iter().flat_map(Map::keys);
    for pattern in schema.get("pattern").and_then(Value::as_str).into_iter().chain(patterns.map(String::as_str)) {
        if let Some(why) = suspicion::pattern(pattern) {
            odd(Reason::Regex, why.to_owned(), "write the pattern without it");
        }
    }
    for position in subschemas(schema) {
        let Value::Object(inner) = position.schema else { continue };
        let mark = position.enter(pointer);
        review_rules(inner, pointer, verdict);
        pointer.leave(mark);
    }
}
