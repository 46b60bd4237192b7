//! What is read of a frame. Everything may be absent, null or of a kind nobody has seen yet (R6).

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// A string that borrows from the frame where it can.
#[derive(Deserialize)]
pub(super) struct Text<'f>(#[serde(borrow)] pub(super) Cow<'f, str>);

/// A chunk of a stream, or a whole body.
#[derive(Deserialize)]
pub(super) struct Frame<'f> {
    #[serde(borrow)]
    pub(super) id: Option<Text<'f>>,
    #[serde(borrow)]
    pub(super) choices: Option<Vec<Choice<'f>>>,
    #[serde(borrow)]
    pub(super) error: Option<&'f RawValue>,
    pub(super) usage: Option<UsageFrame>,
}

#[derive(Deserialize)]
pub(super) struct Choice<'f> {
    pub(super) index: Option<i64>,
    #[serde(borrow)]
    pub(super) delta: Option<Message<'f>>,
    #[serde(borrow)]
    pub(super) message: Option<Message<'f>>,
    #[serde(borrow)]
    pub(super) finish_reason: Option<Text<'f>>,
}

#[derive(Deserialize)]
pub(super) struct Message<'f> {
    #[serde(borrow)]
    pub(super) content: Option<&'f RawValue>,
    #[serde(borrow)]
    pub(super) refusal: Option<Text<'f>>,
    #[serde(borrow)]
    pub(super) tool_calls: Option<Vec<CallFrame<'f>>>,
    #[serde(borrow)]
    pub(super) function_call: Option<FunctionFrame<'f>>,
}

#[derive(Deserialize)]
pub(super) struct CallFrame<'f> {
    pub(super) index: Option<i64>,
    #[serde(borrow)]
    pub(super) id: Option<Text<'f>>,
    #[serde(borrow)]
    pub(super) function: Option<FunctionFrame<'f>>,
}

#[derive(Deserialize)]
pub(super) struct FunctionFrame<'f> {
    #[serde(borrow)]
    pub(super) name: Option<Text<'f>>,
    #[serde(borrow)]
    pub(super) arguments: Option<&'f RawValue>,
}

#[derive(Deserialize)]
pub(super) struct UsageFrame {
    pub(super) prompt_tokens: Option<u64>,
    pub(super) completion_tokens: Option<u64>,
}

/// What the arguments of a delta are (R7).
pub(super) enum Piece<'f> {
    Text(Cow<'f, str>),
    Object(&'f str),
    Nothing,
}

impl<'f> FunctionFrame<'f> {
    pub(super) fn piece(&self) -> Option<Piece<'f>> {
        let Some(raw) = self.arguments.map(RawValue::get) else { return Some(Piece::Nothing) };
        Some(match raw.as_bytes().first() {
            Some(b'"') => Piece::Text(serde_json::from_str::<Text<'f>>(raw).ok()?.0),
            Some(b'{') => Piece::Object(raw),
            Some(b'n') | None => Piece::Nothing,
            // Another type is kept as text, and found to be no object at the end.
            Some(_) => Piece::Text(Cow::Borrowed(raw)),
        })
    }
}

impl<'f> Message<'f> {
    /// The text: a string, or the text parts of a list.
    pub(super) fn text(&self) -> Cow<'f, str> {
        #[derive(Deserialize)]
        struct Part<'f> {
            #[serde(borrow)]
            text: Option<Text<'f>>,
        }
        let Some(raw) = self.content.map(RawValue::get) else { return Cow::Borrowed("") };
        match raw.as_bytes().first() {
            Some(b'"') => serde_json::from_str::<Text<'f>>(raw).map_or(Cow::Borrowed(""), |text| text.0),
            Some(b'[') => {
                let parts: Vec<Part<'f>> = serde_json::from_str(raw).unwrap_or_default();
                parts.iter().filter_map(|part| part.text.as_ref().map(|text| &*text.0)).collect::<String>().into()
            }
            _ => Cow::Borrowed(""),
        }
    }
}
