//! Encodes a model's turn for Anthropic: each block as Anthropic sent it, in its place.

use crate::wire::decode::fields::{Object as Shape, Raw, Text, read, shape};
use crate::wire::encode::{Messages, Node, Object, plain_id};
use crate::wire::formats::anthropic::shape::FALLBACK;
use crate::wire::history::{CallMessage, Part, Piece, ProviderState};

shape! {
    /// The fields of provider state that the encoder reads.
    struct Block<'a> {
        "type" => kind: Text<'a>,
        "id" => id: Text<'a>,
        "tool_use_id" => answers: Text<'a>,
        "input" => input: Raw<'a>,
        "citations" => citations: Raw<'a>,
        "caller" => caller: Shape<Caller<'a>>,
        "container" => container: Shape<Container<'a>>,
    }
}

shape! {
    /// The origin of a call: the model, or code that a server tool runs.
    struct Caller<'a> {
        "tool_id" => tool: Text<'a>,
    }
}

shape! {
    struct Container<'a> {
        "id" => id: Text<'a>,
    }
}

/// Writes the parts of a turn.
pub(super) fn write<'a>(parts: &[&'a Part], out: &mut Messages<'a>) {
    let unanswered = unanswered(parts, out);
    let mut turn = Turn { unanswered, thinking: Vec::new(), is_cited: false, out };
    let (declined, rest) = parts.split_at(turn.declined(parts));
    let lost = turn.without_results(declined, rest);
    for part in declined {
        turn.declined_part(part, &lost);
    }
    for part in rest {
        turn.part(part);
    }
    // The provider answers "The final block in an assistant message cannot be `thinking`". Its documentation does not
    // say whether that holds for every message or only for the last one, so no turn ends with thinking. A paused turn
    // does not end with thinking either: the model continued without it, and the provider refuses thinking whose
    // preceding thinking changed ("Prefix checks on thinking blocks").
    for _ in std::mem::take(&mut turn.thinking) {
        turn.out.lose("reasoning without an answer");
    }
}

struct Turn<'t, 'a> {
    /// The ids of server tools' calls that will never have a result.
    unanswered: Vec<String>,
    /// Thinking that is written when another block follows it.
    thinking: Vec<Object<'a>>,
    /// Whether the text of the turn already contains its citations.
    is_cited: bool,
    out: &'t mut Messages<'a>,
}

impl<'a> Turn<'_, 'a> {
    fn part(&mut self, part: &'a Part) {
        match part {
            Part::Text { .. } | Part::Refusal(_) => self.text(part),
            Part::Reasoning { text, .. } => self.reasoning(text, part),
            Part::Call(call) => self.call(call),
            Part::ProviderState(provider_state) => self.provider_state(provider_state, part),
            Part::Citation(_) if self.is_cited => {}
            part => self.out.lose_part(part),
        }
    }

    /// The number of parts before the last model that took over from a model that declined.
    fn declined(&self, parts: &[&Part]) -> usize {
        let takes_over = |part: &&Part| {
            let Part::ProviderState(provider_state) = part else { return false };
            self.out.fits(Some(provider_state)).and_then(block).is_some_and(|block| block.kind.get() == FALLBACK)
        };
        parts.iter().rposition(takes_over).unwrap_or(0)
    }

    /// The ids of server tools' calls in `declined` that have no result.
    fn without_results(&self, declined: &[&Part], rest: &[&Part]) -> Vec<String> {
        let mut open = Vec::new();
        if !declined.is_empty() {
            answer(declined, true, &mut open, self.out);
            answer(rest, false, &mut open, self.out);
        }
        open
    }

    /// Writes a part of a model that declined. Only its text and the calls of server tools with their results are sent
    /// back; the provider refuses the rest ("Refusals and fallback", continuing the conversation). The client does not
    /// execute its calls.
    fn declined_part(&mut self, part: &'a Part, without_results: &[String]) {
        let block =
            part.provider_state().and_then(|provider_state| self.out.fits(Some(provider_state))).and_then(block);
        let is_kept = match (part, block) {
            (Part::Reasoning { .. }, block) => block.is_none(),
            (Part::ProviderState(_), Some(block)) => {
                block.kind.get() != "connector_text" && !without_results.iter().any(|id| id == block.id.get())
            }
            _ => true,
        };
        if is_kept {
            self.part(part);
        } else {
            self.out.lose("parts of a model that declined");
        }
    }

    // The provider refuses blank text blocks.
    fn text(&mut self, part: &'a Part) {
        let text = part.as_text().unwrap_or_default();
        let provider_state = self.out.replay(part.provider_state());
        if !text.trim().is_empty() {
            self.is_cited |= provider_state.and_then(block).is_some_and(|block| block.citations.0.is_some());
            self.block(Object::of_type("text").with("text", text).with_provider_state(provider_state));
        }
    }

    // Thinking is sent back unmodified to the model that signed it (rule A5 of `wire`). The documentation requires it
    // within a turn with calls and recommends it across turns ("Thinking", preserving thinking blocks). Other models
    // ignore it.
    fn reasoning(&mut self, text: &'a str, part: &'a Part) {
        let sealed = self.out.fits(part.provider_state());
        let kind = sealed.and_then(block);
        match kind.as_ref().map_or("", |block| block.kind.get()) {
            "thinking" => {
                self.thinking.push(Object::new().with("thinking", text).with_provider_state(sealed));
            }
            "redacted_thinking" => self.thinking.push(Object::new().with_provider_state(sealed)),
            _ => self.out.lose_part(part),
        }
    }

    fn call(&mut self, call: &'a CallMessage) {
        let mut provider_state = self.out.replay(call.provider_state());
        let caller = provider_state.and_then(block).and_then(|block| block.caller.0);
        if caller.is_some_and(|caller| self.is_unanswered(caller.tool.get())) {
            self.out.lose("the code that made a call");
            provider_state = None;
        }
        let block = Object::of_type("tool_use").with("id", plain_id(call)).with("name", self.out.name_of(call));
        let block = block.with("input", Node::Raw(self.out.arguments_of(call).into()));
        self.block(block.with_provider_state(provider_state));
    }

    fn provider_state(&mut self, provider_state: &'a ProviderState, part: &Part) {
        let json = self.out.fits(Some(provider_state));
        let Some((json, block)) = json.and_then(|json| Some((json, block(json)?))) else {
            return self.out.lose_part(part);
        };
        match (block.kind.get(), &block.container.0) {
            // The provider refuses an expired container, but the time of expiry is unknown: `expires_at` is a shorter
            // rolling value ("Code execution tool", container reuse). The request always names the container, as the AI
            // SDK does.
            ("", Some(container)) => self.out.field("container", container.id.get().to_owned()),
            ("", None) => self.out.lose_part(part),
            // The input is not an object if the turn was cut off within it.
            _ if block.is_server_call() && !block.input.0.is_none_or(|input| input.starts_with('{')) => {
                self.out.lose("a call of a server tool that broke off");
            }
            _ if block.is_server_call() && self.is_unanswered(block.id.get()) => {
                self.out.lose("a call of a server tool without its result");
            }
            _ => self.block(Object::new().with_provider_state(Some(json))),
        }
    }

    fn block(&mut self, block: Object<'a>) {
        for thinking in self.thinking.drain(..) {
            self.out.join("assistant", "content", thinking);
        }
        self.out.join("assistant", "content", block);
    }

    fn is_unanswered(&self, id: &str) -> bool {
        self.unanswered.iter().any(|unanswered| unanswered == id)
    }
}

impl Block<'_> {
    fn is_server_call(&self) -> bool {
        self.kind.get().ends_with("_tool_use")
    }
}

fn block(json: &str) -> Option<Block<'_>> {
    read(json).ok()
}

/// The ids of server tools' calls that will never have a result. The provider completes a call in a later response, for
/// example after a pause, and refuses it once the user has written (A5).
fn unanswered(parts: &[&Part], out: &Messages<'_>) -> Vec<String> {
    let mut open = Vec::new();
    answer(parts, true, &mut open, out);
    for piece in out.later() {
        match piece {
            _ if open.is_empty() => break,
            Piece::Assistant { parts, .. } => answer(parts, false, &mut open, out),
            Piece::User(content) if !content.is_empty() => return open,
            Piece::User(_) | Piece::System(_) => {}
        }
    }
    Vec::new()
}

/// Removes from `open` the server tools' calls that have a result in these parts. If `is_own` is `true`, also adds the
/// calls of these parts.
fn answer(parts: &[&Part], is_own: bool, open: &mut Vec<String>, out: &Messages<'_>) {
    for part in parts {
        let Part::ProviderState(provider_state) = part else { continue };
        let Some(block) = out.fits(Some(provider_state)).and_then(block) else { continue };
        let answers = block.answers.get();
        if block.is_server_call() && is_own {
            open.push(block.id.get().to_owned());
        } else if let Some(at) = open.iter().position(|id| id == answers) {
            open.remove(at);
        } else if is_own && !answers.is_empty() && !open.is_empty() {
            // A result that names no open call is taken for the result of the first open call.
            open.remove(0);
        }
    }
}
