//! [`Message::repair`]: gives every call of a history exactly one result.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::call::CallId;
use crate::wire::history::{CallMessage, Content, Message, Part, ResultMessage};

/// The substitute for a call's missing result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// The call did not begin, or had no effect: the model may call again.
    Cancelled,
    /// The call may have begun and may have taken effect: the model must check first.
    OutcomeUnknown,
}

impl Message {
    /// Completes a stored history: after each assistant's message, every call has exactly one result, in call order.
    /// Results without a call, repeated calls and repeated results are removed.
    ///
    /// A missing result becomes `outcome_unknown` if `may_have_begun` returns `true` for the call, so that the model
    /// checks first. Otherwise it becomes `cancelled`.
    ///
    /// ```
    /// use tool_runtime::wire::Message;
    /// use tool_runtime::wire::history::{CallMessage, Part};
    ///
    /// let call = CallMessage::new("call_1", "mail__send", "{}");
    /// let history = [Message::Assistant(vec![Part::Call(call)])];
    /// let whole = Message::repair(&history, |_| true);
    /// assert!(matches!(&whole[1], Message::Result(result) if result.content.contains("outcome_unknown")));
    /// ```
    #[must_use]
    pub fn repair(history: &[Self], mut may_have_begun: impl FnMut(&CallId) -> bool) -> Vec<Self> {
        repair(history, |id| if may_have_begun(id) { Missing::OutcomeUnknown } else { Missing::Cancelled })
    }
}

/// Like [`Message::repair`], but `missing` chooses the substitute for each missing result.
pub(crate) fn repair(history: &[Message], missing: impl FnMut(&CallId) -> Missing) -> Vec<Message> {
    let mut out = Vec::with_capacity(history.len());
    for (_, piece) in pieces(history, missing) {
        match piece {
            Piece::System(text) => out.push(Message::System(text.to_owned())),
            Piece::User(content) => out.push(Message::User(content.to_vec())),
            Piece::Assistant { parts, answered } => {
                out.push(Message::Assistant(parts.into_iter().cloned().collect()));
                out.extend(answered.into_iter().map(|(_, result)| Message::Result(result.into_owned())));
            }
        }
    }
    out
}

/// A message with its results. Encoders read pieces, so that none of them can separate a call from its result.
pub(crate) enum Piece<'a> {
    System(&'a str),
    User(&'a [Content]),
    /// A turn of the model, and its calls with their results, in call order.
    Assistant {
        parts: Vec<&'a Part>,
        answered: Vec<(&'a CallMessage, Cow<'a, ResultMessage>)>,
    },
}

/// The pieces of a history, each with the index of its message. A result belongs to the assistant's message before it
/// (rule M1 of `wire`).
pub(crate) fn pieces<'a>(
    history: &'a [Message],
    mut missing: impl FnMut(&CallId) -> Missing,
) -> Vec<(usize, Piece<'a>)> {
    let mut out = Vec::with_capacity(history.len());
    for (at, message) in history.iter().enumerate() {
        match message {
            Message::System(text) => out.push((at, Piece::System(text))),
            Message::User(content) => out.push((at, Piece::User(content))),
            Message::Result(_) => {}
            Message::Assistant(parts) => {
                let later = history.iter().skip(at + 1);
                let mut results = BTreeMap::new();
                for message in later.take_while(|message| !matches!(message, Message::Assistant(_))) {
                    if let Message::Result(result) = message {
                        results.entry(&result.id).or_insert(result);
                    }
                }
                let mut seen = BTreeSet::new();
                let mut is_first = |part: &'a Part| part.as_call().is_none_or(|call| seen.insert(&call.id));
                let parts: Vec<_> = parts.iter().filter(|part| is_first(part)).collect();
                let answered = parts
                    .iter()
                    .filter_map(|part| part.as_call())
                    .map(|call| {
                        let result = results.get(&call.id).map_or_else(
                            || Cow::Owned(ResultMessage::missing(call.id.clone(), missing(&call.id))),
                            |result| Cow::Borrowed(*result),
                        );
                        (call, result)
                    })
                    .collect();
                out.push((at, Piece::Assistant { parts, answered }));
            }
        }
    }
    out
}
