//! Compares two definitions of one tool, key by key.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::catalog::lock::LockMark::{Review, Visible};
use crate::catalog::lock::LockVerdict::{Major, Minor, Patch};
use crate::catalog::lock::locked::Locked;
use crate::catalog::lock::shape::{self, Use};
use crate::catalog::lock::{LockChange, LockMark, LockVerdict};
use crate::text::{plain, pointer};
use crate::tool::sentence::{Piece, pieces};
use crate::tool::{Once, Redaction};

/// The maximum number of characters of a value in a message.
const SHOWN: usize = 80;

type Changes = Vec<LockChange>;

/// Returns the differences, in no particular order.
pub(super) fn compare(old: &Locked, new: &Locked) -> Changes {
    if old == new {
        return Vec::new();
    }
    let mut changes = Vec::new();
    words(old, new, &mut changes);
    shape::compare("/input_schema", &old.input_schema, &new.input_schema, Use::Input, &mut changes);
    // Only leaves that the old definition shows count here. `redaction` reports leaves that only the new one shows.
    let shown: Option<Vec<_>> =
        old.redaction.as_ref().map(|shown| shown.allow.iter().chain(&shown.model).cloned().collect());
    let usage = Use::Output(shown.as_deref());
    shape::compare("/output_schema", &old.output_schema, &new.output_schema, usage, &mut changes);
    if let (Some(before), Some(after)) = (&old.payload_schema, &new.payload_schema) {
        let prepared = old.redaction.as_ref().map(|shown| shown.prepare.as_slice());
        shape::compare("/payload_schema", before, after, Use::Output(prepared), &mut changes);
    }
    redaction(old, new, &mut changes);
    protection(old, new, &mut changes);
    reach(old, new, &mut changes);
    if changes.is_empty() && (old.graph.is_some() || new.graph.is_some()) {
        changes.push(LockChange::new("/hash", Patch, None, "the definition of a tool that it uses changed"));
    } else if changes.is_empty() {
        let message = "the hash does not belong to the locked definition, or another version computed it";
        changes.push(LockChange::new("/hash", Patch, Review, message));
    }
    changes
}

fn told_once(once: &Once) -> String {
    let keep = once.keep.map_or_else(String::new, |seconds| format!(", kept for {seconds} s"));
    format!("{} ({}{keep})", once.key, once.scope.as_str())
}

fn words(old: &Locked, new: &Locked, changes: &mut Changes) {
    let (before, after) = (old.description.join("\n"), new.description.join("\n"));
    if before != after {
        changes.push(LockChange::new("/description", Patch, Visible, shape::texts(&before, &after)));
    }
    if old.title != new.title {
        let text = |title: &Option<String>| title.as_deref().map(Value::from);
        let message = shape::between(text(&old.title).as_ref(), text(&new.title).as_ref());
        changes.push(LockChange::new("/title", Patch, Visible, message));
    }
    if old.summary != new.summary {
        // An approver who no longer sees an argument decides with less information.
        let told = |sentences: &[String]| -> BTreeSet<_> {
            let pieces = sentences.iter().filter_map(|sentence| pieces(sentence).ok()).flatten();
            pieces
                .filter_map(|piece| if let Piece::Argument(path) = piece { Some(path.join(".")) } else { None })
                .collect()
        };
        let lost = told(&old.summary).difference(&told(&new.summary)).map(|name| plain(name, 40)).collect::<Vec<_>>();
        let message = shape::texts(&old.summary.join(" / "), &new.summary.join(" / "));
        changes.push(match lost.as_slice() {
            [] if new.summary.is_empty() => LockChange::new("/summary", Patch, Review, "it was removed"),
            [] => LockChange::new("/summary", Patch, Visible, message),
            lost => {
                let message = format!("{message} (no longer names {})", lost.join(", "));
                LockChange::new("/summary", Patch, Review, message)
            }
        });
    }
}

fn redaction(old: &Locked, new: &Locked, changes: &mut Changes) {
    let (before, after) = match (&old.redaction, &new.redaction) {
        (Some(before), Some(after)) => (before, after),
        (None, None) => return,
        (Some(_), None) => {
            return changes.push(LockChange::new("/redaction", Minor, Review, "the allowlist was removed"));
        }
        (None, Some(_)) => return changes.push(LockChange::new("/redaction", Major, None, "an allowlist was added")),
    };
    let all = |one: &Redaction| one.allow.iter().chain(&one.model).cloned().collect::<Vec<_>>();
    let (all_before, all_after) = (all(before), all(after));
    for path in before.allow.iter().filter(|path| !shows(&after.allow, path)) {
        let is_left = shows(&all_after, path);
        let meaning = if is_left { "is shown to the model only" } else { "is no longer shown" };
        changes.push(shown_or_not("/redaction/allow", Major, None, path, meaning));
    }
    for path in after.allow.iter().filter(|path| !shows(&before.allow, path)) {
        let was_read = shows(&all_before, path);
        let meaning = if was_read { "is shown to people, too" } else { "is shown now" };
        changes.push(shown_or_not("/redaction/allow", Minor, Some(Review), path, meaning));
    }
    let lists = [
        ("/redaction/model", [&before.model, &all_before], [&after.model, &all_after]),
        ("/redaction/prepare", [&before.prepare, &before.prepare], [&after.prepare, &after.prepare]),
    ];
    for (at, [before, all_before], [after, all_after]) in lists {
        for path in before.iter().filter(|path| !shows(all_after, path)) {
            changes.push(shown_or_not(at, Major, None, path, "is no longer shown"));
        }
        for path in after.iter().filter(|path| !shows(all_before, path)) {
            changes.push(shown_or_not(at, Minor, Some(Review), path, "is shown now"));
        }
    }
}

fn shown_or_not(at: &str, verdict: LockVerdict, mark: Option<LockMark>, path: &str, meaning: &str) -> LockChange {
    LockChange::new(at, verdict, mark, format!("`{}` {meaning}", plain(path, SHOWN)))
}

/// Whether an allowlist shows the leaf at a path. `*` applies only to members that the list does not name.
fn shows(list: &[String], path: &str) -> bool {
    let mut left: Vec<std::str::Split<'_, char>> = list.iter().map(|path| path.split('.')).collect();
    for segment in path.split('.') {
        let step = |wanted: &str| -> Vec<_> {
            let rest = left.iter().cloned().filter_map(|mut rest| (rest.next() == Some(wanted)).then_some(rest));
            rest.collect()
        };
        let named = step(segment);
        left = if named.is_empty() { step("*") } else { named };
    }
    left.into_iter().any(|mut rest| rest.next().is_none())
}

fn protection(old: &Locked, new: &Locked, changes: &mut Changes) {
    list(
        "/sensitive",
        &old.sensitive,
        &new.sensitive,
        ((Patch, Some(Review)), "is no longer masked"),
        ((Patch, None), "is masked now"),
        changes,
    );
    let rules = |one: &Locked| one.require_any.clone();
    match (old.require_any.is_empty(), new.require_any.is_empty()) {
        (true, false) => {
            let message = format!("one of {} is required now", plain(&rules(new).join(", "), SHOWN));
            changes.push(LockChange::new("/require_any", Major, None, message));
        }
        (false, true) => {
            changes.push(LockChange::new("/require_any", Minor, None, "none of them is required now"));
        }
        _ => list(
            "/require_any",
            &old.require_any,
            &new.require_any,
            ((Major, None), "is no longer among the alternatives"),
            ((Minor, None), "is among the alternatives now"),
            changes,
        ),
    }
    map(&old.evidence, &new.evidence, |name, before, after| {
        let at = under("/evidence", name);
        changes.push(match (before, after) {
            (Some(before), Some(after)) => {
                LockChange::new(at, Major, Review, format!("another tool lists its values: `{before}` -> `{after}`"))
            }
            (Some(_), None) => LockChange::new(at, Minor, Review, "values no longer need evidence"),
            _ => LockChange::new(at, Major, None, "values need evidence now"),
        });
    });
    list(
        "/tags",
        &old.tags,
        &new.tags,
        ((Patch, Some(Review)), "was removed; a policy may match it"),
        ((Patch, Some(Review)), "was added; a policy may match it"),
        changes,
    );
    list(
        "/also",
        &old.also,
        &new.also,
        ((Patch, None), "is no longer a search word"),
        ((Patch, None), "is a search word now"),
        changes,
    );
    match (old.no_schema, new.no_schema) {
        (None, None) => {}
        (None, Some(_)) => {
            changes.push(LockChange::new("/no_schema", Minor, Review, "arguments are no longer checked"));
        }
        (Some(_), None) => changes.push(LockChange::new("/no_schema", Major, None, "arguments are checked now")),
        (Some(old), Some(new)) if old == new => {}
        (Some(old), Some(new)) => {
            let message = format!("{} -> {}", old.as_str(), new.as_str());
            changes.push(LockChange::new("/no_schema", Major, Review, message));
        }
    }
}

fn reach(old: &Locked, new: &Locked, changes: &mut Changes) {
    if old.effect != new.effect {
        let verdict = if new.effect > old.effect { Major } else { Minor };
        changes.push(LockChange::new("/effect", verdict, Review, format!("{} -> {}", old.effect, new.effect)));
    }
    if old.execution != new.execution {
        let message = format!("{} -> {}", old.execution.as_str(), new.execution.as_str());
        changes.push(LockChange::new("/execution", Major, Review, message));
    }
    if old.once != new.once {
        // The ledger, the store's list of calls with effects, does not find the effects of the old key under the new
        // key.
        let told = |once: &Option<Once>| once.as_ref().map(|once| Value::from(told_once(once)));
        let message = shape::between(told(&old.once).as_ref(), told(&new.once).as_ref());
        changes.push(LockChange::new("/once", Minor, Review, message));
    }
    match (old.idempotent, new.idempotent) {
        (false, true) => changes.push(LockChange::new("/idempotent", Minor, Review, "it may be repeated now")),
        (true, false) => changes.push(LockChange::new("/idempotent", Major, None, "it may no longer be repeated")),
        _ => {}
    }
    map(&old.borrows, &new.borrows, |name, before, after| {
        let at = under("/borrows", name);
        changes.push(match (before, after) {
            (Some(before), Some(after)) => {
                let mark = (after > before).then_some(Review);
                LockChange::new(at, Patch, mark, format!("{before} -> {after}"))
            }
            (Some(_), None) => LockChange::new(at, Patch, None, "it is no longer borrowed"),
            (None, after) => {
                let reach = after.map(|effect| effect.as_str()).unwrap_or_default();
                LockChange::new(at, Patch, Review, format!("it is borrowed now, and is {reach}"))
            }
        });
    });
    for (at, before, after) in [
        ("/timeout_ms", old.timeout_ms, new.timeout_ms),
        ("/max_result_bytes", old.max_result_bytes, new.max_result_bytes),
    ] {
        if before != after {
            let message = shape::between(before.map(Value::from).as_ref(), after.map(Value::from).as_ref());
            changes.push(LockChange::new(at, Patch, Review, message));
        }
    }
    match (&old.graph, &new.graph) {
        (Some(old), Some(new)) => {
            if old.version != new.version {
                let message = shape::texts(&old.version, &new.version);
                changes.push(LockChange::new("/graph/version", Patch, Review, message));
            }
            let (lost, won) = (((Patch, None), "is no longer used"), ((Patch, Some(Review)), "is used now"));
            list("/graph/tools", &old.tools, &new.tools, lost, won, changes);
        }
        (None, None) => {}
        _ => changes.push(LockChange::new("/graph", Major, Review, "the tool became a graph, or is no longer one")),
    }
}

/// The verdict, mark and text for an entry that a list lost or gained.
type Meaning<'a> = ((LockVerdict, Option<LockMark>), &'a str);

fn list(at: &str, old: &[String], new: &[String], lost: Meaning<'_>, won: Meaning<'_>, changes: &mut Changes) {
    for (names, ((verdict, mark), meaning)) in [(gone(old, new), lost), (gone(new, old), won)] {
        for name in names {
            changes.push(LockChange::new(at, verdict, mark, format!("`{}` {meaning}", plain(name, SHOWN))));
        }
    }
}

fn gone<'a>(old: &'a [String], new: &[String]) -> Vec<&'a String> {
    let new: BTreeSet<_> = new.iter().collect();
    old.iter().filter(|one| !new.contains(one)).collect()
}

fn map<T: PartialEq>(
    old: &BTreeMap<String, T>,
    new: &BTreeMap<String, T>,
    mut each: impl FnMut(&str, Option<&T>, Option<&T>),
) {
    let names: BTreeSet<_> = old.keys().chain(new.keys()).collect();
    for name in names {
        let (before, after) = (old.get(name), new.get(name));
        if before != after {
            each(name, before, after);
        }
    }
}

fn under(at: &str, name: &str) -> String {
    let mut at = at.to_owned();
    pointer::push(&mut at, crate::text::cut(name, 128));
    at
}
