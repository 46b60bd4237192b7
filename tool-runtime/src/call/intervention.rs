//! [`Intervention`]: a change to a call by a person or by an earlier call. The model reads it with the result.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::call::{ArgumentChange, CallId};
use crate::text::{plain, pointer, sentence};

/// The maximum number of changed arguments that a model reads; further changes are only counted.
const MAX_LISTED_CHANGES: usize = 16;

/// The maximum number of characters of an argument's name (`NAME`), and of bytes of its value (`VALUE`), in the
/// sentence.
const NAME: usize = 64;
const VALUE: usize = 512;

/// A person's change to a call, or an earlier call that already had its effect. The model reads a sentence about it
/// with the result, because the call in the history stays as the model wrote it: providers sign it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Intervention {
    /// A person changed the arguments at these places. Sensitive values are masked. At most 64 places are listed.
    Edited(Vec<ArgumentChange>),
    /// A person supplied the value. The tool did not run.
    Answered,
    /// An earlier call already had the effect. The result is the result of that call, and the tool did not run again.
    Earlier {
        /// The id of the run of the earlier call.
        run_id: Arc<str>,
        /// The id of the earlier call.
        call_id: CallId,
    },
}

impl Intervention {
    /// Returns the places that a person edited; empty for any other intervention.
    pub(super) fn edits(&self) -> &[ArgumentChange] {
        match self {
            Self::Edited(changes) => changes,
            Self::Answered | Self::Earlier { .. } => &[],
        }
    }

    /// The sentence for [`Self::Earlier`].
    pub(crate) const EARLIER: &str =
        "The tool did not run again: an earlier call already caused this effect; this is its result.";

    /// Returns the run and the id of the earlier call that had the effect.
    pub(super) fn earlier(&self) -> Option<(&str, &CallId)> {
        if let Self::Earlier { run_id, call_id } = self { Some((run_id, call_id)) } else { None }
    }

    /// Returns the sentence that the model reads with the result.
    pub(super) fn sentence(&self) -> String {
        let changes = match self {
            Self::Edited(changes) => changes,
            Self::Answered => return "The tool did not run: a person provided this result instead.".to_owned(),
            Self::Earlier { .. } => return Self::EARLIER.to_owned(),
        };
        let names: Vec<_> =
            changes.iter().take(MAX_LISTED_CHANGES).map(|change| format!("`{}`", place(change))).collect();
        let now = names.iter().zip(changes).map(|(name, change)| match &change.after {
            Some(value) => format!("{name} is {}", sentence(value.get(), VALUE)),
            None => format!("{name} is left out"),
        });
        let now = now.collect::<Vec<_>>().join(", ");
        let more = match changes.len().saturating_sub(MAX_LISTED_CHANGES) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        format!("A person changed {}{more} before it ran: {now}{more}.", names.join(", "))
    }
}

/// Returns the name of a changed argument, or the pointer to a changed place inside an argument.
fn place(change: &ArgumentChange) -> String {
    match change.pointer.strip_prefix('/') {
        Some(top) if !top.contains('/') => plain(&pointer::unescape(top), NAME),
        _ => plain(&change.pointer, NAME),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{ArgumentChangeKind, JsonText};

    fn changed(pointer: String, after: Option<&str>) -> ArgumentChange {
        ArgumentChange::new(ArgumentChangeKind::Edited, pointer, None, after.map(JsonText::known))
    }

    #[test]
    fn the_sentence_names_what_the_tool_got() {
        let edited = [("/to", Some("[\"b\"]")), ("/a/x~1y", Some("1")), ("/b~1c", None)];
        let edited = edited.map(|(pointer, after)| changed(pointer.to_owned(), after)).to_vec();
        assert_eq!(
            Intervention::Edited(edited).sentence(),
            "A person changed `to`, `/a/x~1y`, `b/c` before it ran: `to` is [\"b\"], `/a/x~1y` is 1, `b/c` is left out."
        );
    }

    #[test]
    fn the_sentence_is_bounded() {
        let long = format!("\"{}\"", "x".repeat(1 << 20));
        let many = (0..64).map(|at| changed(format!("/{at}{}", "n`\n".repeat(99)), Some(&long))).collect();
        let sentence = Intervention::Edited(many).sentence();
        assert!(sentence.len() < 12_000 && sentence.ends_with(", and 48 more."), "{}", sentence.len());
        assert!(!sentence.contains('\n'));
    }
}
