//! Encodes images for Ollama's chat.

use crate::wire::encode::{Messages, Node};
use crate::wire::history::{Content, joined};

/// The text and the images of a user's message; images are plain Base64.
pub(super) fn user<'a>(content: &'a [Content], out: &mut Messages<'a>) -> (String, Vec<Node<'a>>) {
    let (mut texts, mut images) = (Vec::new(), Vec::new());
    for content in content {
        match content {
            Content::Text(text) => texts.push(text.clone()),
            Content::Media(media) => match (media.essence(), media.data()) {
                ("image/jpeg" | "image/png" | "image/webp", Some(data)) => images.push(Node::from(data)),
                _ => texts.push(media.quoted().unwrap_or_else(|| out.unsent_of_user(media))),
            },
        }
    }
    (joined(texts.iter().map(String::as_str)), images)
}
