//! The three tools, the same work with `serde_json` alone, and the runner that calls them.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tool_runtime::{Capabilities, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};

/// Adds.
#[tool(name = "bench__tiny", effect = read_only, redact = ["$"])]
fn tiny(
    /// One.
    a: i64,
    /// Another.
    b: i64,
) -> Result<i64, ToolError> {
    Ok(a.wrapping_add(b))
}

/// How urgent.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Urgency {
    /// Not at all.
    Low,
    /// Very.
    High,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Place {
    /// The street.
    street: String,
    /// The town.
    town: String,
    /// The floor.
    floor: i32,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Medium {
    title: String,
    body: String,
    owner: String,
    urgency: Urgency,
    street: String,
    town: String,
    floor: i32,
    tags: Vec<String>,
    estimate: f64,
    done: bool,
    due: Option<String>,
    count: usize,
}

/// Files a ticket.
#[tool(name = "bench__medium", effect = read_only, redact = ["title", "body", "owner", "urgency", "street", "town",
    "floor", "tags", "estimate", "done", "due", "count"])]
fn medium(
    /// The title.
    #[schemars(length(min = 1, max = 200))]
    title: String,
    /// The text.
    body: String,
    /// Whose it is.
    owner: String,
    /// How urgent.
    urgency: Urgency,
    /// Where.
    place: Place,
    /// Words.
    #[schemars(length(max = 32))]
    tags: Vec<String>,
    /// Hours.
    #[schemars(range(min = 0.0, max = 1000.0))]
    estimate: f64,
    /// When.
    due: Option<String>,
) -> Result<Medium, ToolError> {
    let count = tags.len();
    let Place { street, town, floor } = place;
    Ok(Medium { title, body, owner, urgency, street, town, floor, tags, estimate, done: false, due, count })
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Row {
    /// The id.
    id: u32,
    /// The name.
    name: String,
    /// The mail address.
    email: String,
    /// Points.
    score: f64,
    /// Words.
    tags: Vec<String>,
    /// Whether it counts.
    active: bool,
}

/// Sorts rows.
#[tool(name = "bench__large", effect = read_only, redact = ["id", "name", "email", "score", "tags", "active"])]
fn large(
    /// The rows.
    rows: Vec<Row>,
) -> Result<Vec<Row>, ToolError> {
    Ok(rows)
}

#[derive(Deserialize)]
struct TinyArguments {
    a: i64,
    b: i64,
}

#[derive(Deserialize)]
struct MediumArguments {
    title: String,
    body: String,
    owner: String,
    urgency: Urgency,
    place: Place,
    tags: Vec<String>,
    estimate: f64,
    due: Option<String>,
}

#[derive(Deserialize)]
struct LargeArguments {
    rows: Vec<Row>,
}

pub(crate) const TINY: &str = r#"{"a":12345,"b":678901}"#;

pub(crate) fn medium_text() -> String {
    let tags: Vec<_> = (0..16).map(|at| format!("\"label-{at:02}-text\"")).collect();
    format!(
        r#"{{"title":"The printer on the second floor","body":"It prints pages that nobody sent, at night, in green.","owner":"ada@example.org","urgency":"high","place":{{"street":"Long Lane 12","town":"Springfield","floor":2}},"tags":[{}],"estimate":2.5,"due":"2026-12-01"}}"#,
        tags.join(",")
    )
}

pub(crate) fn large_text() -> String {
    let row = |at: u32| {
        format!(
            r#"{{"id":{at},"name":"Person number {at}","email":"person{at}@example.org","score":{}.25,"tags":["alpha-{at}","beta-{at}","gamma","delta"],"active":{}}}"#,
            at * 3,
            at.is_multiple_of(2)
        )
    };
    let rows: Vec<_> = (0..200).map(row).collect();
    format!(r#"{{"rows":[{}]}}"#, rows.join(","))
}

/// The floor: parse, call and write, checking nothing.
pub(crate) fn tiny_floor(text: &str) -> String {
    let TinyArguments { a, b } = serde_json::from_str(text).unwrap();
    serde_json::to_string(&tiny(a, b).ok().unwrap()).unwrap()
}

/// The floor: parse, call and write, checking nothing.
pub(crate) fn medium_floor(text: &str) -> String {
    let MediumArguments { title, body, owner, urgency, place, tags, estimate, due } =
        serde_json::from_str(text).unwrap();
    let out = medium(title, body, owner, urgency, place, tags, estimate, due).ok().unwrap();
    serde_json::to_string(&out).unwrap()
}

/// The floor: parse, call and write, checking nothing.
pub(crate) fn large_floor(text: &str) -> String {
    let LargeArguments { rows } = serde_json::from_str(text).unwrap();
    serde_json::to_string(&large(rows).ok().unwrap()).unwrap()
}

pub(crate) fn runner() -> ToolRunner {
    let catalog = ToolCatalog::builder().tool::<tiny>().tool::<medium>().tool::<large>().build().unwrap();
    let policy = r#"
        allowed_tools = ["bench__tiny", "bench__medium", "bench__large"]
        [budgets.default]
        max_result_bytes = 1000000
        max_argument_bytes = 1000000
        max_runtime_ms = 1000
    "#;
    let policy = ToolPolicy::from_toml(policy).unwrap();
    ToolRunner::builder(catalog, policy).capabilities(Capabilities::new()).build().unwrap()
}

/// A call that answers at once is ready at the first poll.
pub(crate) fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("these tools never wait"),
    }
}
