//! Media in requests: code that the formats share, and sentences that replace files that a format cannot carry.

use std::borrow::Cow;

use crate::media::Media;
use crate::wire::encode::{Messages, Object};
use crate::wire::history::{Content, ResultMessage};

/// Writes a file as a block of a format; `None` if the format has no place for it.
pub(crate) type Block = for<'a> fn(&'a Media) -> Option<Object<'a>>;

impl<'a> Messages<'a> {
    /// The blocks of a user's message, without blank text. `text` writes a text block.
    pub(crate) fn blocks_of(
        &mut self,
        content: &'a [Content],
        text: impl Fn(Cow<'a, str>) -> Object<'a>,
        block: Block,
    ) -> Vec<Object<'a>> {
        let mut blocks = Vec::with_capacity(content.len());
        for content in content {
            match content {
                Content::Text(said) if said.trim().is_empty() => {}
                Content::Text(said) => blocks.push(text(said.as_str().into())),
                Content::Media(media) => match block(media) {
                    Some(block) => blocks.push(block),
                    None => blocks.push(text(self.unsent_of_user(media).into())),
                },
            }
        }
        blocks
    }

    /// Reports a user's file that the format cannot carry, and returns the sentence that replaces it.
    pub(crate) fn unsent_of_user(&mut self, media: &Media) -> String {
        self.lose(&format!("media of the user ({})", media.essence()));
        format!("[The user sent a file ({}) that cannot be passed on to this model.]", media.label())
    }

    /// The text of a result and the blocks of its files. The text includes files that the format cannot carry: text
    /// files as they are, other files as a sentence.
    pub(crate) fn result_of(&mut self, result: &Cow<'a, ResultMessage>, block: Block) -> (String, Vec<Object<'a>>) {
        let (mut text, mut blocks) = (result.content.clone(), Vec::new());
        // The substitute for a missing result has no files.
        let Cow::Borrowed(result) = result else { return (text, blocks) };
        for media in &result.media {
            match block(media) {
                Some(block) => blocks.push(block),
                None => {
                    if media.quoted().is_none() {
                        self.lose(&format!("media of a result ({})", media.essence()));
                    }
                    text.push_str("\n\n");
                    text.push_str(&media.in_words());
                }
            }
        }
        (text, blocks)
    }
}

/// The content as a `data` URL (RFC 2397), or the URL of the content; `None` for a provider's id.
pub(crate) fn data_url(media: &Media) -> Option<String> {
    let inline = media.data().map(|data| format!("data:{};base64,{data}", media.essence()));
    inline.or_else(|| media.link().map(str::to_owned))
}
