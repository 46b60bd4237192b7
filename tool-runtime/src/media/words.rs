//! Describes a file in text, for formats and clients whose results are text.

use crate::media::Media;

impl Media {
    /// The name of the file. Some providers require a name, so a file without one gets a name for its type.
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

    /// The content of a text file below its name; `None` for other files.
    pub(crate) fn quoted(&self) -> Option<String> {
        let text = self.text()?;
        Some(format!("{}:\n\n{text}", self.file_name()))
    }

    /// A text for a result's file that cannot be sent: the content of a text file, a sentence for other files.
    pub(crate) fn in_words(&self) -> String {
        let unsent =
            || format!("[The tool also returned a file ({}) that cannot be passed on to this model.]", self.label());
        self.quoted().unwrap_or_else(unsent)
    }
}
