//! Ids and names of calls, as providers take them in a history.
//!
//! Models invent names, and ids of one server break the rules of another. A provider that finds either refuses the
//! whole conversation, in every request that follows.

use std::borrow::Cow;

use crate::text::cut;
use crate::tool::Hash;
use crate::wire::Format;
use crate::wire::encode::Messages;
use crate::wire::history::CallMessage;

/// The longest name of a tool, in bytes: `^[a-zA-Z0-9_-]{1,64}$` for Anthropic ("Define tools"), the same letters and
/// length for OpenAI (`FunctionDefinition.name` in its SDKs).
pub(crate) const MAX_NAME_BYTES: usize = 64;

/// The longest id that Responses takes, in bytes. Undocumented: the provider answers 400 `string_above_max_length` for
/// `call_id`, "Expected a string with maximum length 64".
const MAX_ID_BYTES: usize = 64;

/// The longest id that Chat Completions of OpenAI takes from every model, in bytes. Undocumented: the provider answers
/// 400 `string_above_max_length` for `tool_calls[].id`, "Expected a string with maximum length 40".
const MAX_CHAT_ID_BYTES: usize = 40;

/// The name of a call, for providers that check it. Offered tools always have a plain name, so theirs is never changed.
pub(crate) fn plain_name(call: &CallMessage) -> Cow<'_, str> {
    if is_plain(&call.name) && call.name.len() <= MAX_NAME_BYTES {
        return Cow::Borrowed(&call.name);
    }
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' };
    let name: String = call.name.chars().map(plain).take(MAX_NAME_BYTES).collect();
    if name.is_empty() { "unnamed".into() } else { name.into() }
}

/// The id of a call, for providers that take letters, digits, `_` and `-`. Undocumented: Anthropic answers 400 for
/// `tool_use.id`, "String should match pattern '^[a-zA-Z0-9_-]+$'", and bounds no length.
pub(crate) fn plain_id(call: &CallMessage) -> Cow<'_, str> {
    if is_plain(call.id.as_str()) { call.id.as_str().into() } else { hashed(call) }
}

/// The id of a call, for providers that bound its length.
pub(crate) fn short_id(call: &CallMessage) -> Cow<'_, str> {
    if call.id.as_str().len() <= MAX_ID_BYTES { call.id.as_str().into() } else { hashed(call) }
}

/// The id of a call, for servers of Chat Completions. An id that such a server made goes back unchanged, however long
/// it is: `LiteLLM` keeps a signature in it. An id that another format made is shortened for OpenAI.
pub(crate) fn chat_id(call: &CallMessage) -> Cow<'_, str> {
    let is_foreign = call.provider_state().is_some_and(|provider_state| provider_state.format() != Format::OpenAiChat);
    if is_foreign && call.id.as_str().len() > MAX_CHAT_ID_BYTES { hashed(call) } else { call.id.as_str().into() }
}

/// A hash of the call's id, the same for the call and its result in every request.
fn hashed(call: &CallMessage) -> Cow<'_, str> {
    let hash = Hash::sha256(call.id.as_str()).to_string();
    format!("call_{}", cut(&hash, 32)).into()
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

impl Messages<'_> {
    /// Like [`plain_name`], where the call is written: a name that is replaced is reported.
    pub(crate) fn name_of<'c>(&mut self, call: &'c CallMessage) -> Cow<'c, str> {
        let name = plain_name(call);
        if name != call.name {
            self.lose("a name that no tool can have");
        }
        name
    }
}
