//! The skeleton of offering tools: check, close, report, and let the format write what differs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::wire::encode::report::EncodeErrorKind;
use crate::wire::encode::strict::{self, Closing, Room};
use crate::wire::encode::{
    Dialect, EncodeError, EncodeOptions, Encoded, Fields, Loss, OnUnsupported, SentSchema, ToolChoice, Vocabulary,
    WireTool,
};
use crate::wire::{Effort, RequestSettings};

/// What a format can carry.
pub(crate) struct Carries {
    /// Keywords that the provider refuses at the root of a schema.
    pub(crate) refused_at_root: &'static [&'static str],
    /// Which names of properties the provider takes.
    pub(crate) property_names: PropertyNames,
    /// How schemas are closed; `None` if the format has no strict mode.
    pub(crate) closing: Option<Closing>,
    /// Whether it can limit a turn to one call.
    pub(crate) parallel: bool,
    /// Whether it has choices other than `auto`.
    pub(crate) choice: bool,
    /// Whether a choice can name several tools; otherwise only those are offered.
    pub(crate) allowed: bool,
    /// Where it has its settings.
    pub(crate) vocabulary: &'static Vocabulary,
    /// Writes the settings that the vocabulary does not: reasoning, metadata and the user.
    pub(crate) settings: fn(&RequestSettings, Option<&str>, &mut Fields),
}

/// Which names of properties a provider takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PropertyNames {
    /// Every name.
    Any,
    /// `[a-zA-Z0-9_.-]{1,64}`; another one makes the provider refuse the whole request.
    Short,
}

/// A tool that passed the checks: its name, its description unless empty, the schema to send.
pub(crate) struct CheckedTool<'a> {
    name: &'a str,
    description: Option<&'a str>,
    schema: Value,
    sent: SentSchema,
}

impl CheckedTool<'_> {
    /// Whether the schema is a closed copy.
    pub(crate) fn is_strict(&self) -> bool {
        self.sent != SentSchema::Authoritative
    }

    /// `{name, description?, <key>: schema}`
    pub(crate) fn object(self, schema_key: &str) -> Map<String, Value> {
        let mut out = Map::new();
        out.insert("name".to_owned(), self.name.into());
        if let Some(description) = self.description {
            out.insert("description".to_owned(), description.into());
        }
        out.insert(schema_key.to_owned(), self.schema);
        out
    }
}

#[cfg_attr(not(feature = "http"), allow(dead_code, reason = "whole requests are written for the HTTP client"))]
/// Whether the endpoint has the provider's mode for schemas.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerMode {
    /// It has, if the format has one.
    Schema,
    /// It has not: a tool takes its place.
    Tool,
}

/// The parts of a request body that offer the tools; empty without tools (E2).
pub(crate) fn encode_tools<'a, T: Into<WireTool<'a>>>(
    dialect: &dyn Dialect,
    tools: impl IntoIterator<Item = T>,
    options: &EncodeOptions,
) -> Result<Encoded, EncodeError> {
    offer(dialect, tools, options, None)
}

/// As [`encode_tools`], with the format of the answer: in the provider's mode for schemas, or as one more tool.
pub(super) fn offer<'a, T: Into<WireTool<'a>>>(
    dialect: &dyn Dialect,
    tools: impl IntoIterator<Item = T>,
    options: &EncodeOptions,
    answer: Option<(WireTool<'_>, AnswerMode)>,
) -> Result<Encoded, EncodeError> {
    let mut offer = Offer { options, carries: dialect.carries(), losses: Vec::new(), room: Room::default() };
    let (mut names, mut checked) = (BTreeSet::new(), Vec::new());
    for tool in tools {
        let tool: WireTool<'a> = tool.into();
        if offer.leaves_out(tool.name) {
            continue;
        }
        match offer.check(tool, &mut names) {
            Ok(tool) => checked.push(tool),
            Err(error) if options.on_unsupported == OnUnsupported::Refuse => return Err(error),
            Err(error) => offer.losses.push(error.into()),
        }
    }
    let sent: BTreeMap<_, _> = checked.iter().map(|tool| (tool.name.to_owned(), tool.sent)).collect();
    offer.check_choice(&sent)?;
    offer.report_options();
    let mut body = Map::new();
    let mut choice = options.settings.tool_choice.clone();
    if let Some((answer, mode)) = answer {
        let schema = offer.answer_schema(answer).filter(|_| mode == AnswerMode::Schema);
        if let Some((key, value)) = schema.and_then(|schema| dialect.answer(answer.name, schema, !checked.is_empty())) {
            body.insert(key.to_owned(), value);
        } else {
            choice = offer.answering(choice, answer.name, checked.is_empty());
            checked.push(offer.check(answer, &mut BTreeSet::new())?);
        }
    }
    let tools = checked.iter().map(|tool| (tool.name.to_owned(), tool.sent)).collect();
    if checked.is_empty() && choice.as_ref().is_some_and(ToolChoice::forces) {
        let what = "no tool is offered, so no call can be forced".to_owned();
        offer.losses.push(Loss { tool: None, path: "tool_choice".to_owned(), what });
    }
    if !checked.is_empty() {
        let list = checked.into_iter().map(|tool| dialect.tool(tool)).collect();
        body.insert("tools".to_owned(), dialect.tools(list));
        if let Some((key, value)) = choice.as_ref().and_then(|choice| dialect.choice(choice)) {
            body.insert(key.to_owned(), value);
        }
        if let Some(parallel) = options.settings.parallel_calls.filter(|_| offer.carries.parallel) {
            dialect.parallel(parallel, &mut body);
        }
    }
    Ok(Encoded { body, tools, losses: offer.losses })
}

/// The checks of one request.
struct Offer<'o> {
    options: &'o EncodeOptions,
    carries: &'static Carries,
    losses: Vec<Loss>,
    room: Room,
}

impl Offer<'_> {
    /// Whether the choice is a subset that the format cannot name, and the tool is none of it.
    fn leaves_out(&mut self, name: &str) -> bool {
        let out = match &self.options.settings.tool_choice {
            Some(choice @ ToolChoice::Allowed { .. }) => !self.carries.allowed && !choice.allows(name),
            _ => false,
        };
        if out {
            let what = "the format cannot name several tools in a choice; the others are not offered".to_owned();
            self.losses.push(Loss { tool: Some(name.to_owned()), path: "tool_choice".to_owned(), what });
        }
        out
    }

    /// Checks the name (E4) and the schema (E5).
    fn check<'a>(&mut self, tool: WireTool<'a>, names: &mut BTreeSet<&'a str>) -> Result<CheckedTool<'a>, EncodeError> {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if tool.name.is_empty() || tool.name.len() > 64 || !tool.name.bytes().all(legal) {
            return Err(EncodeError::new(EncodeErrorKind::InvalidToolName, Some(tool.name), None));
        }
        if names.contains(tool.name) {
            return Err(EncodeError::new(EncodeErrorKind::DuplicateToolName, Some(tool.name), None));
        }
        let (schema, sent) = self.schema(tool)?;
        names.insert(tool.name);
        let description = Some(tool.description).filter(|text| !text.is_empty());
        Ok(CheckedTool { name: tool.name, description, schema, sent })
    }

    fn schema(&mut self, tool: WireTool<'_>) -> Result<(Value, SentSchema), EncodeError> {
        let refuse = |path| EncodeError::new(EncodeErrorKind::UnsupportedSchema, Some(tool.name), path);
        let schema: Value = serde_json::from_str(tool.input_schema).map_err(|_| refuse(None))?;
        if schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err(refuse(None));
        }
        if self.carries.property_names == PropertyNames::Short
            && let Some(path) = strict::long_property(&schema)
        {
            return Err(refuse(Some(path)));
        }
        if let Some(closing) = self.carries.closing.filter(|_| self.options.strict)
            && let Some(closed) = self.close(tool, closing)?
        {
            return Ok(closed);
        }
        if let Some(keyword) = self.carries.refused_at_root.iter().find(|keyword| schema.get(**keyword).is_some()) {
            return Err(refuse(Some(format!("/{keyword}"))));
        }
        Ok((schema, SentSchema::Authoritative))
    }

    /// The closed copy (T1, T2); `None` if the schema is sent as it is.
    fn close(&mut self, tool: WireTool<'_>, closing: Closing) -> Result<Option<(Value, SentSchema)>, EncodeError> {
        let lose = |path: String, what: String| Loss { tool: Some(tool.name.to_owned()), path, what };
        let closed = match strict::close(tool.input_schema, closing) {
            Ok(closed) => closed,
            Err(path) => {
                let error = EncodeError::new(EncodeErrorKind::StrictUnsupported, Some(tool.name), Some(path));
                if self.options.on_unsupported == OnUnsupported::Refuse {
                    return Err(error);
                }
                self.losses.push(error.into());
                return Ok(None);
            }
        };
        if let Err(limit) = self.room.take(closing, &closed) {
            self.losses.push(lose("strict".to_owned(), format!("the provider takes {limit} in one request")));
            return Ok(None);
        }
        self.losses.extend(closed.dropped.into_iter().map(|(path, what)| lose(path, what)));
        let sent = match closing {
            Closing::Nullable => SentSchema::ClosedWithNulls,
            Closing::Optional => SentSchema::Closed,
        };
        Ok(Some((closed.schema, sent)))
    }

    /// The schema of the answer as the provider's mode takes it; `None` if it cannot be closed where it has to be.
    fn answer_schema(&mut self, answer: WireTool<'_>) -> Option<Value> {
        let Some(closing) = self.carries.closing else { return serde_json::from_str(answer.input_schema).ok() };
        let closed = strict::close(answer.input_schema, closing).ok()?;
        self.room.take(closing, &closed).ok()?;
        Some(closed.schema)
    }

    /// The choice with which the model can answer by a tool.
    fn answering(&self, choice: Option<ToolChoice>, name: &str, alone: bool) -> Option<ToolChoice> {
        let named = || Some(ToolChoice::Named(name.to_owned()));
        // A provider may refuse a forced call together with reasoning; the tool's description then asks for the call.
        let reasons = self.options.settings.reasoning.is_some_and(|effort| effort != Effort::Off);
        match choice {
            Some(ToolChoice::None) if self.carries.choice => named(),
            Some(ToolChoice::Allowed { mut names, required }) => {
                names.push(name.to_owned());
                Some(ToolChoice::Allowed { names, required })
            }
            None | Some(ToolChoice::Auto) if alone && self.carries.choice && !reasons => named(),
            choice => choice,
        }
    }

    /// A choice that the format cannot express, or that names no offered tool, is refused (E3).
    fn check_choice(&self, tools: &BTreeMap<String, SentSchema>) -> Result<(), EncodeError> {
        let unknown = |names: &[String]| names.iter().find(|name| !tools.contains_key(*name)).cloned();
        match &self.options.settings.tool_choice {
            Some(ToolChoice::Allowed { names, .. }) if unknown(names).is_some() => {
                Err(EncodeError::new(EncodeErrorKind::UnknownToolChoice, unknown(names).as_deref(), None))
            }
            // A subset that the model may call is what is offered.
            Some(ToolChoice::Allowed { required: false, .. }) => Ok(()),
            Some(ToolChoice::Named(name)) if !tools.contains_key(name) => {
                Err(EncodeError::new(EncodeErrorKind::UnknownToolChoice, Some(name), None))
            }
            Some(choice) if *choice != ToolChoice::Auto && !self.carries.choice => {
                Err(EncodeError::new(EncodeErrorKind::UnsupportedToolChoice, None, None))
            }
            _ => Ok(()),
        }
    }

    fn report_options(&mut self) {
        let mut lose = |path: &str, what: &str| {
            self.losses.push(Loss { tool: None, path: path.to_owned(), what: what.to_owned() });
        };
        if self.options.strict && self.carries.closing.is_none() {
            lose("strict", "the format has no strict schemas");
        }
        if self.options.settings.parallel_calls == Some(false) && !self.carries.parallel {
            lose("parallel_calls", "the format cannot limit a turn to one call");
        }
    }
}
