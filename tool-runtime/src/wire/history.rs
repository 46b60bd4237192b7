//! Provider-independent conversations: messages, their parts, and the repair of a stored history.
//!
//! A model's turn is kept in order and without loss. Data that only its provider understands, such as a signature or
//! encrypted reasoning, is [`ProviderState`] of its part. The encoder of the same format writes it back unchanged,
//! because providers refuse a request in which signed or encrypted reasoning is missing or altered. Other formats leave
//! it out and report the loss.

mod bounded;
mod call;
mod media;
pub(crate) mod message;
mod part;
mod provider_state;
mod repair;
mod result;

pub(crate) use crate::media::Media;
pub(crate) use bounded::bounded;
pub use call::CallMessage;
pub(crate) use call::object_text;
pub use message::Content;
pub(crate) use message::Message;
pub(crate) use message::joined;
pub use part::{Citation, Part};
pub use provider_state::ProviderState;
pub(crate) use repair::{Missing, Piece, pieces, repair};
pub use result::ResultMessage;
