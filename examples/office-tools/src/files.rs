//! Text files below the workspace folder.

use std::collections::BTreeMap;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;
use tool_runtime::{ToolContext, ToolError, capability, tool};

use crate::Failure;

/// How much of a file is read when nobody says.
const DEFAULT_BYTES: u64 = 16 * 1024;

/// Reads files below the workspace folder.
#[capability(effect = read_only)]
#[async_trait]
pub trait FileReader {
    /// The first bytes of a text file.
    async fn read(&self, path: &str, max_bytes: u64) -> Result<FileText, Failure>;
    /// Hands every text file to `each`, on the caller's thread, until it answers `false`.
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
    /// The file goes on.
    pub truncated: bool,
}

/// Read a text file below the workspace folder.
#[tool(name = "fs__read_file", effect = read_only, redact = ["path", "text", "truncated"], tags = ["untrusted_content"])]
pub async fn read_file(
    files: &dyn FileReader,
    /// Path below the workspace folder.
    #[schemars(length(min = 1))]
    path: String,
    /// How many bytes at most.
    #[schemars(range(min = 1))]
    max_bytes: Option<u64>,
) -> Result<FileText, ToolError> {
    files.read(&path, max_bytes.unwrap_or(DEFAULT_BYTES)).await.map_err(|failure| failure.of("file"))
}

/// What was written.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Written {
    /// The path.
    pub path: String,
    /// How many bytes.
    pub bytes: usize,
}

/// Write a text file below the workspace folder, replacing what is there.
#[tool(name = "fs__write_file", effect = state_change, redact = ["path", "bytes"], idempotent)]
pub async fn write_file(
    files: &dyn FileWriter,
    /// Path below the workspace folder.
    #[schemars(length(min = 1))]
    path: String,
    /// The whole text.
    text: String,
) -> Result<Written, ToolError> {
    files.write(&path, &text).await.map_err(|failure| failure.of("file"))?;
    Ok(Written { bytes: text.len(), path })
}

/// How often words occur.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WordCount {
    /// How many files were read.
    pub files: usize,
    /// The most frequent words, most frequent first.
    pub words: Vec<WordFrequency>,
}

/// How often one word occurs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WordFrequency {
    /// The word.
    pub word: String,
    /// How often.
    pub count: usize,
}

/// Count the words of all files in the workspace folder. Takes long when there are many.
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
    /// How many words to list, ten when left out.
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
        // Nobody waits any longer: a blocking thread is not stopped from outside.
        !ctx.cancellation().is_cancelled()
    });
    visited.map_err(|failure| failure.of("workspace folder"))?;
    let mut words: Vec<_> = counts.into_iter().map(|(word, count)| WordFrequency { word, count }).collect();
    words.sort_by_key(|word| std::cmp::Reverse(word.count));
    words.truncate(top.unwrap_or(10));
    Ok(WordCount { files: read, words })
}
