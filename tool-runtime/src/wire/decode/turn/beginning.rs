//! Cuts an answer that is over the size limit to its beginning.

use crate::text::cut;
use crate::wire::decode::turn::{Call, Turn};

/// The maximum number of bytes of text to keep: enough to show the runaway text, and few enough for later requests.
const TEXT: usize = 16 << 10;

/// The maximum number of bytes to keep of any other text: the arguments of a call, a name, an id.
const PIECE: usize = 1 << 10;

impl Turn {
    /// Keeps the beginning of the text, of the refusal and of each call, and removes the other parts. Returns the
    /// number of bytes removed, without those of media, citations and ids.
    pub(super) fn keep_beginning(&mut self) -> usize {
        let mut gone = shorten(&mut self.text, TEXT) + shorten(&mut self.refusal, TEXT);
        gone += self.layout.keep_beginning(self.text.len());
        gone += self.calls.iter_mut().map(Call::keep_beginning).sum::<usize>();
        for word in [&mut self.response_id, &mut self.model, &mut self.provider_finish].into_iter().flatten() {
            shorten(word, PIECE);
        }
        gone
    }
}

impl Call {
    fn keep_beginning(&mut self) -> usize {
        if let Some(object) = self.object.take_if(|object| object.len() > PIECE) {
            object.as_ref().clone_into(&mut self.text);
        }
        self.wire_id.take_if(|id| id.len() > PIECE);
        self.id.take_if(|id| id.as_str().len() > PIECE);
        shorten(&mut self.text, PIECE) + shorten(&mut self.name, PIECE)
    }
}

/// Cuts a string and returns the number of bytes removed.
fn shorten(text: &mut String, most: usize) -> usize {
    let (before, kept) = (text.len(), cut(text, most).len());
    text.truncate(kept);
    text.shrink_to_fit();
    before - kept
}
