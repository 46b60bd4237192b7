//! A whole request body, in an order whose beginning stays the same from turn to turn.

use std::collections::BTreeMap;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use crate::json::quote;
use crate::wire::encode::extra::fold;
use crate::wire::encode::messages::encode_marked;
use crate::wire::encode::report::EncodeErrorKind;
use crate::wire::encode::tools::offer;
use crate::wire::encode::{
    AnswerMode, Dialect, EncodeError, EncodeOptions, Loss, SentSchema, WireTool, encode_settings,
};
use crate::wire::{Format, Message};

/// The mark of a block up to which the provider keeps the request in its cache.
pub(crate) const MARK: &str = r#"{"type":"ephemeral"}"#;

/// What a request is written from, in addition to the tools.
pub(crate) struct Asked<'a> {
    pub(crate) messages: &'a [Message],
    pub(crate) model: &'a str,
    pub(crate) options: &'a EncodeOptions,
    pub(crate) answer: Option<(WireTool<'a>, AnswerMode)>,
}

/// A request body and what is known of it.
pub(crate) struct Request {
    /// Tools, instructions and messages come first: nothing in front of the last message changes from turn to turn.
    fields: Vec<(String, Box<RawValue>)>,
    pub(crate) tools: BTreeMap<String, SentSchema>,
    pub(crate) losses: Vec<Loss>,
}

impl Request {
    /// Adds a field in front of all others.
    pub(crate) fn lead(&mut self, name: &str, value: impl Into<Value>) {
        self.add(0, name, &value.into());
    }

    /// Adds a field behind all others, unless there is one of this name.
    pub(crate) fn trail(&mut self, name: &str, value: impl Into<Value>) {
        if self.fields.iter().all(|(known, _)| known != name) {
            self.add(self.fields.len(), name, &value.into());
        }
    }

    fn add(&mut self, at: usize, name: &str, value: &Value) {
        if let Ok(value) = to_raw_value(value) {
            self.fields.insert(at, (name.to_owned(), value));
        }
    }

    /// The JSON text.
    pub(crate) fn write(&self) -> String {
        let mut out = String::from("{");
        for (at, (name, value)) in self.fields.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            quote(&mut out, name);
            out.push(':');
            out.push_str(value.get());
        }
        out.push('}');
        out
    }
}

/// Writes tools, history, settings and the format of the answer.
pub(crate) fn encode_request<'a, T: Into<WireTool<'a>>>(
    format: Format,
    dialect: &dyn Dialect,
    tools: impl IntoIterator<Item = T>,
    asked: &Asked<'_>,
) -> Result<Request, EncodeError> {
    let marks = asked.options.settings.cache != Some(false);
    let mut offered = offer(dialect, tools, asked.options, asked.answer)?;
    if let Some(tools) = offered.body.get_mut("tools").filter(|_| marks) {
        dialect.mark_tools(tools);
    }
    let history = encode_marked(format, dialect, asked.messages, Some(asked.model), marks);
    let settings = encode_settings(dialect, &asked.options.settings, Some(asked.model))?;
    let mut rest = settings.body;
    let mut fields = Vec::new();
    for (name, value) in std::mem::take(&mut offered.body) {
        if name == "tools" {
            fields.push((name, raw(&value)));
        } else {
            merge(&mut rest, &name, value, &format!("extra.{name}"))?;
        }
    }
    let (list, others): (Vec<_>, Vec<_>) =
        history.body.into_iter().partition(|(name, _)| name == dialect.messages_key());
    let (overridden, others): (Vec<_>, Vec<_>) = others.into_iter().partition(|(name, _)| rest.contains_key(name));
    fields.extend(others);
    fields.extend(list);
    let overridden = overridden.into_iter().map(|(name, _)| Loss {
        tool: None,
        path: name,
        what: "what the history says, which an extra field overrides".to_owned(),
    });
    let losses = offered.losses.into_iter().chain(settings.losses).chain(history.losses).chain(overridden).collect();
    fields.extend(rest.into_iter().map(|(name, value)| (name, raw(&value))));
    Ok(Request { fields, tools: offered.tools, losses })
}

fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_default()
}

/// Adds a value to the settings, inside objects too. What an extra field wrote in its place is refused.
fn merge(into: &mut Map<String, Value>, name: &str, value: Value, path: &str) -> Result<(), EncodeError> {
    // A server could take another spelling for the field.
    if into.keys().any(|known| known != name && fold(known) == fold(name)) {
        return Err(EncodeError::new(EncodeErrorKind::ReservedField, None, Some(path.to_owned())));
    }
    match (into.get_mut(name), value) {
        (Some(Value::Object(known)), Value::Object(added)) => {
            for (name, value) in added {
                merge(known, &name, value, &format!("{path}.{name}"))?;
            }
            Ok(())
        }
        (Some(_), _) => Err(EncodeError::new(EncodeErrorKind::ReservedField, None, Some(path.to_owned()))),
        (None, value) => {
            into.insert(name.to_owned(), value);
            Ok(())
        }
    }
}
