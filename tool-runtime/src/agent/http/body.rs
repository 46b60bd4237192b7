//! The bytes of a response's body, decompressed while they arrive.

use std::io::{self, Write};

use flate2::write::MultiGzDecoder;
use reqwest::Response;
use reqwest::header::CONTENT_ENCODING;

use crate::error::chain;

/// A response body during its transfer: plain, or gzip of any number of members.
pub(super) struct Body {
    response: Response,
    gzip: Option<MultiGzDecoder<Bounded>>,
    limit: usize,
    taken: usize,
}

/// A writer with a limit, so that a few compressed bytes cannot expand beyond it.
struct Bounded {
    bytes: Vec<u8>,
    room: usize,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(self.room);
        self.room -= count;
        self.bytes.extend(bytes.iter().take(count));
        if count == 0 && !bytes.is_empty() { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(count) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Body {
    /// Creates a body that reads up to one byte more than the limit, which distinguishes a body of exactly that size
    /// from a longer one.
    ///
    /// # Errors
    /// The body has an encoding that was not requested.
    pub(super) fn new(response: Response, limit: usize) -> Result<Self, String> {
        let encodings = response.headers().get_all(CONTENT_ENCODING).iter();
        let names = encodings.flat_map(|value| value.to_str().unwrap_or("?").split(','));
        let mut gzip = None;
        for name in names.map(|name| name.trim().to_ascii_lowercase()).filter(|name| name != "identity") {
            if gzip.is_some() || !matches!(name.as_str(), "gzip" | "x-gzip") {
                return Err("the response has an encoding that was not requested".to_owned());
            }
            gzip = Some(MultiGzDecoder::new(Bounded { bytes: Vec::new(), room: limit.saturating_add(1) }));
        }
        Ok(Self { response, gzip, limit, taken: 0 })
    }

    /// Returns the next bytes, or `None` at the end. Safe to drop between two polls: no received bytes are lost.
    ///
    /// # Errors
    /// The connection broke, or the compressed bytes are not gzip.
    pub(super) async fn chunk(&mut self) -> Result<Option<Vec<u8>>, String> {
        loop {
            let chunk = self.response.chunk().await.map_err(|error| chain(&error.without_url()))?;
            let Some(chunk) = chunk else { return Ok(None) };
            let bytes = match &mut self.gzip {
                None => chunk.to_vec(),
                Some(gzip) => {
                    let written = gzip.write_all(&chunk).and_then(|()| gzip.flush());
                    let bytes = std::mem::take(&mut gzip.get_mut().bytes);
                    match written {
                        Err(error) if bytes.is_empty() => return Err(format!("the gzip stream is broken: {error}")),
                        // The next chunk returns the error again, but not these bytes.
                        Ok(()) | Err(_) => bytes,
                    }
                }
            };
            self.taken = self.taken.saturating_add(bytes.len());
            if !bytes.is_empty() {
                return Ok(Some(bytes));
            }
        }
    }

    /// Whether the body is longer than the limit.
    pub(super) const fn is_too_long(&self) -> bool {
        self.taken > self.limit
    }
}
