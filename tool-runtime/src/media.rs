//! Images, audio and files that users send and tools return.
//!
//! [`Media`] is checked when it is created and when it is deserialised. It refuses invalid media types, content that
//! does not match its type, URLs other than `http` and `https`, and more than 20 MiB.

pub(crate) mod attachments;
mod checked;
mod content;
mod error;
mod types;
mod words;

pub(crate) use attachments::Attachments;
pub(crate) use attachments::LeftOut;
pub use checked::Media;
pub(crate) use checked::MediaLocation;
pub(crate) use error::MediaError;

/// The maximum number of bytes of one file, and of all media in one history: 20 MiB. In Base64, this fits into a
/// request of 32 MB, the smallest limit that a provider documents.
pub(crate) const MAX_BYTES: usize = 20 * 1024 * 1024;

/// Returns the count in words: `1 file`, `2 files`.
pub(crate) fn files(count: usize) -> String {
    if count == 1 { "1 file".to_owned() } else { format!("{count} files") }
}
