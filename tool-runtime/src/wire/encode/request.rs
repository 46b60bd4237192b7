//! A whole request body. Fields that stay the same from turn to turn come first, for the provider's prompt cache.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use crate::json::quote;
use crate::wire::encode::extra::fold;
use crate::wire::encode::messages::encode_marked;
use crate::wire::encode::report::EncodeErrorKind;
use crate::wire::encode::tools::tool_fields;
use crate::wire::encode::{
    AnswerMode, Dialect, EncodeError, EncodeOptions, Loss, OfferedTools, WireTool, encode_settings,
};
use crate::wire::{Format, Message};

/// The value that marks a block: the provider caches the request up to this block.
pub(crate) const MARK: &str = r#"{"type":"ephemeral"}"#;

/// The input of a request, in addition to the tools.
pub(crate) struct RequestInput<'a> {
    pub(crate) messages: &'a [Message],
    pub(crate) model: &'a str,
    pub(crate) options: &'a EncodeOptions,
    pub(crate) answer: Option<(WireTool<'a>, AnswerMode)>,
}

/// A request body, the names of the tools that it offers, and its losses.
pub(crate) struct Request<'p> {
    /// Tools, instructions and messages come first, so that nothing before the last message changes from turn to turn.
    fields: Vec<(String, Text<'p>)>,
    /// The names of the tools that the request offers.
    pub(crate) offered: Arc<BTreeSet<String>>,
    /// The losses of the request, without those of its tools ([`OfferedTools::losses`]).
    pub(crate) losses: Vec<Loss>,
}

/// JSON text: owned by this request, or in pieces that other requests may share.
enum Text<'p> {
    Own(Box<RawValue>),
    Pieces(Vec<Cow<'p, str>>),
}

impl Text<'_> {
    fn pieces(&self) -> impl Iterator<Item = &str> {
        let (own, pieces) = match self {
            Text::Own(own) => (Some(own.get()), [].as_slice()),
            Text::Pieces(pieces) => (None, pieces.as_slice()),
        };
        own.into_iter().chain(pieces.iter().map(AsRef::as_ref))
    }
}

impl Request<'_> {
    /// Adds a field in front of all others.
    pub(crate) fn lead(&mut self, name: &str, value: impl Into<Value>) {
        self.add(0, name, &value.into());
    }

    /// Adds a field after all others, unless there is one of this name.
    pub(crate) fn trail(&mut self, name: &str, value: impl Into<Value>) {
        if self.fields.iter().all(|(known, _)| known != name) {
            self.add(self.fields.len(), name, &value.into());
        }
    }

    fn add(&mut self, at: usize, name: &str, value: &Value) {
        if let Ok(value) = to_raw_value(value) {
            self.fields.insert(at, (name.to_owned(), Text::Own(value)));
        }
    }

    /// The JSON text.
    pub(crate) fn write(&self) -> String {
        let length = self.fields.iter().flat_map(|(_, value)| value.pieces()).map(str::len).sum::<usize>();
        let names = self.fields.iter().map(|(name, _)| name.len() + 8).sum::<usize>();
        let mut out = String::with_capacity(length + names + 2);
        out.push('{');
        for (at, (name, value)) in self.fields.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            quote(&mut out, name);
            out.push(':');
            value.pieces().for_each(|piece| out.push_str(piece));
        }
        out.push('}');
        out
    }
}

/// Writes the tools, the history, the settings and the format of the answer.
pub(crate) fn encode_request<'p>(
    format: Format,
    dialect: &dyn Dialect,
    tools: &'p OfferedTools,
    asked: &RequestInput<'_>,
) -> Result<Request<'p>, EncodeError> {
    let marks = asked.options.settings.cache != Some(false);
    let tool_fields = tool_fields(dialect, &tools.checked, asked.options, asked.answer)?;
    let (answer, tool) = tool_fields.answer.unzip();
    let offered = tools.names(answer.as_deref());
    let history = encode_marked(format, dialect, asked.messages, Some(asked.model), marks);
    let settings = encode_settings(dialect, &asked.options.settings, Some(asked.model))?;
    let mut rest = settings.body;
    let mut fields = Vec::new();
    let list = tools.pieces(dialect, tool, marks);
    if !list.is_empty() {
        fields.push(("tools".to_owned(), Text::Pieces(list)));
    }
    for (name, value) in tool_fields.body {
        merge(&mut rest, &name, value, &format!("extra.{name}"))?;
    }
    let (list, others): (Vec<_>, Vec<_>) =
        history.body.into_iter().partition(|(name, _)| name == dialect.messages_key());
    let (overridden, others): (Vec<_>, Vec<_>) = others.into_iter().partition(|(name, _)| rest.contains_key(name));
    fields.extend(others.into_iter().chain(list).map(|(name, value)| (name, Text::Own(value))));
    let overridden = overridden.into_iter().map(|(name, _)| Loss {
        tool: None,
        path: name,
        what: "a field of the history that an extra field overrides".to_owned(),
    });
    let losses =
        tool_fields.losses.into_iter().chain(settings.losses).chain(history.losses).chain(overridden).collect();
    fields.extend(rest.into_iter().map(|(name, value)| (name, Text::Own(raw(&value)))));
    Ok(Request { fields, offered, losses })
}

fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_default()
}

/// Adds a value to the settings, merging objects. Refuses a value whose place an extra field already takes.
fn merge(into: &mut Map<String, Value>, name: &str, value: Value, path: &str) -> Result<(), EncodeError> {
    // A server may read another spelling of the name as the same field.
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
