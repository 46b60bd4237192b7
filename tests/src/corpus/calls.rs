//! Provider calls against dynamic tools: what hydration says of each.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tool_runtime::Outcome;
use tool_runtime::call::{CallId, Violation};
use tool_runtime::json::{self, Limits};
use tool_runtime::schema::IdArguments;
use tool_runtime::schema::validator::{Compiled, JsonSchemaValidator};

use crate::corpus::base64;

/// The longest call id, in bytes.
const CALL_ID: usize = 128;

/// Tools by the name that calls use, compiled at their first call.
#[derive(Default)]
pub struct Tools(HashMap<String, Tool>);

struct Tool {
    schema: Value,
    compiled: OnceLock<Option<Prepared>>,
}

struct Prepared {
    ids: IdArguments,
    schema: Arc<dyn Compiled>,
}

impl Tools {
    /// Reads tool definitions, one a line.
    ///
    /// # Errors
    ///
    /// A line is not a tool definition.
    pub fn read(lines: &str) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        struct Definition {
            wire_name: String,
            schema: Value,
        }
        let definitions = lines.lines().map(serde_json::from_str::<Definition>);
        let tool = |read: Definition| (read.wire_name, Tool { schema: read.schema, compiled: OnceLock::new() });
        definitions.map(|read| read.map(tool)).collect::<Result<_, _>>().map(Self)
    }

    fn get(&self, name: &str) -> Option<&Prepared> {
        let tool = self.0.get(name)?;
        let prepare = || {
            let schema = JsonSchemaValidator.compile_value(&tool.schema).ok()?;
            Some(Prepared { ids: IdArguments::of_value(&tool.schema), schema })
        };
        tool.compiled.get_or_init(prepare).as_ref()
    }

    /// The names of tools whose schemas do not compile.
    #[must_use]
    pub fn broken(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).filter(|name| self.get(name).is_none()).collect()
    }
}

/// One row, as far as a program under test may read it.
#[derive(Deserialize)]
pub struct Row {
    /// Names the row.
    pub id: String,
    payload: Payload,
    arguments_pieces: Option<Vec<(String, usize)>>,
    arguments_b64: Option<String>,
}

#[derive(Deserialize)]
struct Payload {
    id: Option<String>,
    name: Option<String>,
    input: Option<Box<RawValue>>,
    function: Option<Function>,
}

#[derive(Deserialize)]
struct Function {
    name: Option<String>,
    arguments: Option<Box<RawValue>>,
}

impl Row {
    /// The provider's id of the call.
    #[must_use]
    pub fn call_id(&self) -> &str {
        self.payload.id.as_deref().unwrap_or_default()
    }

    /// The name that was called.
    #[must_use]
    pub fn name(&self) -> &str {
        let function = self.payload.function.as_ref().and_then(|function| function.name.as_deref());
        self.payload.name.as_deref().or(function).unwrap_or_default()
    }

    /// The text of the arguments, digit for digit; none when it is no text.
    #[must_use]
    pub fn arguments(&self) -> Option<String> {
        if let Some(pieces) = &self.arguments_pieces {
            return Some(pieces.iter().map(|(text, times)| text.repeat(*times)).collect());
        }
        if let Some(encoded) = &self.arguments_b64 {
            return String::from_utf8(base64::decode(encoded)?).ok();
        }
        let function = self.payload.function.as_ref().and_then(|function| function.arguments.as_ref());
        let raw = self.payload.input.as_ref().or(function)?.get();
        Some(if raw.starts_with('"') { serde_json::from_str(raw).ok()? } else { raw.to_owned() })
    }
}

#[derive(Serialize)]
struct Line<'a> {
    id: &'a str,
    outcome: &'a str,
    errors: Vec<Located<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Box<RawValue>>,
    call_id: &'a str,
    repaired: bool,
}

#[derive(Serialize)]
struct Located<'a> {
    pointer: &'a str,
    keyword: &'a str,
}

/// What became of one call.
pub struct Hydration {
    /// The stable outcome.
    pub outcome: Outcome,
    /// Where the arguments are wrong.
    pub errors: Vec<Violation>,
    /// The arguments as JSON, when they are right.
    pub arguments: Option<String>,
    /// They had to be altered to be read.
    pub repaired: bool,
}

impl Hydration {
    fn failed(outcome: Outcome, errors: Vec<Violation>) -> Self {
        Self { outcome, errors, arguments: None, repaired: false }
    }
}

/// Hydrates one call: the one function that stands for the gate here.
#[must_use]
pub fn hydrate(tools: &Tools, row: &Row) -> Hydration {
    let Some(tool) = tools.get(row.name()) else { return Hydration::failed(Outcome::Unavailable, Vec::new()) };
    if row.call_id().len() > CALL_ID {
        return Hydration::failed(Outcome::LimitExceeded, Vec::new());
    }
    let Some(text) = row.arguments() else { return Hydration::failed(Outcome::InvalidJson, Vec::new()) };
    let mut arguments = match json::parse(&text, &Limits::default()) {
        Ok(arguments) => arguments,
        Err(error) => return Hydration::failed(error.outcome(), error.violation().into_iter().collect()),
    };
    tool.ids.trim(&mut arguments);
    let mut errors = tool.schema.check(&arguments).err().unwrap_or_default();
    errors.extend(tool.ids.check(&arguments));
    if errors.is_empty() {
        let arguments = serde_json::to_string(&arguments).ok();
        return Hydration { outcome: Outcome::Ok, errors, arguments, repaired: false };
    }
    Hydration::failed(Outcome::ValidationError, errors)
}

/// One row of `calls` to its result.
///
/// # Errors
///
/// The row is not one.
pub fn calls(row: &str, tools: &Tools) -> serde_json::Result<String> {
    let row: Row = serde_json::from_str(row)?;
    let hydration = hydrate(tools, &row);
    let errors = hydration.errors.iter().map(|error| Located { pointer: &error.pointer, keyword: &error.keyword });
    serde_json::to_string(&Line {
        id: &row.id,
        outcome: outcome_name(hydration.outcome),
        errors: errors.collect(),
        args: hydration.arguments.map(RawValue::from_string).transpose()?,
        call_id: CallId::new(row.call_id()).as_str(),
        repaired: hydration.repaired,
    })
}

fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::InvalidJson => "parse_error",
        Outcome::Unavailable => "unknown_tool",
        Outcome::LimitExceeded => "limit_error",
        Outcome::InstantiateFailed => "instantiate_error",
        other => other.code(),
    }
}
