//! The encoders of the parts of a request: the offered tools ([`tools`]), copies of their schemas that allow no
//! undeclared properties ([`strict`]), the settings ([`settings`]) and the history ([`messages`]).

mod extra;
mod media;
mod messages;
mod names;
mod node;
mod offer;
#[cfg_attr(not(feature = "http"), allow(dead_code, reason = "whole requests are written for the HTTP client"))]
mod offered;
mod options;
mod report;
#[cfg_attr(not(feature = "http"), allow(dead_code, reason = "whole requests are written for the HTTP client"))]
mod request;
mod settings;
pub(crate) mod strict;
mod tools;

pub(crate) use media::data_url;
pub(crate) use messages::{Messages, encode_messages};
pub(crate) use names::{MAX_NAME_BYTES, chat_id, plain_id, plain_name, short_id};
pub(crate) use node::{Node, Object};
pub(crate) use offered::OfferedTools;
pub use options::{EncodeOptions, ToolChoice, WireTool};
pub(crate) use report::SentSchema;
pub use report::{EncodeError, Encoded, Loss};
pub(crate) use request::{MARK, Request, RequestInput, encode_request};
pub(crate) use settings::{Fields, Vocabulary, encode_settings};
pub(crate) use tools::{AnswerMode, CheckedTool, FormatFeatures, PropertyNames, encode_tools};

use serde_json::{Map, Value};

use crate::wire::history::Piece;

/// The part of an encoder that is specific to one format.
pub(crate) trait Dialect {
    /// The features that the format supports.
    fn features(&self) -> &'static FormatFeatures;

    /// Writes one entry of the list of tools.
    fn tool(&self, tool: CheckedTool<'_>) -> Value;

    /// Writes the list of tools, the value of the key `tools`.
    fn tools(&self, tools: Vec<Value>) -> Value {
        tools.into()
    }

    /// The key and the value of a tool choice; `None` if the format cannot express it.
    fn choice(&self, _choice: &ToolChoice) -> Option<(&'static str, Value)> {
        None
    }

    /// Writes whether one turn may hold several calls. Called if [`FormatFeatures::parallel`] is set.
    fn parallel(&self, _parallel: bool, _body: &mut Map<String, Value>) {}

    /// The key of the list of messages.
    fn messages_key(&self) -> &'static str {
        "messages"
    }

    /// The key and the value of the instructions; `None` if the format keeps them in the list of messages.
    fn system<'a>(&self, _texts: &[&'a str]) -> Option<(&'static str, Node<'a>)> {
        None
    }

    /// The key and the value that make the provider answer in a JSON schema. `None` if the format cannot do so in this
    /// request; the encoder then offers a tool that takes the answer.
    fn answer(&self, name: &str, schema: Value, with_tools: bool) -> Option<(&'static str, Value)>;

    #[cfg_attr(not(feature = "http"), allow(dead_code, reason = "whole requests are written for the HTTP client"))]
    /// The member that marks the last tool for the provider's cache; `None` if the format has no marks.
    fn tool_mark(&self) -> Option<(&'static str, Value)> {
        None
    }

    /// Marks instructions and the last blocks of the history for the provider's cache.
    fn mark<'a>(&self, _system: Option<&mut Node<'a>>, _list: &mut [Object<'a>]) {}

    /// Writes a message, with its results if it has calls.
    fn message<'a>(&self, piece: &Piece<'a>, out: &mut Messages<'a>);
}
