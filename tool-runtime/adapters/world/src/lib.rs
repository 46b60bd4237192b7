//! The tools, runs and stores that the tests of the adapters share.

#![allow(clippy::expect_used, clippy::missing_panics_doc, reason = "a test says what it expects")]

use tool_runtime::media::Media;
use tool_runtime::store::{MemoryStore, RecordFilter, Store};
use tool_runtime::{Run, RunOptions, ToolCatalog, ToolError, ToolPolicy, ToolRunner, WithMedia, tool};

/// Adds two numbers.
#[tool(name = "math__add", effect = read_only, redact = ["$"])]
fn add(
    /// The first.
    a: i64,
    /// The second.
    b: i64,
) -> Result<i64, ToolError> {
    a.checked_add(b).ok_or_else(|| ToolError::safe("The sum is too large."))
}

/// Deletes a note.
#[tool(name = "notes__delete", effect = state_change, redact = ["$"])]
fn delete(
    /// The number of the note.
    note: u32,
) -> Result<u32, ToolError> {
    Ok(note)
}

/// Returns a run with `math__add` and with `notes__delete`, which needs an approval, and the store with its records.
#[must_use]
pub fn run() -> (Run, MemoryStore) {
    let store = MemoryStore::new();
    let catalog = ToolCatalog::builder().tool::<add>().tool::<delete>().build().expect("a catalog");
    let policy = ToolPolicy::from_toml(
        r#"
        allowed_tools = ["math__add", "notes__delete"]
        require_approval_for_tools = ["notes__delete"]
        "#,
    );
    let runner = ToolRunner::builder(catalog, policy.expect("a policy")).store(store.clone()).approvals(true);
    (runner.build().expect("a runner").run(RunOptions::new().principal("ada")), store)
}

/// Returns the outcomes of the calls that have ended, in order.
pub async fn outcomes(store: &MemoryStore) -> Vec<&'static str> {
    let records = store.calls(&RecordFilter::default()).await.expect("records");
    records.iter().map(|record| record.outcome.code()).collect()
}

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

/// The result of `pages__show` as text. A sentence describes the omitted image.
pub const PAGE_AS_TEXT: &str = "1\n\n[The tool also returned a file (image/png, 16 bytes) that cannot be passed on to \
    this model.]\n\nlog.txt:\n\nline 1";

/// Shows a page.
#[tool(name = "pages__show", effect = read_only, redact = ["$", "$media"])]
fn show() -> Result<WithMedia<u8>, ToolError> {
    let log = Media::bytes("text/plain", b"line 1")?.with_name("log.txt");
    Ok(WithMedia::new(1).media(Media::bytes("image/png", PNG)?).media(log))
}

/// Returns a run with `pages__show`, whose results have an image and a text file.
#[must_use]
pub fn pages() -> Run {
    let catalog = ToolCatalog::builder().tool::<show>().build().expect("a catalog");
    let runner = ToolRunner::builder(catalog, ToolPolicy::allow(["pages__show"])).build().expect("a runner");
    runner.run(RunOptions::new())
}
