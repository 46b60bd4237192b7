//! Text files below the workspace folder.

use std::collections::BTreeMap;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;
use tool_runtime::{Precondition, ToolContext, ToolError, capability, tool};

use crate::Failure;

/// The default number of bytes that are read of a file.
const DEFAULT_BYTES: u64 = 16 * 1024;

/// The number of bytes of a file that the precondition of a replacement states.
const COMPARED_BYTES: u64 = 1024 * 1024;

/// Reads files below the workspace folder.
#[capability(effect = read_only)]
#[async_trait]
pub trait FileReader {
    /// Reads the first bytes of a text file.
    async fn read(&self, path: &str, max_bytes: u64) -> Result<FileText, Failure>;
    /// Passes the path and text of every text file to `each`, on the caller's thread, until it returns `false`.
    ///
    /// # Errors
    /// A folder or a file cannot be read.
    fn visit(&self, each: &mut dyn FnMut(&str, &str) -> bool) -> Result<(), Failure>;
}

/// Writes files below the workspace folder.
#[capability(effect = state_change)]
#[async_trait]
pub trait FileWriter {
    /// Replaces or creates a text file.
    async fn write(&self, path: &str, text: &str) -> Result<(), Failure>;
}

/// The text of a file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FileText {
    /// The path.
    pub path: String,
    /// The text.
    pub text: String,
    /// Whether the file is longer.
    pub truncated: bool,
}

/// Read a text file below the workspace folder.
#[tool(name = "fs__read_file", effect = read_only, redact = ["path", "text", "truncated"], tags = ["untrusted_content"])]
pub async fn read_file(
    files: &dyn FileReader,
    /// Path below the workspace folder.
    #[schemars(length(min = 1))]
    path: String,
    /// The most bytes to read.
    #[schemars(range(min = 1))]
    max_bytes: Option<u64>,
) -> Result<FileText, ToolError> {
    files.read(&path, max_bytes.unwrap_or(DEFAULT_BYTES)).await.map_err(|failure| failure.of("file"))
}

/// The written file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Written {
    /// The path.
    pub path: String,
    /// Its size in bytes.
    pub bytes: usize,
}

/// Write a text file below the workspace folder, replacing what is there.
#[tool(name = "fs__write_file", effect = state_change, redact = ["path", "bytes"], idempotent)]
#[derive(Debug)]
pub struct WriteFile {
    /// Path below the workspace folder.
    #[schemars(length(min = 1))]
    path: String,
    /// The whole text.
    text: String,
}

#[tool]
impl WriteFile {
    async fn run(self, writer: &dyn FileWriter) -> Result<Written, ToolError> {
        writer.write(&self.path, &self.text).await.map_err(|failure| failure.of("file"))?;
        Ok(Written { bytes: self.text.len(), path: self.path })
    }

    /// States the first MiB of the present text, of which the approver sees the beginning. If this part changes before
    /// the call begins, the call waits with a new question.
    async fn precondition(self, reader: &dyn FileReader) -> Result<Precondition, ToolError> {
        match reader.read(&self.path, COMPARED_BYTES).await {
            Ok(present) => Ok(Precondition::of("the present text", present.text)),
            Err(Failure::NotFound) => Ok(Precondition::of("the file", "does not exist yet")),
            Err(Failure::Unreadable) => Ok(Precondition::of("the file", "is not text")),
            Err(failure) => Err(failure.of("file")),
        }
    }
}

/// Word counts.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WordCount {
    /// The number of files read.
    pub files: usize,
    /// The most frequent words, most frequent first.
    pub words: Vec<WordFrequency>,
}

/// The count of one word.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WordFrequency {
    /// The word.
    pub word: String,
    /// Its count.
    pub count: usize,
}

/// Count the words of all files in the workspace folder. Takes long for many files.
#[tool(
    name = "fs__count_words",
    effect = read_only,
    redact = ["files", "words.word", "words.count"],
    blocking,
    timeout = "2m"
)]
pub fn count_words(
    files: &dyn FileReader,
    ctx: &ToolContext,
    /// The number of words to list; 10 by default.
    #[schemars(range(min = 1, max = 100))]
    top: Option<usize>,
) -> Result<WordCount, ToolError> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut read = 0;
    let visited = files.visit(&mut |_, text| {
        read += 1;
        for word in text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()) {
            *counts.entry(word.to_lowercase()).or_default() += 1;
        }
        // A cancellation does not stop a blocking thread, so the loop checks it.
        !ctx.cancellation().is_cancelled()
    });
    visited.map_err(|failure| failure.of("workspace folder"))?;
    let mut words: Vec<_> = counts.into_iter().map(|(word, count)| WordFrequency { word, count }).collect();
    words.sort_by_key(|word| std::cmp::Reverse(word.count));
    words.truncate(top.unwrap_or(10));
    Ok(WordCount { files: read, words })
}
