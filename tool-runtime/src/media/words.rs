//! A file in words, for formats and clients whose results are text.

use crate::media::Media;

impl Media {
    /// The name of the file, or one that fits its type: some providers require a name.
    pub(crate) fn file_name(&self) -> String {
        let named = |kind: &str| match kind {
            "application/pdf" => "file.pdf",
            "text/plain" => "file.txt",
            "text/markdown" => "file.md",
            "text/csv" => "file.csv",
            "text/html" => "file.html",
            "application/json" => "file.json",
            _ => "file",
        };
        self.name().map_or_else(|| named(self.essence()).to_owned(), str::to_owned)
    }

    /// A text file as text below its name; `None` for any other file.
    pub(crate) fn quoted(&self) -> Option<String> {
        let text = self.text()?;
        Some(format!("{}:\n\n{text}", self.file_name()))
    }

    /// A file of a result that cannot be sent as a file: a text file as text, any other file as a sentence.
    pub(crate) fn in_words(&self) -> String {
        let unsent =
            || format!("[The tool also returned a file ({}) that cannot be passed on to this model.]", self.label());
        self.quoted().unwrap_or_else(unsent)
    }
}
