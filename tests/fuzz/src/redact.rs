//! The redactor, compared with a filter of trees that is too simple to be wrong. An input is an allowlist and an
//! output.

use serde::Deserialize;
use serde_json::{Map, Value};
use tool_runtime::__workspace::Projector;

use super::same::same;

#[derive(Deserialize)]
struct Row {
    allowlist: Vec<String>,
    output: Value,
}

pub fn only_what_is_listed_is_shown(text: &str) {
    let Ok(Row { allowlist, output }) = serde_json::from_str(text) else { return };
    // These paths are for media and errors, which a row does not have.
    if allowlist.iter().any(|path| path == "$media" || path == "$error") {
        return;
    }
    let paths: Vec<Vec<&str>> =
        allowlist.iter().map(|path| if path == "$" { Vec::new() } else { path.split('.').collect() }).collect();
    let paths: Vec<&[&str]> = paths.iter().map(Vec::as_slice).collect();
    let expected = listed(&output, &paths).unwrap_or_else(|| empty(&output));

    let projector = Projector::without_schema(&allowlist, &[]);
    let whole = projector.project(&output, usize::MAX).expect("any JSON can be projected");
    let whole: Value = serde_json::from_str(whole.shown.get()).expect("what is shown is JSON");
    assert!(same(&whole, &expected), "{whole} is not {expected}");

    for room in [16, 64, 256] {
        let Ok(cut) = projector.project(&output, room) else { continue };
        assert!(cut.shown.get().len() <= room, "what is shown has an end");
        let cut: Value = serde_json::from_str(cut.shown.get()).expect("what is cut is JSON");
        assert!(is_part(&cut, &expected), "{cut} is no part of {expected}");
    }
}

/// The part of a value that these paths allow; `None` for nothing.
fn listed(value: &Value, paths: &[&[&str]]) -> Option<Value> {
    let is_leaf = paths.iter().any(|path| path.is_empty());
    match value {
        Value::Array(items) => {
            let kept: Vec<_> = items.iter().filter_map(|item| listed(item, paths)).collect();
            (!kept.is_empty() || items.is_empty()).then(|| kept.into())
        }
        Value::Object(members) => {
            let mut kept = Map::new();
            for (name, member) in members.iter().filter(|_| !is_leaf) {
                let mut rest = below(paths, name);
                if rest.is_empty() {
                    rest = below(paths, "*");
                }
                if !rest.is_empty()
                    && let Some(member) = listed(member, &rest)
                {
                    kept.insert(name.clone(), member);
                }
            }
            (!kept.is_empty() || members.is_empty()).then(|| kept.into())
        }
        scalar => is_leaf.then(|| scalar.clone()),
    }
}

/// The paths that begin with a segment, without that segment.
fn below<'p>(paths: &[&'p [&'p str]], segment: &str) -> Vec<&'p [&'p str]> {
    paths.iter().filter(|path| path[0] == segment).map(|path| &path[1..]).collect()
}

/// The form of a value without any part that may be shown.
fn empty(value: &Value) -> Value {
    match value {
        Value::Array(_) => Value::Array(Vec::new()),
        Value::Object(_) => Value::Object(Map::new()),
        _ => Value::Null,
    }
}

/// Whether a value holds only parts of another one, in the same order.
fn is_part(cut: &Value, whole: &Value) -> bool {
    match (cut, whole) {
        (Value::Object(cut), Value::Object(whole)) => {
            cut.iter().all(|(name, member)| whole.get(name).is_some_and(|whole| is_part(member, whole)))
        }
        (Value::Array(cut), Value::Array(whole)) => {
            let mut rest = whole.iter();
            cut.iter().all(|cut| rest.any(|whole| is_part(cut, whole)))
        }
        (Value::String(cut), Value::String(whole)) => whole.starts_with(cut.as_str()),
        _ => same(cut, whole),
    }
}
