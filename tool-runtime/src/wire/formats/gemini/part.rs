//! Decodes the parts of a turn: text, thoughts, calls and parts that only Gemini understands (rules G2 and G3 of
//! `wire`).

use crate::media::Media;
use crate::wire::WireErrorKind;
use crate::wire::decode::arguments::Piece;
use crate::wire::decode::members::without;
use crate::wire::decode::turn::{BoundTo, Writer};
use crate::wire::formats::gemini::partial::PartialArguments;
use crate::wire::formats::gemini::shape::{FunctionCall, Part};

/// The decoding state between the parts of a turn.
#[derive(Default)]
pub(super) struct Parts {
    /// The call whose arguments are incomplete.
    open: Option<Open>,
    /// Whether the last part is signed, so that no text may be joined to it.
    is_sealed: bool,
}

struct Open {
    call: usize,
    arguments: PartialArguments,
}

impl Parts {
    /// Whether the arguments of a call are incomplete.
    pub(super) const fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Adds a part of the response; `None` if the turn failed. Unsigned text and unsigned thoughts are joined with
    /// those before them. A part with a signature stays separate.
    pub(super) fn add(&mut self, part: &Part<'_>, turn: &mut Writer<'_>) -> Option<()> {
        let is_thought = part.thought.0;
        if let Some(call) = &part.call.0 {
            let continues = self.is_open();
            let at = self.call(&call.value, turn)?;
            let inner = without(call.text, &["id", "name", "args", "partialArgs", "willContinue"]);
            if (part.has_more || inner != "{}") && !continues {
                let mut rest = part.rest(&["functionCall"]);
                if inner != "{}" {
                    rest.pop();
                    let comma = if rest.len() > 1 { "," } else { "" };
                    rest = format!("{rest}{comma}\"functionCall\":{inner}}}");
                }
                turn.bind_call(at, rest, BoundTo::Model);
            }
        } else if part.text.came() && is_thought {
            self.thought(part, turn);
        } else if part.text.came() {
            self.text(part, turn);
        } else if let Some(blob) = part.data.0.as_ref().filter(|_| !is_thought) {
            let came = blob.mime_type.get();
            match Media::base64(came, blob.data.get()).ok().filter(|media| media.media_type() == came) {
                Some(media) => {
                    turn.media(media);
                    // The provider state that follows a file, even if it is empty, marks the file as made by Gemini.
                    turn.provider_state(part.rest(&["inlineData"]), BoundTo::Model);
                }
                // A file that cannot be stored as media is sent back unchanged.
                None => turn.provider_state(part.whole().unwrap_or("{}").to_owned(), BoundTo::Model),
            }
        } else if part.has_more {
            let whole = part.whole().unwrap_or("{}");
            turn.provider_state(whole.to_owned(), bound_to(whole));
        }
        Some(())
    }

    fn text(&mut self, part: &Part<'_>, turn: &mut Writer<'_>) {
        let text = part.text.get();
        if text.is_empty() && !part.has_more {
            return;
        }
        let started = (part.has_more || self.is_sealed).then(|| turn.start_text());
        turn.text(text);
        if let Some(started) = started.filter(|_| part.has_more) {
            turn.bind(started, part.rest(&["text", "thought"]), BoundTo::Model);
        }
        self.is_sealed = part.has_more;
    }

    // Only Gemini accepts its thoughts in a request, so even unsigned ones get provider state.
    fn thought(&mut self, part: &Part<'_>, turn: &mut Writer<'_>) {
        let text = part.text.get();
        if text.is_empty() && !part.has_more {
            return;
        }
        let started = if part.has_more || self.is_sealed {
            let started = turn.start_reasoning();
            turn.reasoning_at(started, text);
            Some(started)
        } else {
            turn.reasoning(text)
        };
        if let Some(started) = started {
            turn.bind(started, part.rest(&["text"]), BoundTo::Model);
        }
        self.is_sealed = part.has_more;
    }

    /// Adds a call, or the next piece of one, and returns its index; `None` if the turn failed.
    fn call(&mut self, call: &FunctionCall<'_>, turn: &mut Writer<'_>) -> Option<usize> {
        let (id, name) = (call.id.get(), call.name.get());
        let continues = call.will_continue.0;
        let broken = |turn: &mut Writer<'_>| {
            turn.fail_with(WireErrorKind::ProtocolViolation);
            None
        };
        if let Some(open) = &self.open {
            // A new call begins before the open call has ended.
            if !name.is_empty() && (name != turn.name(open.call) || call.partial_args.is_empty()) {
                return broken(turn);
            }
            turn.offer_id(open.call, id);
        } else {
            let at = start(id, name, turn)?;
            if !continues && call.partial_args.is_empty() {
                call.args.add(at, turn);
                return Some(at);
            }
            self.open = Some(Open { call: at, arguments: PartialArguments::default() });
        }
        let open = self.open.as_mut()?;
        // Whole arguments together with pieces: the format does not define which of them count.
        let is_whole = !matches!(call.args, Piece::Nothing | Piece::Object("{}"));
        if is_whole || call.partial_args.iter().try_for_each(|value| open.arguments.add(value)).is_err() {
            return broken(turn);
        }
        let at = open.call;
        if !continues {
            if !open.arguments.is_whole() {
                return broken(turn);
            }
            turn.object(at, &open.arguments.to_json());
            self.open = None;
        }
        Some(at)
    }
}

/// The requests that may contain a part that is neither text, a thought, a call nor a file. Any model may read code
/// that Gemini ran and its output, unless the part is signed.
fn bound_to(part: &str) -> BoundTo {
    let is_code = part != "{}" && without(part, &["executableCode", "codeExecutionResult"]) == "{}";
    if is_code { BoundTo::Format } else { BoundTo::Model }
}

/// Returns the earlier call with the same id and name, or starts a new one (R1, O1).
fn start(id: &str, name: &str, turn: &mut Writer<'_>) -> Option<usize> {
    let known = if id.is_empty() { None } else { turn.call_by_id(id) };
    let call = match known.filter(|call| turn.name(*call) == name) {
        Some(call) => call,
        None => turn.start(id, name)?,
    };
    turn.reopen();
    turn.settle_id(call);
    Some(call)
}
