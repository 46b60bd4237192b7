//! [`World`]: the outside state on which an approval depends, as the approver saw it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::call::{ArgumentDigest, NamedArgument};
use crate::text::{plain, quoted};
use crate::tool::Hash;

/// The maximum number of characters of a statement's name (`NAME`) and value (`VALUE`).
const NAME: usize = 64;
const VALUE: usize = 80;

/// A statement of a tool's precondition: a name and a value, as a person reads them.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stated {
    name: String,
    value: String,
    /// The digest of the unmasked, uncut statement. `None` if `name` and `value` are the whole statement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<ArgumentDigest>,
}

impl Stated {
    /// Creates a statement. `shown` masks the values of sensitive arguments.
    pub(crate) fn new<'t>(
        (name, value): (&'t str, &'t str),
        shown: impl Fn(&'t str) -> &'t str,
        digest: impl FnOnce(Hash) -> ArgumentDigest,
    ) -> Self {
        let (shown_name, shown_value) = (plain(shown(name), NAME), plain(shown(value), VALUE));
        let is_whole = shown_name == name && shown_value == value;
        // The length marks the end of the name, so that no other name and value have the same text.
        let whole = || Hash::sha256(format!("statement {} {name} {value}", name.len()));
        let digest = (!is_whole).then(|| digest(whole()));
        Self { name: shown_name, value: shown_value, digest }
    }
}

// Statements stay out of logs, names included, because a tool may take a name from an argument.
impl fmt::Debug for Stated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stated").finish_non_exhaustive()
    }
}

/// A looked-up name that is too long to be shown in full.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CutName {
    pointer: String,
    /// The digest of the whole name.
    digest: ArgumentDigest,
}

/// Names that were looked up for a call.
#[derive(Default)]
pub(crate) struct Names {
    /// The names as a person reads them.
    pub(crate) shown: Vec<NamedArgument>,
    /// An entry for each name in `shown` that is cut.
    pub(crate) cut: Vec<CutName>,
}

impl Names {
    /// Adds the result of a look-up. `found` is `Ok(None)` if the argument has no name, and `Err` if the look-up
    /// failed.
    pub(crate) fn add(
        &mut self,
        pointer: String,
        found: Result<Option<String>, ()>,
        digest: impl FnOnce(Hash) -> ArgumentDigest,
    ) {
        let whole = found.clone().ok().flatten();
        let shown = NamedArgument::new(pointer, found);
        if let Some(whole) = whole.filter(|whole| Some(whole) != shown.name.as_ref()) {
            let pointer = shown.pointer.clone();
            let digest = digest(Hash::sha256(format!("name {} {pointer} {whole}", pointer.len())));
            self.cut.push(CutName { pointer, digest });
        }
        self.shown.push(shown);
    }

    /// Replaces the names by the names of a later look-up. A name whose later look-up failed stays.
    pub(crate) fn update(&mut self, other: Self) {
        let found = other.shown.into_iter().filter(|name| !name.failed);
        for name in found {
            if let Some(before) = self.shown.iter_mut().find(|before| before.pointer == name.pointer) {
                self.cut.retain(|cut| cut.pointer != name.pointer);
                self.cut.extend(other.cut.iter().find(|cut| cut.pointer == name.pointer).cloned());
                *before = name;
            }
        }
    }
}

/// The outside state on which a waiting call depends, and the approvals that did not count because it changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct World {
    /// The statements of the tool's precondition.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) stated: Vec<Stated>,
    /// The looked-up names that are shown only in part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) cut: Vec<CutName>,
    /// The number of decisions that did not count, because the shown state had changed or could not be read.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) renewed: u8,
    /// The differences because of which the last approval did not count. Empty once a decider has edited the arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) differences: Vec<Difference>,
    /// Whether the last approval did not count because the precondition could not be read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) unread: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u8) -> bool {
    *count == 0
}

impl World {
    /// Whether there is nothing to show and nothing to compare.
    pub(crate) const fn is_empty(&self) -> bool {
        self.stated.is_empty() && self.cut.is_empty() && self.renewed == 0
    }

    /// Returns the sentence about the last decision that did not count. `None` if there is none.
    pub(crate) fn renewal(&self) -> Option<String> {
        if self.unread {
            return Some(
                "An approval did not count, because the precondition of the call could not be read.".to_owned(),
            );
        }
        let differences = self.differences.iter().map(Difference::to_string).collect::<Vec<_>>().join("; ");
        (!differences.is_empty())
            .then(|| format!("An approval did not count, because this has changed: {differences}."))
    }

    /// Returns the sentence that lists the statements. `None` if there are none.
    pub(crate) fn statement(&self) -> Option<String> {
        // The name is quoted too, because a tool may take it from the arguments, which a model writes.
        let stated =
            self.stated.iter().map(|one| format!("{} is {}", quoted(&one.name, NAME), quoted(&one.value, VALUE)));
        let stated = stated.collect::<Vec<_>>().join(", ");
        (!stated.is_empty()).then(|| format!("This call depends on: {stated}."))
    }
}

/// A statement or a looked-up name that has changed since the approver saw it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Difference {
    /// The name of the statement, or the JSON pointer of the argument whose name was looked up.
    of: String,
    /// The value that the approver saw. `None` if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    was: Option<String>,
    /// The value immediately before the call would have begun. `None` if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    is: Option<String>,
}

impl Difference {
    /// Returns the differences between two lists of statements, which are matched by name.
    pub(crate) fn of_statements(was: &[Stated], is: &[Stated]) -> Vec<Self> {
        let value = |stated: &[Stated], at: usize| stated.get(at).map(|one| one.value.clone());
        let mut left: Vec<usize> = (0..is.len()).collect();
        let mut differences = Vec::new();
        for (at, before) in was.iter().enumerate() {
            let now = left.iter().position(|at| is.get(*at).is_some_and(|now| now.name == before.name));
            let now = now.map(|position| left.remove(position));
            if now.and_then(|now| is.get(now)) != Some(before) {
                let is = now.and_then(|now| value(is, now));
                differences.push(Self { of: before.name.clone(), was: value(was, at), is });
            }
        }
        differences.extend(left.into_iter().filter_map(|at| {
            let now = is.get(at)?;
            Some(Self { of: now.name.clone(), was: None, is: Some(now.value.clone()) })
        }));
        differences
    }

    /// Returns the differences between two look-ups of names. An argument whose look-up failed in one of them is
    /// skipped.
    pub(crate) fn of_names(was: &Names, is: &Names) -> Vec<Self> {
        let differs = |before: &NamedArgument| {
            let now = is.shown.iter().find(|now| now.pointer == before.pointer)?;
            let rest = |names: &Names| names.cut.iter().find(|cut| cut.pointer == before.pointer).cloned();
            let is_other = now.name != before.name || rest(was) != rest(is);
            let differs = !before.failed && !now.failed && is_other;
            differs.then(|| Self { of: before.pointer.clone(), was: before.name.clone(), is: now.name.clone() })
        };
        was.shown.iter().filter_map(differs).collect()
    }
}

/// For an approver: `“balance” was “120” and is “90”`.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = quoted(&self.of, VALUE);
        match (&self.was, &self.is) {
            // The difference is in a part that is masked or cut.
            (Some(was), Some(is)) if was == is => write!(f, "{of} has another value than before"),
            (Some(was), Some(is)) => write!(f, "{of} was {} and is {}", quoted(was, VALUE), quoted(is, VALUE)),
            (Some(was), None) => write!(f, "{of} was {} and has no value now", quoted(was, VALUE)),
            (None, Some(is)) => write!(f, "{of} had no value and is {}", quoted(is, VALUE)),
            (None, None) => write!(f, "{of} had no value and has none"),
        }
    }
}

// Values and looked-up names stay out of logs.
impl fmt::Debug for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Difference").finish_non_exhaustive()
    }
}

/// The statements of a precondition, for the record of a decision.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RecordedWorld {
    /// The statements that the decider saw.
    pub(crate) shown: Vec<(String, String)>,
    /// The statements immediately before the call would have begun. `None` if they were not read then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) begun: Option<Vec<(String, String)>>,
}

impl RecordedWorld {
    /// Returns the names and values of statements for a record.
    pub(crate) fn pairs(stated: &[Stated]) -> Vec<(String, String)> {
        stated.iter().map(|one| (one.name.clone(), one.value.clone())).collect()
    }
}

// Statements stay out of logs.
impl fmt::Debug for RecordedWorld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordedWorld").field("shown", &self.shown.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stated(pairs: &[(&'static str, &'static str)]) -> Vec<Stated> {
        pairs.iter().map(|pair| Stated::new(*pair, |text| text, ArgumentDigest::plain)).collect()
    }

    #[test]
    fn differences_are_told_by_name() {
        let check = |was: &[(&'static str, &'static str)], is: &[(&'static str, &'static str)], expected: &[&str]| {
            let differences = Difference::of_statements(&stated(was), &stated(is));
            assert_eq!(differences.iter().map(Difference::to_string).collect::<Vec<_>>(), expected);
        };
        check(&[("balance", "120")], &[("balance", "120")], &[]);
        check(&[("balance", "120")], &[("balance", "90")], &["“balance” was “120” and is “90”"]);
        check(&[("a", "1"), ("b", "2")], &[("b", "2"), ("a", "1")], &[]);
        check(&[("a", "1")], &[], &["“a” was “1” and has no value now"]);
        check(&[], &[("a", "1")], &["“a” had no value and is “1”"]);
        // A name that is stated twice.
        check(&[("a", "1"), ("a", "2")], &[("a", "1"), ("a", "3")], &["“a” was “2” and is “3”"]);
    }

    #[test]
    fn the_whole_value_is_compared() {
        let long = |end: &str| format!("{}{end}", "x".repeat(200));
        let (one, other) = (long("1"), long("2"));
        let one = vec![Stated::new(("text", &one), |text| text, ArgumentDigest::plain)];
        let other = vec![Stated::new(("text", &other), |text| text, ArgumentDigest::plain)];
        let differences = Difference::of_statements(&one, &other);
        assert_eq!(differences[0].to_string(), "“text” has another value than before");
        // Quotes and invisible characters are not shown, but they are compared.
        let quotes = Difference::of_statements(&stated(&[("a", "“1”")]), &stated(&[("a", "'1'")]));
        assert_eq!(quotes.len(), 1);
        // The digest shows where the name ends and the value begins.
        let moved = |pair: (&str, &str)| Stated::new(pair, |_| "[sensitive]", ArgumentDigest::plain);
        assert_ne!(moved(("a", "b c")), moved(("a b", "c")));
    }

    #[test]
    fn an_approver_reads_both_statements() {
        let (was, is) = (stated(&[("balance", "120")]), stated(&[("balance", "90")]));
        let differences = Difference::of_statements(&was, &is);
        let world = World { stated: is, cut: Vec::new(), renewed: 1, differences, unread: false };
        assert_eq!(
            world.renewal().as_deref(),
            Some("An approval did not count, because this has changed: “balance” was “120” and is “90”.")
        );
        assert_eq!(world.statement().as_deref(), Some("This call depends on: “balance” is “90”."));
        let unread = World { differences: Vec::new(), unread: true, ..world };
        assert!(unread.renewal().is_some_and(|text| text.contains("could not be read")));
        assert_eq!((World::default().renewal(), World::default().statement()), (None, None));
        assert!(!format!("{unread:?}").contains("90"));
    }

    #[test]
    fn names_that_could_not_be_looked_up_are_not_compared() {
        let named = |found| {
            let mut names = Names::default();
            names.add("/id".to_owned(), found, ArgumentDigest::plain);
            names
        };
        let (milk, house) = (named(Ok(Some("Milk".to_owned()))), named(Ok(Some("House".to_owned()))));
        let text = |was: &Names, is: &Names| {
            Difference::of_names(was, is).iter().map(Difference::to_string).collect::<Vec<_>>().join(";")
        };
        assert_eq!(text(&milk, &house), "“/id” was “Milk” and is “House”");
        assert_eq!(text(&milk, &named(Ok(None))), "“/id” was “Milk” and has no value now");
        assert_eq!(text(&milk, &milk), "");
        for failed in [text(&milk, &named(Err(()))), text(&named(Err(())), &milk), text(&milk, &Names::default())] {
            assert_eq!(failed, "");
        }
    }
}
