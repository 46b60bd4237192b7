//! Encodes the offered tools: checks them, closes their schemas and reports losses. Each format's [`Dialect`] does the
//! rest.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::wire::RequestSettings;
use crate::wire::encode::offer::Offer;
use crate::wire::encode::strict::{Closing, Room};
use crate::wire::encode::{
    Dialect, EncodeError, EncodeOptions, Encoded, Fields, Loss, SentSchema, ToolChoice, Vocabulary, WireTool,
};

/// The features of a format.
pub(crate) struct FormatFeatures {
    /// Keywords that the provider refuses at the root of a schema.
    pub(crate) refused_at_root: &'static [&'static str],
    /// The property names that the provider accepts.
    pub(crate) property_names: PropertyNames,
    /// The maximum number of characters of a tool's description; `None` if there is no limit.
    pub(crate) description: Option<usize>,
    /// The maximum number of tools in one request; `None` if there is no limit.
    pub(crate) tools: Option<usize>,
    /// How strict mode closes schemas; `None` if the format has no strict mode.
    pub(crate) closing: Option<Closing>,
    /// Whether the format can limit a turn to one call.
    pub(crate) parallel: bool,
    /// Whether the format has tool choices other than `auto`.
    pub(crate) choice: bool,
    /// Whether a tool choice can name several tools. If `false`, only the named tools are offered.
    pub(crate) allowed: bool,
    /// The names of the format's settings.
    pub(crate) vocabulary: &'static Vocabulary,
    /// Writes the settings that `vocabulary` does not name: reasoning, metadata and the user.
    pub(crate) settings: fn(&RequestSettings, Option<&str>, &mut Fields),
}

impl FormatFeatures {
    /// Whether the choice shortens the list of tools, because the format cannot express it in another way.
    pub(crate) const fn narrows(&self, choice: Option<&ToolChoice>) -> bool {
        matches!(choice, Some(ToolChoice::Allowed { .. })) && !self.allowed
            || matches!(choice, Some(ToolChoice::None)) && !self.choice
    }
}

/// The property names that a provider accepts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PropertyNames {
    /// Every name.
    Any,
    /// `[a-zA-Z0-9_.-]{1,64}`; for other names, the provider refuses the whole request.
    Short,
}

/// A tool that passed the checks. Its description is `None` if it is empty.
pub(crate) struct CheckedTool<'a> {
    pub(super) name: &'a str,
    pub(super) description: Option<&'a str>,
    pub(super) schema: Value,
    pub(super) sent: SentSchema,
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
/// Whether the endpoint can answer in a JSON schema.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerMode {
    /// The endpoint can, if the format has a field for the schema.
    Schema,
    /// The endpoint cannot; a tool takes the answer instead.
    Tool,
}

/// The parts of a request body that offer the tools; empty without tools (rule E2 of `wire`).
pub(crate) fn encode_tools<'a, T: Into<WireTool<'a>>>(
    dialect: &dyn Dialect,
    tools: impl IntoIterator<Item = T>,
    options: &EncodeOptions,
) -> Result<Encoded, EncodeError> {
    let mut list = Vec::new();
    let mut checked = check(dialect, tools, options, |tool| list.push(tool))?;
    let fields = tool_fields(dialect, &checked, options, None)?;
    let mut body = Map::new();
    if !list.is_empty() {
        body.insert("tools".to_owned(), dialect.tools(list));
    }
    body.extend(fields.body);
    checked.losses.extend(fields.losses);
    Ok(Encoded { body, tools: checked.tools, losses: checked.losses })
}

/// The tools that passed the checks, and the losses. They depend on the tool choice only if it
/// [narrows](FormatFeatures::narrows) the tools.
pub(super) struct CheckedTools {
    pub(super) tools: BTreeMap<String, SentSchema>,
    pub(super) losses: Vec<Loss>,
    room: Room,
}

/// Checks the tools, and passes each valid one to `take` in the shape of the format, in order.
pub(super) fn check<'a, T: Into<WireTool<'a>>>(
    dialect: &dyn Dialect,
    tools: impl IntoIterator<Item = T>,
    options: &EncodeOptions,
    mut take: impl FnMut(Value),
) -> Result<CheckedTools, EncodeError> {
    let mut offer = Offer::new(dialect, options, Room::default());
    let mut sent = BTreeMap::new();
    for tool in tools {
        let tool: WireTool<'a> = tool.into();
        if offer.leaves_out(tool.name) {
            continue;
        }
        match offer.check(tool, sent.contains_key(tool.name)) {
            Ok(tool) => {
                sent.insert(tool.name.to_owned(), tool.sent);
                take(dialect.tool(tool));
            }
            Err(error) if !options.leave_out_unsupported => return Err(error),
            Err(error) => offer.losses.push(error.into()),
        }
    }
    offer.check_count(sent.len())?;
    Ok(CheckedTools { tools: sent, losses: offer.losses, room: offer.room })
}

/// The fields of a request about its tools except their list: the tool choice, the limit to one call and the answer.
pub(super) struct ToolFields {
    pub(super) body: Map<String, Value>,
    /// The tool whose call is the answer: its name, and the tool in the shape of the format. It comes last in the list.
    pub(super) answer: Option<(String, Value)>,
    pub(super) losses: Vec<Loss>,
}

/// Writes the tool choice, the limit to one call and the format of the answer. The answer is either a JSON schema that
/// the provider enforces, or one more tool.
pub(super) fn tool_fields(
    dialect: &dyn Dialect,
    checked: &CheckedTools,
    options: &EncodeOptions,
    answer: Option<(WireTool<'_>, AnswerMode)>,
) -> Result<ToolFields, EncodeError> {
    let mut offer = Offer::new(dialect, options, checked.room);
    offer.check_choice(&checked.tools)?;
    offer.report_options();
    let mut body = Map::new();
    let mut choice = options.settings.tool_choice.clone();
    let (mut none, mut last) = (checked.tools.is_empty(), None);
    if let Some((answer, mode)) = answer {
        let schema = offer.answer_schema(answer).filter(|_| mode == AnswerMode::Schema);
        if let Some((key, value)) = schema.and_then(|schema| dialect.answer(answer.name, schema, !none)) {
            body.insert(key.to_owned(), value);
        } else {
            choice = offer.answering(choice, answer.name, none);
            last = Some((answer.name.to_owned(), dialect.tool(offer.check(answer, false)?)));
            offer.check_count(checked.tools.len() + 1)?;
            none = false;
        }
    }
    if none && choice.as_ref().is_some_and(ToolChoice::forces) {
        let what = "no tool is offered, so no call can be forced".to_owned();
        offer.losses.push(Loss { tool: None, path: "tool_choice".to_owned(), what });
    }
    if !none {
        if let Some((key, value)) = choice.as_ref().and_then(|choice| dialect.choice(choice)) {
            body.insert(key.to_owned(), value);
        }
        if let Some(parallel) = options.settings.parallel_calls.filter(|_| offer.features.parallel) {
            dialect.parallel(parallel, &mut body);
        }
    }
    Ok(ToolFields { body, answer: last, losses: offer.losses })
}
