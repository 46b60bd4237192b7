//! Compares the gate's verdict on every recorded call of a real model with the recorded verdict and violations.

use std::path::Path;

use serde::Deserialize;
use tool_runtime::hydrate::HydrationResult;
use tool_runtime::{Outcome, RunOptions, ToolCall, ToolCatalog, ToolPolicy, ToolRunner};

use crate::composition;

#[derive(Deserialize)]
struct Case {
    id: String,
    prompt: String,
    calls: Vec<Recorded>,
}

#[derive(Deserialize)]
struct Recorded {
    name: String,
    arguments: String,
    verdict: Vec<String>,
    violations: Vec<String>,
}

/// Returns the violations in the notation of the recording: `pointer: keyword`, with `/` for the root.
fn violations(result: &HydrationResult) -> Vec<String> {
    let Err(error) = &result.hydrated else { return Vec::new() };
    let root = |pointer: &str| if pointer.is_empty() { "/".to_owned() } else { pointer.to_owned() };
    let line = |(pointer, keyword): (&str, &str)| format!("{}: {keyword}", root(pointer));
    let mut found: Vec<_> = error.errors.iter().map(|one| line((one.pointer.as_str(), one.keyword.as_str()))).collect();
    found.sort();
    found
}

/// Returns the recorded violations except violations by `null`, because optional arguments may be `null` here.
fn without_nulls(call: &Recorded) -> Vec<String> {
    let arguments: serde_json::Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    let is_null = |line: &&String| {
        let pointer = line.split(": ").next().unwrap_or_default();
        line.ends_with(": type") && arguments.pointer(pointer).is_some_and(serde_json::Value::is_null)
    };
    call.violations.iter().filter(|line| !is_null(line)).cloned().collect()
}

fn check(case: &Case, call: &Recorded, result: &HydrationResult) -> Result<(), String> {
    let verdict = |word: &str| call.verdict.iter().any(|verdict| verdict == word);
    let outcome = result.hydrated.as_ref().err().map(|error| error.error_code);
    let found = violations(result);
    let told = |good: bool, expected: &str| {
        if good {
            return Ok(());
        }
        Err(format!("{} {} {:?}: expected {expected}, found {outcome:?} {found:?}", case.id, call.name, call.verdict))
    };
    if verdict("malformed_json") {
        return told(outcome == Some(Outcome::InvalidJson), "invalid_json");
    }
    if verdict("unknown_tool") {
        // A model gets the same text for a denied tool and for an unknown one, so both match.
        return told(matches!(outcome, Some(Outcome::Unavailable | Outcome::PolicyDenied)), "unavailable");
    }
    let mut expected = without_nulls(call);
    if verdict("not_an_object") {
        expected = vec!["/: type".to_owned()];
    }
    // The recorded schemas have `minProperties`; ours report the same mistake once, as `require_any`.
    if verdict("no_update_field") {
        expected.retain(|line| line != "/: minProperties");
        expected.push("/: require_any".to_owned());
    }
    // The evidence rule reports made-up ids in addition to other mistakes of the call.
    if verdict("bogus_id") || verdict("id_from_old_turn") {
        expected.push("/task_id: evidence".to_owned());
    }
    expected.sort();
    let refused = outcome == Some(Outcome::ValidationError);
    told(found == expected && refused != expected.is_empty(), &format!("{expected:?}"))
}

#[test]
fn recorded_calls_get_their_verdicts() {
    let index = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/transcripts/index.json");
    let cases: Vec<Case> = serde_json::from_str(&std::fs::read_to_string(index).unwrap()).unwrap();
    let data = tempfile::tempdir().unwrap();
    let policy = ToolPolicy::allow([
        "core__get_current_time",
        "weather__get_forecast",
        "tasks__update_task",
        "docs__search",
        "mail__send_email",
        "fs__read_file",
    ]);
    let capabilities = composition::open(data.path()).unwrap().capabilities;
    let runner =
        ToolRunner::builder(ToolCatalog::collect().unwrap(), policy).capabilities(capabilities).build().unwrap();
    let (mut wrong, mut calls) = (Vec::new(), 0);
    for case in &cases {
        for call in &case.calls {
            calls += 1;
            let run = runner.run(RunOptions::new().user_text(&case.prompt));
            let results = run.hydrate([ToolCall::text("call", &call.name, &call.arguments)]);
            wrong.extend(check(case, call, &results[0]).err());
        }
    }
    assert!(calls > 80, "only {calls} calls were found");
    assert!(wrong.is_empty(), "{} of {calls}\n{}", wrong.len(), wrong.join("\n"));
}
