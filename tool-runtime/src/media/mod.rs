//! Images, audio and files: what users send and tools return beside text.
//!
//! [`Media`] is checked when it is made and when it is read: a type that is not a type, bytes that are not what the type
//! says, a URL that no provider may fetch and what is too large never become one.

mod checked;
mod content;
mod error;
mod types;

pub use checked::Media;
pub(crate) use checked::Source;
pub use error::MediaError;

/// The most bytes of one file, and of all media in one history: 20 MiB. In Base64 they fit into a request of 32 MB, the
/// smallest limit that a provider documents.
pub(crate) const MAX_BYTES: usize = 20 * 1024 * 1024;
