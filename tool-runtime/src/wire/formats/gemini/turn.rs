//! Encodes a model's turn for Gemini: each part as Gemini sent it, in its place.
//!
//! Parts with a signature are neither joined with others nor moved. In each turn, Gemini 3 signs only the first call,
//! and refuses a request in which that signature is missing ("Thought signatures").

use std::borrow::Cow;

use crate::media::Media;
use crate::wire::decode::fields::{Raw, Text, read, shape};
use crate::wire::decode::members::without;
use crate::wire::encode::{MAX_NAME_BYTES, Messages, Node, Object, plain_name};
use crate::wire::formats::gemini::model::{Generation, generation};
use crate::wire::history::{CallMessage, Part, ProviderState};

/// The documented signature for calls that another model made ("Thought signatures", FAQ). The provider does not check
/// it.
const UNCHECKED: &str = "skip_thought_signature_validator";

shape! {
    struct Signed<'a> {
        "thoughtSignature" => signature: Text<'a>,
        /// The members of the call itself.
        "functionCall" => call: Raw<'a>,
    }
}

/// Writes the parts of a turn.
pub(super) fn write<'a>(parts: &[&'a Part], out: &mut Messages<'a>) {
    let mut wants_signature = generation(out.model()) == Some(Generation::Newer);
    let mut parts = parts.iter().copied().peekable();
    while let Some(part) = parts.next() {
        let written = match part {
            Part::Text { .. } | Part::Refusal(_) => {
                let text = part.as_text().unwrap_or_default();
                let provider_state = out.replay(part.provider_state());
                let is_blank = text.is_empty() && provider_state.is_none();
                (!is_blank).then(|| Object::new().with("text", text).with_provider_state(provider_state))
            }
            Part::Reasoning { text, provider_state } => {
                let provider_state = out.fits(provider_state.as_ref());
                provider_state.map(|_| Object::new().with("text", text.as_str()).with_provider_state(provider_state))
            }
            Part::Call(call) => {
                let provider_state = out.replay(call.provider_state());
                let is_unsigned = std::mem::take(&mut wants_signature) && !provider_state.is_some_and(is_signed);
                if gemini_name(call) != call.name {
                    out.lose("a name that no tool can have");
                }
                let inner = provider_state.and_then(|json| read::<Signed<'_>>(json).ok()).and_then(|part| part.call.0);
                let function =
                    named(call).with("args", Node::Raw(out.arguments_of(call).into())).with_provider_state(inner);
                let part = Object::new().with("functionCall", function);
                let part = if is_unsigned { part.with("thoughtSignature", UNCHECKED) } else { part };
                Some(match inner {
                    Some(_) => part.with_members(provider_state.map(|json| without(json, &["functionCall"]).into())),
                    None => part.with_provider_state(provider_state),
                })
            }
            Part::Media(media) => {
                // The provider state after a file marks the file as made by Gemini.
                let mark = parts.peek().and_then(|next| out.fits(mark(next)));
                let data = mark.and(data(media));
                if data.is_some() {
                    parts.next();
                }
                data.map(|data| Object::new().with("inlineData", data).with_provider_state(mark))
            }
            Part::ProviderState(provider_state) => {
                out.fits(Some(provider_state)).map(|json| Object::new().with_provider_state(Some(json)))
            }
            Part::Citation(_) => None,
        };
        match written {
            Some(written) => out.join("model", "parts", written),
            None if matches!(part, Part::Text { .. } | Part::Refusal(_)) => {}
            None => out.lose_part(part),
        }
    }
}

/// The id and the name of a call. Generated ids are left out, so that the request contains the call as Gemini sent it;
/// Gemini then matches results by name and order.
pub(super) fn named(call: &CallMessage) -> Object<'_> {
    let object = if call.id.is_generated() { Object::new() } else { Object::new().with("id", call.id.as_str()) };
    object.with("name", gemini_name(call))
}

/// The name of a call. Gemini refuses names that break its rule, which also allows dots and colons.
fn gemini_name(call: &CallMessage) -> Cow<'_, str> {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte);
    let begins = call.name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    if begins && call.name.len() <= MAX_NAME_BYTES && call.name.bytes().all(is_legal) {
        return Cow::Borrowed(&call.name);
    }
    let name = plain_name(call);
    if name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        return name;
    }
    // The first character is replaced, not prefixed, so that the name does not become too long.
    format!("_{}", name.get(1..).unwrap_or_default()).into()
}

/// Whether the provider state of a part has a signature.
fn is_signed(json: &str) -> bool {
    read::<Signed<'_>>(json).is_ok_and(|part| part.signature.came())
}

fn mark(part: &Part) -> Option<&ProviderState> {
    if let Part::ProviderState(provider_state) = part { Some(provider_state) } else { None }
}

fn data(media: &Media) -> Option<Object<'_>> {
    media.data().map(|data| Object::new().with("mimeType", media.media_type()).with("data", data))
}
