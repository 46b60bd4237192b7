//! Encodes a model's turn for Chat Completions as one message, with its provider state.
//!
//! `DeepSeek` refuses every later request if `reasoning_content` is missing in a turn with calls, and ignores it in
//! other turns. `OpenRouter`, vLLM and other servers accept all reasoning. The encoder therefore sends all of it back
//! to its model.

use std::borrow::Cow;

use crate::wire::Format;
use crate::wire::decode::fields::{Integer, Raw, read, shape};
use crate::wire::encode::{Messages, Node, Object, chat_id};
use crate::wire::formats::openai_chat::media::url;
use crate::wire::history::{CallMessage, Part, ProviderState};

shape! {
    /// The provider state of a part.
    struct ProviderData<'a> {
        "message" => message: Raw<'a>,
        "images" => images: Integer,
        "refusal" => refusal: Raw<'a>,
        "content" => content: Raw<'a>,
        "reasoning_content" => reasoning_content: Raw<'a>,
        "reasoning" => reasoning: Raw<'a>,
        "custom" => custom: Raw<'a>,
        "legacy" => legacy: Raw<'a>,
        "audio" => audio: Raw<'a>,
        "annotations" => annotations: Raw<'a>,
        "reasoning_details" => details: Raw<'a>,
        "thinking_blocks" => blocks: Raw<'a>,
    }
}

/// The message of a turn while it is built.
#[derive(Default)]
pub(super) struct Turn<'a> {
    text: String,
    /// The content as a list, for servers that put thinking in it.
    content: Vec<Node<'a>>,
    is_list: bool,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    refusal: Option<&'a str>,
    calls: Vec<Object<'a>>,
    legacy: Option<Object<'a>>,
    images: Vec<Object<'a>>,
}

impl<'a> Turn<'a> {
    /// Writes the message of a turn, unless it is empty.
    pub(super) fn write(parts: &[&'a Part], out: &mut Messages<'a>) {
        let mut turn = Self::default();
        let message = parts.iter().find_map(|part| message(part, out));
        let (mut images, mut audio, mut sources, mut thoughts, mut refuses) = (0, false, false, false, false);
        let mut members = None;
        if let Some(kept) = &message {
            images = kept.images.0.unwrap_or(0);
            refuses = kept.refusal.0 == Some("true");
            members = kept.message.0;
            let inner: ProviderData<'_> = members.and_then(|members| read(members).ok()).unwrap_or_default();
            audio = inner.audio.0.is_some();
            sources = inner.annotations.0.is_some();
            thoughts = inner.details.0.is_some() || inner.blocks.0.is_some();
        }
        let is_legacy = parts.iter().filter(|part| part.as_call().is_some()).count() == 1;
        for part in parts {
            match part {
                Part::Text { text, provider_state } => {
                    let own = provider_state.as_ref().is_some_and(|state| state.format() == Format::OpenAiChat);
                    if !own {
                        out.replay(provider_state.as_ref());
                    }
                    turn.text(text, own);
                }
                Part::Refusal(text) if refuses => turn.refusal = Some(text),
                Part::Refusal(text) => turn.text(text, false),
                Part::Reasoning { text, provider_state } => match kept(provider_state.as_ref(), out) {
                    // Some servers list the reasoning only as a member of the message.
                    Some(kept) if turn.reason(text, &kept) || thoughts => {}
                    _ => out.lose_part(part),
                },
                Part::Call(call) => turn.call(call, is_legacy, out),
                Part::Media(media) if images > 0 => {
                    images -= 1;
                    let image = |url| Object::of_type("image_url").with("image_url", Object::new().with("url", url));
                    match url(media) {
                        Some(url) => turn.images.push(image(url)),
                        None => out.lose_part(part),
                    }
                }
                // The server finds the audio by its id.
                Part::Media(_) if std::mem::take(&mut audio) => {}
                Part::Citation(_) if sources => {}
                Part::ProviderState(provider_state) => match kept(Some(provider_state), out) {
                    Some(ProviderData { content: Raw(Some(json)), .. }) => turn.piece(json),
                    Some(ProviderData { message: Raw(Some(_)), .. }) => {}
                    _ => out.lose_part(part),
                },
                Part::Media(_) | Part::Citation(_) => out.lose_part(part),
            }
        }
        turn.push(members, out);
    }

    fn text(&mut self, text: &str, joined: bool) {
        if text.is_empty() {
            return;
        }
        if !joined && !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.text.push_str(text);
        self.content.push(Object::of_type("text").with("text", text.to_owned()).into());
    }

    fn piece(&mut self, json: &'a str) {
        self.is_list = true;
        self.content.push(Node::Raw(Cow::Borrowed(json)));
    }

    /// Writes reasoning. Returns `false` if it has no field of its own.
    fn reason(&mut self, text: &str, kept: &ProviderData<'a>) -> bool {
        if let Some(json) = kept.content.0 {
            self.piece(json);
        }
        let fields = [(&mut self.reasoning_content, kept.reasoning_content.0), (&mut self.reasoning, kept.reasoning.0)];
        let mut has_place = kept.content.0.is_some();
        for (field, _) in fields.into_iter().filter(|(_, came)| came.is_some()) {
            field.get_or_insert_default().push_str(text);
            has_place = true;
        }
        has_place
    }

    fn call(&mut self, call: &'a CallMessage, only: bool, out: &mut Messages<'a>) {
        let provider_state = out.replay(call.provider_state());
        let kept: ProviderData<'a> = provider_state.and_then(|json| read(json).ok()).unwrap_or_default();
        let name = out.name_of(call);
        let function =
            |out: &mut Messages<'a>| Object::new().with("name", name.clone()).with("arguments", out.arguments_of(call));
        if kept.legacy.0.is_some() && only {
            self.legacy = Some(function(out));
            return;
        }
        let item = Object::new().with("id", chat_id(call));
        let provider_state = provider_state.filter(|_| kept.legacy.0.is_none());
        self.calls.push(match kept.custom.0 {
            Some(_) => item.with("type", "custom").with_provider_state(provider_state),
            None => item.with("type", "function").with("function", function(out)).with_provider_state(provider_state),
        });
    }

    fn push(self, members: Option<&'a str>, out: &mut Messages<'a>) {
        let has_calls = !self.calls.is_empty() || self.legacy.is_some();
        let members = members.filter(|members| *members != "{}");
        let has_audio =
            members.is_some_and(|members| read::<ProviderData<'_>>(members).is_ok_and(|kept| kept.audio.0.is_some()));
        let said = has_calls || !self.text.is_empty() || self.refusal.is_some() || !self.images.is_empty() || has_audio;
        if !said {
            // Servers refuse a message without content.
            if members.is_some() || self.is_list || self.reasoning.is_some() || self.reasoning_content.is_some() {
                out.lose("reasoning without an answer");
            }
            return;
        }
        let content = match (self.is_list, self.text.is_empty()) {
            (true, _) => Node::List(self.content),
            (false, true) => Node::Null,
            (false, false) => self.text.into(),
        };
        let mut message = Object::new().with("role", "assistant").with("content", content);
        if let Some(reasoning) = self.reasoning_content {
            message = message.with("reasoning_content", reasoning);
        }
        if let Some(reasoning) = self.reasoning {
            message = message.with("reasoning", reasoning);
        }
        if let Some(refusal) = self.refusal {
            message = message.with("refusal", refusal);
        }
        if !self.images.is_empty() {
            message = message.with("images", self.images);
        }
        if !self.calls.is_empty() {
            message = message.with("tool_calls", self.calls);
        }
        if let Some(function) = self.legacy {
            message = message.with("function_call", function);
        }
        out.push(message.with_provider_state(members));
    }
}

/// Whether a call arrived as the single `function_call` of older servers, so that its result needs the same form.
pub(super) fn is_legacy(out: &Messages<'_>, call: &CallMessage, calls: usize) -> bool {
    calls == 1 && kept(call.provider_state(), out).is_some_and(|kept| kept.legacy.0.is_some())
}

fn kept<'a>(provider_state: Option<&'a ProviderState>, out: &Messages<'_>) -> Option<ProviderData<'a>> {
    let provider_state = provider_state.filter(|provider_state| out.takes(provider_state))?;
    read(provider_state.json()).ok()
}

/// The provider state that belongs to the whole message.
fn message<'a>(part: &'a Part, out: &Messages<'_>) -> Option<ProviderData<'a>> {
    let Part::ProviderState(provider_state) = part else { return None };
    kept(Some(provider_state), out).filter(|kept| kept.message.0.is_some())
}
