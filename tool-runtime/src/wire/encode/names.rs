//! Ids and names of calls, changed where a provider would refuse them.
//!
//! Models invent names, and the ids of one server break the rules of another. A provider that finds such an id or name
//! in a history refuses the whole conversation, in every later request.

use std::borrow::Cow;

use crate::text::cut;
use crate::tool::Hash;
use crate::wire::Format;
use crate::wire::encode::Messages;
use crate::wire::history::CallMessage;

/// The maximum number of bytes of a tool's name: `^[a-zA-Z0-9_-]{1,64}$` for Anthropic ("Define tools"); OpenAI has the
/// same rule (`FunctionDefinition.name` in its SDKs).
pub(crate) const MAX_NAME_BYTES: usize = 64;

/// The maximum number of bytes of an id in Responses. Undocumented: the provider answers 400 `string_above_max_length`
/// for `call_id`, "Expected a string with maximum length 64".
const MAX_ID_BYTES: usize = 64;

/// The maximum number of bytes of an id that every model of OpenAI's Chat Completions accepts. Undocumented: the
/// provider answers 400 `string_above_max_length` for `tool_calls[].id`, "Expected a string with maximum length 40".
const MAX_CHAT_ID_BYTES: usize = 40;

/// The name of a call, for providers that check it. The name of an offered tool always passes, so it is never changed.
pub(crate) fn plain_name(call: &CallMessage) -> Cow<'_, str> {
    if is_plain(&call.name) && call.name.len() <= MAX_NAME_BYTES {
        return Cow::Borrowed(&call.name);
    }
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' };
    let name: String = call.name.chars().map(plain).take(MAX_NAME_BYTES).collect();
    if name.is_empty() { "unnamed".into() } else { name.into() }
}

/// The id of a call, for providers that accept only letters, digits, `_` and `-`. Undocumented: Anthropic answers 400
/// for `tool_use.id`, "String should match pattern '^[a-zA-Z0-9_-]+$'", and has no maximum length.
pub(crate) fn plain_id(call: &CallMessage) -> Cow<'_, str> {
    if is_plain(call.id.as_str()) { call.id.as_str().into() } else { hashed(call) }
}

/// The id of a call, for providers that limit its length.
pub(crate) fn short_id(call: &CallMessage) -> Cow<'_, str> {
    if call.id.as_str().len() <= MAX_ID_BYTES { call.id.as_str().into() } else { hashed(call) }
}

/// The id of a call, for servers of Chat Completions. An id that such a server made is sent back unchanged at any
/// length: `LiteLLM` keeps a signature in it. An id from another format is shortened for OpenAI.
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
    /// Like [`plain_name`], but reports a name that it replaces.
    pub(crate) fn name_of<'c>(&mut self, call: &'c CallMessage) -> Cow<'c, str> {
        let name = plain_name(call);
        if name != call.name {
            self.lose("a name that no tool can have");
        }
        name
    }
}
