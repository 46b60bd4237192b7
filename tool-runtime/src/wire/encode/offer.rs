//! [`Offer`]: checks the tools of a request against the rules of its format. Names such as `E4` are the rules in the
//! documentation of [`wire`](crate::wire).

use std::collections::BTreeMap;

use serde_json::Value;

use crate::wire::ReasoningEffort;
use crate::wire::encode::report::EncodeErrorKind;
use crate::wire::encode::strict::{self, Closing, Room};
use crate::wire::encode::tools::{CheckedTool, FormatFeatures, PropertyNames};
use crate::wire::encode::{Dialect, EncodeError, EncodeOptions, Loss, SentSchema, ToolChoice, WireTool};

/// The checks of the tools of one request.
pub(super) struct Offer<'o> {
    options: &'o EncodeOptions,
    pub(super) features: &'static FormatFeatures,
    pub(super) losses: Vec<Loss>,
    pub(super) room: Room,
}

/// The first `most` characters of a text, up to the end of a sentence or a word if one is near. `None` if the whole
/// text fits.
fn beginning(text: &str, most: usize) -> Option<&str> {
    let (end, _) = text.char_indices().nth(most)?;
    let cut = text.get(..end)?;
    let sentence = cut.rfind(['.', '\n']).map(|at| at + 1).filter(|at| 4 * at >= 3 * end);
    let word = || cut.rfind(char::is_whitespace).filter(|at| 2 * at >= end);
    cut.get(..sentence.or_else(word).unwrap_or(end)).map(str::trim_end)
}

impl<'o> Offer<'o> {
    /// Creates the checks of a request. `room` is the usage so far of the provider's limits for strict tools.
    pub(super) fn new(dialect: &dyn Dialect, options: &'o EncodeOptions, room: Room) -> Self {
        Self { options, features: dialect.features(), losses: Vec::new(), room }
    }

    /// Whether a tool is not offered, because it is outside a choice that the format cannot express.
    pub(super) fn leaves_out(&mut self, name: &str) -> bool {
        let out = match &self.options.settings.tool_choice {
            // The format cannot forbid calls, so no tool is offered.
            Some(ToolChoice::None) if !self.features.choice => return true,
            Some(choice) if self.features.narrows(Some(choice)) => !choice.allows(name),
            _ => false,
        };
        if out {
            let what = "the format cannot name several tools in a choice; the others are not offered".to_owned();
            self.losses.push(Loss { tool: Some(name.to_owned()), path: "tool_choice".to_owned(), what });
        }
        out
    }

    /// Checks the name (rule E4 of `wire`) and the schema (E5).
    pub(super) fn check<'a>(&mut self, tool: WireTool<'a>, is_taken: bool) -> Result<CheckedTool<'a>, EncodeError> {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if tool.name.is_empty() || tool.name.len() > 64 || !tool.name.bytes().all(legal) {
            return Err(EncodeError::new(EncodeErrorKind::InvalidToolName, Some(tool.name), None));
        }
        if is_taken {
            return Err(EncodeError::new(EncodeErrorKind::DuplicateToolName, Some(tool.name), None));
        }
        let (schema, sent) = self.schema(tool)?;
        let description = Some(self.description(tool)?).filter(|text| !text.is_empty());
        Ok(CheckedTool { name: tool.name, description, schema, sent })
    }

    /// The description, cut between words if it exceeds the provider's maximum.
    fn description<'a>(&mut self, tool: WireTool<'a>) -> Result<&'a str, EncodeError> {
        let limit = self.features.description.filter(|_| self.options.provider_limits);
        let Some((limit, cut)) = limit.and_then(|limit| Some((limit, beginning(tool.description, limit)?))) else {
            return Ok(tool.description);
        };
        if !self.options.leave_out_unsupported {
            return Err(EncodeError::new(EncodeErrorKind::DescriptionTooLong, Some(tool.name), None));
        }
        let what = format!("the provider takes {limit} characters of a description; the rest is not sent");
        self.losses.push(Loss { tool: Some(tool.name.to_owned()), path: "description".to_owned(), what });
        Ok(cut)
    }

    /// Refuses more tools than the provider accepts; the encoder cannot know which of them the model needs.
    pub(super) fn check_count(&self, tools: usize) -> Result<(), EncodeError> {
        match self.features.tools.filter(|_| self.options.provider_limits) {
            Some(most) if tools > most => Err(EncodeError::new(EncodeErrorKind::TooManyTools, None, None)),
            _ => Ok(()),
        }
    }

    fn schema(&mut self, tool: WireTool<'_>) -> Result<(Value, SentSchema), EncodeError> {
        let refuse = |path| EncodeError::new(EncodeErrorKind::UnsupportedSchema, Some(tool.name), path);
        let schema: Value = serde_json::from_str(tool.input_schema).map_err(|_| refuse(None))?;
        if schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err(refuse(None));
        }
        if self.features.property_names == PropertyNames::Short
            && let Some(path) = strict::long_property(&schema)
        {
            return Err(refuse(Some(path)));
        }
        if let Some(closing) = self.features.closing.filter(|_| self.options.strict)
            && let Some(closed) = self.close(tool, closing)?
        {
            return Ok(closed);
        }
        if let Some(keyword) = self.features.refused_at_root.iter().find(|keyword| schema.get(**keyword).is_some()) {
            return Err(refuse(Some(format!("/{keyword}"))));
        }
        Ok((schema, SentSchema::Authoritative))
    }

    /// The closed copy (T1, T2); `None` if the schema is sent unchanged.
    fn close(&mut self, tool: WireTool<'_>, closing: Closing) -> Result<Option<(Value, SentSchema)>, EncodeError> {
        let lose = |path: String, what: String| Loss { tool: Some(tool.name.to_owned()), path, what };
        let closed = match strict::close(tool.input_schema, closing) {
            Ok(closed) => closed,
            Err(path) => {
                let error = EncodeError::new(EncodeErrorKind::StrictUnsupported, Some(tool.name), Some(path));
                if !self.options.leave_out_unsupported {
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

    /// Returns the schema of a typed answer, closed if the provider requires that. `None` if it cannot be closed.
    pub(super) fn answer_schema(&mut self, answer: WireTool<'_>) -> Option<Value> {
        let Some(closing) = self.features.closing else { return serde_json::from_str(answer.input_schema).ok() };
        let closed = strict::close(answer.input_schema, closing).ok()?;
        self.room.take(closing, &closed).ok()?;
        Some(closed.schema)
    }

    /// Returns the tool choice that lets the model answer by calling the tool `name`. `alone` means that the request
    /// offers no other tool.
    pub(super) fn answering(&self, choice: Option<ToolChoice>, name: &str, alone: bool) -> Option<ToolChoice> {
        let named = || Some(ToolChoice::Named(name.to_owned()));
        // A provider may refuse a forced call together with reasoning. In that case only the tool's description asks
        // for the call.
        let reasons = self.options.settings.reasoning.is_some_and(|effort| effort != ReasoningEffort::Off);
        match choice {
            Some(ToolChoice::None) if self.features.choice => named(),
            Some(ToolChoice::Allowed { mut names, required }) => {
                names.push(name.to_owned());
                Some(ToolChoice::Allowed { names, required })
            }
            None | Some(ToolChoice::Auto) if alone && self.features.choice && !reasons => named(),
            choice => choice,
        }
    }

    /// Refuses a choice that names a tool that is not offered, and a choice that the format cannot express (E3). With
    /// `leave_out_unsupported`, the choice that the format cannot express is reported instead.
    pub(super) fn check_choice(&mut self, tools: &BTreeMap<String, SentSchema>) -> Result<(), EncodeError> {
        let unknown = |names: &[String]| names.iter().find(|name| !tools.contains_key(*name)).cloned();
        match &self.options.settings.tool_choice {
            Some(ToolChoice::Allowed { names, .. }) if unknown(names).is_some() => {
                Err(EncodeError::new(EncodeErrorKind::UnknownToolChoice, unknown(names).as_deref(), None))
            }
            // These choices need no key: the list of offered tools can express them.
            Some(ToolChoice::None | ToolChoice::Auto | ToolChoice::Allowed { required: false, .. }) => Ok(()),
            Some(ToolChoice::Named(name)) if !tools.contains_key(name) => {
                Err(EncodeError::new(EncodeErrorKind::UnknownToolChoice, Some(name), None))
            }
            Some(_) if !self.features.choice => {
                let error = EncodeError::new(EncodeErrorKind::UnsupportedToolChoice, None, None);
                if !self.options.leave_out_unsupported {
                    return Err(error);
                }
                self.losses.push(Loss { path: "tool_choice".to_owned(), ..error.into() });
                Ok(())
            }
            _ => Ok(()),
        }
    }

    pub(super) fn report_options(&mut self) {
        let mut lose = |path: &str, what: &str| {
            self.losses.push(Loss { tool: None, path: path.to_owned(), what: what.to_owned() });
        };
        if self.options.strict && self.features.closing.is_none() {
            lose("strict", "the format has no strict schemas");
        }
        if self.options.settings.parallel_calls == Some(false) && !self.features.parallel {
            lose("parallel_calls", "the format cannot limit a turn to one call");
        }
    }
}
