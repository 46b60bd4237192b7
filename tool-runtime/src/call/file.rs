//! The event that shows a file.

use crate::call::Event;
use crate::media::Media;

/// The maximum length of a file's Base64, in bytes. A longer file is not shown.
const FILE_BYTES: usize = 8 << 20;

impl Event {
    /// Returns the event that shows a file. `None` for a file that only its provider can fetch.
    pub(crate) fn file(media: &Media) -> Option<Self> {
        let media_type = media.essence().to_owned();
        match media.data() {
            Some(data) if data.len() > FILE_BYTES => {
                Some(Self::Status { text: "A file is too large to be shown.".to_owned() })
            }
            Some(data) => Some(Self::File { url: format!("data:{media_type};base64,{data}"), media_type }),
            None => media.link().map(|url| Self::File { media_type, url: url.to_owned() }),
        }
    }
}
