//! Every mistake in one function: each is reported, and nothing besides.

use tool_runtime::tool;

#[tool(
    name = "add.numbers",
    effect = readonly,
    redact = ["sum", "sum", "a..b"],
    title = "",
    summary = "Adds {third} to {left",
    tags = [""],
    timeout = "soon",
    max_result_bytes = 0,
    execution = client,
    idempotent = true,
    blocking,
    require_any = [third],
    no_schema_mode = approve_each,
    colour = "red",
    name = "again"
)]
async unsafe fn add<T>(
    left: Vec<&str>,
    (a, b): (i64, i64),
    /// Right.
    #[arg(evidence = "numbers", colour)]
    #[serde(alias = "r")]
    #[schemars(rename = "r")]
    #[cfg(unix)]
    right: impl ToString,
    #[arg(sensitive)] context: &mut i64,
) {
    let _ = (left, a, b, right, context);
}

/// Nothing below complains of the function above.
fn definition() {
    let _ = tool_runtime::definition!(add);
}

fn main() {
    definition();
}
