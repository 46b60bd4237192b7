//! Typed answers: the check of an answer against its schema, and the one correction by the model.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::call::Violation;
use crate::error::Problem;
use crate::json::{self, Tree};
use crate::runner::Run;
use crate::schema;
use crate::tool::Schema;
use crate::wire::history::Part;
use crate::wire::{CallStatus, Decoded, WireTool};

/// The name of the schema, and of the tool for providers without a schema mode. It has no namespace, so no tool of the
/// `tool` macro has it. If a dynamic tool has it, underscores are appended.
const NAME: &str = "final_answer";

/// The description of that tool.
const DESCRIPTION: &str =
    "Gives the final answer. Call it once, alone, when no further call is needed; write no other answer.";

/// The property that contains an answer whose type is not an object.
const WRAPPED: &str = "answer";

/// The maximum number of violated rules that the correction lists for the model.
const MOST_TOLD: usize = 10;

/// The expected type of the answer to the last message, until it is answered.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Typed {
    /// A name that no visible tool has.
    name: String,
    /// The schema of an object, as text.
    schema: String,
    /// Whether the type is not an object, so that the schema wraps it in the property `answer`.
    pub(super) wrapped: bool,
    /// Whether the problems were returned to the model once.
    repaired: bool,
    /// Checks rules that the schema cannot express. Absent after a restore until the next
    /// [`Conversation::ask`](crate::agent::Conversation::ask).
    #[serde(skip)]
    fits: Option<Fits>,
}

type Fits = fn(&str, bool) -> Result<(), Violation>;

/// The result of the check of an answer.
pub(super) enum Judged {
    /// The answer matches.
    Answer(String),
    /// The answer does not match, and the loop asks the model again, with this text.
    Again(String),
    /// The answer does not match for the second time.
    Invalid(Vec<Violation>),
}

impl Typed {
    pub(super) fn of<T: DeserializeOwned + JsonSchema>() -> Result<Self, Vec<Problem>> {
        let (schema, wrapped) = schema::compile_answer::<T>(WRAPPED)?;
        let (name, schema) = (NAME.to_owned(), schema.as_str().to_owned());
        Ok(Self {
            name,
            schema,
            wrapped,
            repaired: false,
            fits: Some(|text, wrapped| read::<T>(text, wrapped).map(|_| ())),
        })
    }

    /// Creates the expected type from a JSON Schema, which has to describe an object.
    pub(super) fn fitting(schema: &str) -> Result<Self, Vec<Problem>> {
        let schema = schema::parse_foreign(schema).map_err(|problem| vec![problem])?;
        if schema.get("type").and_then(serde_json::Value::as_str) != Some("object") {
            return Err(vec![Problem::schema("/type", "the answer is not an object", "write `\"type\": \"object\"`")]);
        }
        let schema = schema::check_foreign(&schema)?.as_str().to_owned();
        Ok(Self { name: NAME.to_owned(), schema, wrapped: false, repaired: false, fits: None })
    }

    /// Returns the schema in the form of a tool.
    pub(super) fn tool(&self) -> WireTool<'_> {
        WireTool::new(&self.name, DESCRIPTION, &self.schema)
    }

    /// Whether a call of this name is the answer.
    pub(super) fn is_answer(&self, name: &str) -> bool {
        self.name == name
    }

    /// Checks an answer. Returns its text without the nulls that a provider's strict mode adds, or the violations.
    fn check(&self, run: &Run, text: &str) -> Result<String, Vec<Violation>> {
        let tool = self.tool();
        let text = tool.remove_nulls(text.trim()).into_owned();
        let tree = parse(&text).map_err(|violation| vec![violation])?;
        run.check_value(&Schema::from_text(&*self.schema), &tree)?;
        if let Some(fits) = self.fits {
            fits(&text, self.wrapped).map_err(|violation| vec![violation])?;
        }
        Ok(text)
    }
}

fn parse(text: &str) -> Result<Tree<'_>, Violation> {
    let limits = json::Limits { bytes: usize::MAX, ..json::Limits::default() };
    let wrong = || Violation::new("", "type", "one JSON object and nothing else");
    if text.is_empty() { Err(wrong()) } else { json::parse(text, &limits).map_err(|_| wrong()) }
}

/// Deserializes an answer. The error has only a location, because the type's own message can quote the answer.
pub(super) fn read<T: DeserializeOwned>(text: &str, wrapped: bool) -> Result<T, Violation> {
    let tree = parse(text)?;
    let inner = match &tree {
        Tree::Object(members) if wrapped => members.iter().find(|(name, _)| *name == WRAPPED).map(|(_, value)| value),
        tree => Some(tree),
    };
    let inner = inner.ok_or_else(|| Violation::new("", "required", WRAPPED))?;
    json::from_tree(inner).map_err(|error| error.violation())
}

/// Returns the expected type of the next answer, under a name that no visible tool has.
pub(super) fn expected(typed: &mut Option<Typed>, run: &Run) -> Option<Typed> {
    let typed = typed.as_mut()?;
    while run.catalog().get(&typed.name).is_some() {
        typed.name.push('_');
    }
    Some(typed.clone())
}

/// Sets the type of the next answer. A request that only continues keeps the previous type.
pub(super) fn expect(slot: &mut Option<Typed>, typed: Option<Typed>, is_message: bool) {
    match (typed, slot) {
        // The same type again: `fits` may be missing after a restore. A type that is not an object has the schema of an
        // object with one property, so `wrapped` is compared too.
        (Some(new), Some(known)) if !is_message && (&known.schema, known.wrapped) == (&new.schema, new.wrapped) => {
            known.fits = new.fits;
        }
        (None, _) if !is_message => {}
        (typed, slot) => *slot = typed,
    }
}

/// Removes the calls of the answer tool from the turn, so that they never reach the gate. Returns the answer if the
/// turn has no other calls. Otherwise the call of the answer tool stays in the history, with a result that explains
/// that the other calls come first.
pub(super) fn take_answer(typed: Option<&Typed>, decoded: &mut Decoded, parts: &mut Vec<Part>) -> Option<String> {
    let typed = typed?;
    let mut found = None;
    let ended_well = decoded.ended_well();
    decoded.calls.retain(|call| {
        let is_answer = typed.is_answer(&call.call.name);
        if is_answer && found.is_none() {
            let readable = call.status != CallStatus::MissingName && ended_well;
            found = Some(if readable { call.call.arguments().to_owned() } else { String::new() });
        }
        !is_answer
    });
    let alone = decoded.calls.is_empty();
    if found.is_some() && (alone || !ended_well) {
        parts.retain(|part| part.as_call().is_none_or(|call| !typed.is_answer(&call.name)));
        if let Some(text) = found.as_deref().filter(|text| !text.is_empty()) {
            parts.push(Part::text(text));
        }
    }
    if !ended_well || !alone {
        return None;
    }
    let text = || parts.iter().filter_map(Part::as_text).collect::<String>();
    Some(found.unwrap_or_else(text))
}

/// Checks the answer. The first answer that does not match is returned to the model; the second ends the request.
pub(super) fn judge(slot: &mut Option<Typed>, run: &Run, text: &str) -> Option<Judged> {
    let typed = slot.as_mut()?;
    let violations = match typed.check(run, text) {
        Ok(answer) => {
            *slot = None;
            return Some(Judged::Answer(answer));
        }
        Err(violations) => violations,
    };
    if std::mem::replace(&mut typed.repaired, true) {
        *slot = None;
        return Some(Judged::Invalid(violations));
    }
    let mut told = String::from("The answer does not match the requested schema:\n");
    for Violation { pointer, expected, .. } in violations.iter().take(MOST_TOLD) {
        let place = if pointer.is_empty() { "the answer" } else { pointer };
        // Writing to a `String` cannot fail.
        let _ = writeln!(told, "- {place}: expected {expected}");
    }
    told.push_str("Answer again, with the whole JSON object and nothing else.");
    Some(Judged::Again(told))
}
