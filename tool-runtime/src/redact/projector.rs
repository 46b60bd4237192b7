//! [`Projector`]: a compiled allowlist, which writes (projects) only the allowed leaves of a value.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::call::{JsonText, Violation};
use crate::json::{self, Limits};
use crate::media::{Attachments, LeftOut};
use crate::redact::attachments::{ERROR, MEDIA};
use crate::redact::fault::Fault;
use crate::redact::fit::{self, Fitted, SchemaPath, Unwritten};
use crate::redact::leaf::Leaf;
use crate::redact::path::{self, PathProblem};
use crate::redact::plan::{Member, Plan};
use crate::redact::writer::{self, Writable, Written};
use crate::schema;
use crate::schema::validator::{Compiled, JsonSchemaValidator};

thread_local! {
    /// The buffer in which this thread writes a value, before the value is copied out at its exact size. Growing a new
    /// string for each value would cost a fifth of the writing. The buffer is absent while a value is written.
    static ROOM: Cell<String> = const { Cell::new(String::new()) };
}

/// The maximum capacity of a buffer that is kept, in bytes: twice the default limit of a result.
const MAX_ROOM: usize = 64 * 1024;

/// A compiled allowlist over one output schema.
pub struct Projector {
    pub(super) allow: Plan,
    /// The plan for the model, if it sees more.
    model: Option<Box<Plan>>,
    /// Whether everyone may see files.
    shows_media: bool,
    /// Whether the model may see files.
    model_gets_media: bool,
    /// Whether everyone may see a server's text of a failure.
    shows_error: bool,
    /// The check of rules that the writer does not check. `None` if there are none.
    check: Option<Arc<dyn Compiled>>,
    /// The same check with the minimum counts of arrays of objects and of maps, which only a cut can break. `None` if
    /// there are no such counts.
    cut_check: Option<Arc<dyn Compiled>>,
}

/// The maximum number of times that a value is cut again, with more places that stay whole.
const MAX_CUTS: usize = 16;

/// A projected value: everything in it is on the allowlist.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Projected {
    /// The form that everyone may see.
    pub shown: JsonText,
    /// The form for the model, with more members or with marks for omissions. `None` if the model sees `shown`.
    pub model: Option<JsonText>,
    /// The files attached to the value, and the counts of omitted items and bytes. `None` if there are none.
    pub(crate) attachments: Option<Box<Attachments>>,
}

impl Projected {
    /// Returns the counts of items and bytes omitted from the value that everyone may see.
    #[must_use]
    pub fn left_out(&self) -> LeftOut {
        self.attachments.as_ref().map_or_else(LeftOut::default, |attachments| attachments.left_out)
    }
}

/// One form of a value: for everyone, or for the model.
struct Form {
    data: JsonText,
    cut: Option<Cut>,
}

/// The cuts of a form that was too long.
struct Cut {
    marked: JsonText,
    left_out: LeftOut,
}

/// The reason why a value cannot be projected. It contains no values.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ProjectError {
    /// The value does not match its schema, is not JSON (NaN, an infinity), or is nested too deeply.
    OutputInvalid(Vec<Violation>),
    /// The value exceeds the limit even when cut.
    TooLarge,
    /// The type of the value failed to serialise.
    Redaction,
}

impl fmt::Display for ProjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OutputInvalid(_) => "the output does not match its schema",
            Self::TooLarge => "the output is larger than the limit",
            Self::Redaction => "the output cannot be redacted",
        })
    }
}

impl std::error::Error for ProjectError {}

impl Projector {
    /// Compiles allowlists against the output schema. References in the schema are followed, except recursive
    /// ones.
    ///
    /// # Errors
    /// Every path that does not fit the schema, and a schema whose constraints cannot be checked.
    pub fn compile(allow: &[String], model: &[String], output_schema: &Value) -> Result<Self, Vec<PathProblem>> {
        let inlined = schema::inlined(output_schema);
        let output_schema = &*inlined;
        let problems: Vec<_> = allow
            .iter()
            .filter(|path| *path != ERROR)
            .chain(model)
            .filter(|path| *path != MEDIA)
            .filter_map(|path| path::check(path, output_schema).err())
            .collect();
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut projector = Self::without_schema(allow, model);
        projector.allow.bind(output_schema);
        if let Some(model) = &mut projector.model {
            model.bind(output_schema);
        }
        let [schema, of_cuts] = [false, true].map(|cut| constraints(output_schema, &projector.widest(), (cut, false)));
        // Without these checks, an output that breaks its schema would be shown.
        let compile = |schema: &Value| {
            JsonSchemaValidator.compile_value(schema).map_err(|problem| vec![PathProblem::unchecked(&problem)])
        };
        projector.check = schema.as_ref().map(compile).transpose()?;
        projector.cut_check =
            of_cuts.filter(|of_cuts| schema.as_ref() != Some(of_cuts)).as_ref().map(compile).transpose()?;
        Ok(projector)
    }

    /// Creates a projector for values without a schema; neither paths nor values are checked.
    #[must_use]
    pub fn without_schema(allow: &[String], model: &[String]) -> Self {
        let leaves = |paths: &'_ [String]| {
            paths.iter().filter(|path| *path != MEDIA && *path != ERROR).cloned().collect::<Vec<_>>()
        };
        let shows_media = allow.iter().any(|path| path == MEDIA);
        let model_gets_media = shows_media || model.iter().any(|path| path == MEDIA);
        let allow_error = allow.iter().any(|path| path == ERROR);
        let (allow, model) = (leaves(allow), leaves(model));
        let paths = || allow.iter().map(String::as_str);
        Self {
            shows_media,
            model_gets_media,
            shows_error: allow_error,
            allow: Plan::of(paths()),
            model: (!model.is_empty()).then(|| Box::new(Plan::of(paths().chain(model.iter().map(String::as_str))))),
            check: None,
            cut_check: None,
        }
    }

    pub(super) const fn shows_media(&self) -> bool {
        self.shows_media
    }

    pub(crate) const fn shows_error(&self) -> bool {
        self.shows_error
    }

    pub(super) const fn model_gets_media(&self) -> bool {
        self.model_gets_media
    }

    fn widest(&self) -> Plan {
        self.model.as_deref().unwrap_or(&self.allow).clone()
    }

    /// Writes the visible parts of a value, at most `max_bytes` long. Items of arrays and maps that do not fit are
    /// omitted, or cut if much room would stay empty otherwise. A string that is longer than its share is cut. The
    /// model's form has a mark at each cut.
    ///
    /// # Errors
    /// The value does not match its schema, its `Serialize` fails, or it is too large even when cut.
    pub fn project<T: Serialize + ?Sized>(&self, value: &T, max_bytes: usize) -> Result<Projected, ProjectError> {
        self.project_any(&value, max_bytes)
    }

    fn project_any(&self, value: &dyn Writable, max_bytes: usize) -> Result<Projected, ProjectError> {
        let shown = self.write(value, &self.allow, max_bytes)?;
        let model = self.model.as_ref().map(|plan| self.write(value, plan, max_bytes)).transpose()?;
        let left_out = shown.cut.as_ref().map(|cut| cut.left_out);
        let attachments = left_out.map(|left_out| Box::new(Attachments { left_out, ..Attachments::default() }));
        let model = match model {
            Some(model) => Some(model.cut.map_or(model.data, |cut| cut.marked)),
            None => shown.cut.map(|cut| cut.marked),
        };
        Ok(Projected { shown: shown.data, model, attachments })
    }

    fn write(&self, value: &dyn Writable, plan: &Plan, max_bytes: usize) -> Result<Form, ProjectError> {
        let mut text = ROOM.try_with(Cell::take).unwrap_or_default();
        text.clear();
        let Written { text, unwritten } = writer::write(value, plan, max_bytes, text).map_err(|fault| match fault {
            Fault::NotJson | Fault::NotSchema | Fault::TooDeep => ProjectError::OutputInvalid(Vec::new()),
            Fault::Author => ProjectError::Redaction,
        })?;
        let form = if text.len() <= max_bytes && unwritten.is_empty() {
            self.validate(&text)?;
            Form { data: JsonText::known(text.as_str()), cut: None }
        } else {
            self.fit(&text, plan, &unwritten, max_bytes)?
        };
        if text.capacity() <= MAX_ROOM {
            let _ = ROOM.try_with(|room| room.set(text));
        }
        Ok(form)
    }

    /// Cuts a value to its limit. If a cut breaks the schema, its place stays whole and the value is cut again.
    #[cold]
    fn fit(&self, text: &str, plan: &Plan, unwritten: &[Unwritten], room: usize) -> Result<Form, ProjectError> {
        let mut whole = Vec::new();
        for _ in 0..MAX_CUTS {
            let fitted = fit::fit(text, plan, unwritten, room, &whole).ok_or(ProjectError::TooLarge)?;
            let broken = self.broken(&fitted.data, plan)?;
            if broken.is_empty() {
                let Fitted { data, marked, left_out } = fitted;
                return Ok(Form {
                    data: JsonText::known(data),
                    cut: Some(Cut { marked: JsonText::known(marked), left_out }),
                });
            }
            let known = whole.len();
            for place in broken {
                if !whole.contains(&place) {
                    whole.push(place);
                }
            }
            if whole.len() == known {
                break;
            }
        }
        Err(ProjectError::TooLarge)
    }

    /// Returns the places where a cut value breaks the schema.
    fn broken(&self, text: &str, plan: &Plan) -> Result<Vec<SchemaPath>, ProjectError> {
        let Some(check) = self.cut_check.as_ref().or(self.check.as_ref()) else { return Ok(Vec::new()) };
        let tree = json::parse_value(text, &Limits::UNBOUNDED).map_err(|_| ProjectError::OutputInvalid(Vec::new()))?;
        let violations = check.check(&tree).err().unwrap_or_default();
        Ok(violations.iter().map(|violation| fit::place(&violation.pointer, &tree, plan)).collect())
    }

    fn validate(&self, text: &str) -> Result<(), ProjectError> {
        let Some(check) = &self.check else { return Ok(()) };
        let tree = json::parse_value(text, &Limits::UNBOUNDED).map_err(|_| ProjectError::OutputInvalid(Vec::new()))?;
        check.check(&tree).map_err(ProjectError::OutputInvalid)
    }
}

impl fmt::Debug for Projector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Projector").field("allow", &self.allow).field("model", &self.model).finish_non_exhaustive()
    }
}

/// Returns the rules for the visible leaves beyond their types; `None` if there are none.
///
/// `required` is omitted, because a missing member is optional in its type, or redaction removed it. Redaction removes
/// empty objects, too, so the minimum counts of arrays and maps apply to a `cut` only. With `in_all`, the schema is a
/// part of `allOf`. All rules of its leaves are returned, because the plan contains none of them.
fn constraints(schema: &Value, plan: &Plan, at @ (cut, in_all): (bool, bool)) -> Option<Value> {
    let mut narrow = serde_json::Map::new();
    if cut && matches!(plan, Plan::Object { .. }) {
        let counts =
            ["minItems", "minProperties"].into_iter().filter_map(|key| Some((key.into(), schema.get(key)?.clone())));
        narrow.extend(counts);
    }
    match plan {
        Plan::Leaf(_) => {
            // A leaf is a scalar or an array of scalars, so its schema is small enough to copy.
            return (in_all || says_more(schema, Leaf::of(schema).is_some())).then(|| schema.clone());
        }
        Plan::Object { members, any, .. } => {
            let properties: serde_json::Map<_, _> = members
                .iter()
                .filter_map(|Member { name, plan, .. }| {
                    let member = schema.get("properties")?.get(&**name)?;
                    Some((name.to_string(), constraints(member, plan, at)?))
                })
                .collect();
            if !properties.is_empty() {
                narrow.insert("properties".into(), properties.into());
            }
            // A map with integer keys has the schema of its values under a pattern, and allows no other keys.
            let patterns = schema.get("patternProperties").and_then(Value::as_object).into_iter().flatten();
            let of_patterns: serde_json::Map<_, _> = patterns
                .filter_map(|(pattern, values)| Some((pattern.clone(), constraints(values, any.as_deref()?, at)?)))
                .collect();
            let more = schema.get("additionalProperties").filter(|values| values.is_object());
            if !of_patterns.is_empty() {
                narrow.insert("patternProperties".into(), of_patterns.into());
            } else if let Some(values) = any.as_deref().and_then(|plan| constraints(more?, plan, at)) {
                narrow.insert("additionalProperties".into(), values);
            }
        }
    }
    if let Some(items) = schema.get("items").and_then(|items| constraints(items, plan, at)) {
        narrow.insert("items".into(), items);
    }
    let all = schema.get("allOf").and_then(Value::as_array);
    let all: Vec<_> = all.into_iter().flatten().filter_map(|one| constraints(one, plan, (cut, true))).collect();
    if !all.is_empty() {
        narrow.insert("allOf".into(), all.into());
    }
    (!narrow.is_empty()).then(|| narrow.into())
}

/// Whether a leaf has rules that need a separate check. The writer checks types and bounds, and Rust's types enforce
/// enums; values can break any other rule. `bound` is `false` for a leaf whose bounds the plan does not contain.
fn says_more(schema: &Value, bound: bool) -> bool {
    const MORE: [&str; 9] = [
        "pattern",
        "format",
        "minLength",
        "maxLength",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minItems",
        "maxItems",
    ];
    match schema {
        Value::Object(members) => {
            let more = |key: &str| MORE.contains(&key) || (!bound && matches!(key, "minimum" | "maximum"));
            members.keys().any(|key| more(key))
                || members.get("items").is_some_and(|items| says_more(items, bound))
                || ["anyOf", "oneOf", "allOf"]
                    .iter()
                    .any(|key| members.get(*key).is_some_and(|one| says_more(one, false)))
        }
        Value::Array(branches) => branches.iter().any(|one| says_more(one, bound)),
        _ => false,
    }
}
