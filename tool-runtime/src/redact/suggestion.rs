//! Suggests the path that the author of a wrong path probably meant.

use serde_json::Value;
use strsim::osa_distance;

use crate::redact::shape::{alternatives, is_object, members, values};

/// Returns an existing path from one that steps into an array, such as `items[].a`, `items.0.a` or `items.*.a`.
pub(super) fn through_arrays(path: &str, exists: impl Fn(&str) -> bool) -> Option<String> {
    let plain = |without_star: bool| {
        let index = |segment: &str| segment.is_empty() || segment.bytes().all(|byte| byte.is_ascii_digit());
        let segments = path.split('.').map(|segment| segment.split('[').next().unwrap_or_default());
        let kept: Vec<_> = segments.filter(|one| !(index(one) || without_star && *one == "*")).collect();
        kept.join(".")
    };
    [plain(false), plain(true)].into_iter().find(|plain| plain != path && exists(plain))
}

/// Returns the paths of a schema's leaves, at most about 500.
pub(super) fn leaves(schema: &Value) -> Vec<String> {
    let mut leaves = Vec::new();
    collect(schema, "", 0, &mut leaves);
    leaves
}

/// Returns the path that is most similar to a wrong one.
pub(super) fn nearest(path: &str, leaves: Vec<String>) -> Option<String> {
    let last = path.rsplit('.').next().unwrap_or(path);
    let alike = |leaf: &String| {
        let end = leaf.rsplit('.').next().unwrap_or(leaf);
        osa_distance(path, leaf).min(if end == last { 1 } else { osa_distance(last, end) + 1 })
    };
    // Many leaves are called `id`, so the whole path decides between equal names.
    let nearest = leaves.into_iter().min_by_key(|leaf| (alike(leaf), osa_distance(path, leaf)));
    nearest.filter(|leaf| alike(leaf) <= path.len().max(6) / 2)
}

fn collect(schema: &Value, prefix: &str, depth: usize, leaves: &mut Vec<String>) {
    if depth > 8 || leaves.len() > 500 {
        return;
    }
    for place in alternatives(schema) {
        let join = |name: &str| if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") };
        match members(place) {
            Some(members) => {
                for (name, member) in members {
                    collect(member, &join(name), depth + 1, leaves);
                }
            }
            None if is_object(place) => {
                if let Some(values) = values(place) {
                    collect(values, &join("*"), depth + 1, leaves);
                }
            }
            None => leaves.push(if prefix.is_empty() { "$".to_owned() } else { prefix.to_owned() }),
        }
    }
}
