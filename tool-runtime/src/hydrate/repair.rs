//! Repairs arguments that did not parse: one attempt by a named repairer, if the policy allows it.
//!
//! A repairer only rewrites text. The result is parsed and validated like any other text.

mod scan;

use std::fmt;

use crate::json::digest;
use crate::tool::Hash;
use scan::{double_quoted, first_object, without_trailing_commas};

/// A repairer: returns the repaired text, or `None` if it does not know the defect.
pub(crate) type Repair = dyn Fn(&str) -> Option<String> + Send + Sync;

/// A built-in repairer.
type BuiltIn = fn(&str) -> Option<String>;

/// The built-in repairers, by name.
pub static BUILT_IN: [(&str, BuiltIn); 4] = [
    ("fenced_json", fenced_json),
    ("double_encoded", double_encoded),
    ("trailing_junk", trailing_junk),
    ("single_quotes", single_quotes),
];

/// Returns the built-in repairers in the form of an application's repairers.
pub(crate) fn built_in<'r>() -> impl Iterator<Item = (&'r str, &'r Repair)> {
    BUILT_IN.iter().map(|(name, repair)| (*name, repair as &Repair))
}

/// Text that a repairer rewrote. `Debug` shows only the digests.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) struct Repaired {
    /// The name of the repairer.
    pub repairer: String,
    /// The rewritten text.
    pub text: String,
    /// The SHA-256 of the original text.
    pub before: Hash,
    /// The SHA-256 of the rewritten text.
    pub after: Hash,
}

impl fmt::Debug for Repaired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Repaired")
            .field("repairer", &self.repairer)
            .field("before", &self.before)
            .field("after", &self.after)
            .finish_non_exhaustive()
    }
}

/// Returns the result of the first repairer that changes the text; `None` if none does.
#[must_use]
pub(crate) fn attempt<'r>(repairers: impl IntoIterator<Item = (&'r str, &'r Repair)>, text: &str) -> Option<Repaired> {
    let (name, after) = repairers.into_iter().find_map(|(name, repair)| {
        let after = repair(text).filter(|after| after != text)?;
        Some((name.to_owned(), after))
    })?;
    Some(Repaired { repairer: name, before: digest(text), after: digest(&after), text: after })
}

/// Removes a Markdown fence around the object, with or without a language: ```` ```json ````.
fn fenced_json(text: &str) -> Option<String> {
    let (info, body) = text.trim().strip_prefix("```")?.strip_suffix("```")?.split_once('\n')?;
    let plain = info.trim().chars().all(char::is_alphanumeric) && !body.contains("```");
    plain.then(|| body.trim().to_owned())
}

/// Decodes an object that is quoted as a JSON string.
fn double_encoded(text: &str) -> Option<String> {
    let inner: String = serde_json::from_str(text.trim()).ok()?;
    inner.trim_start().starts_with('{').then_some(inner)
}

/// Removes commas before closing brackets, and text after a complete object.
fn trailing_junk(text: &str) -> Option<String> {
    let text = text.trim();
    let repaired = without_trailing_commas(first_object(text)?);
    (repaired != text).then_some(repaired)
}

/// Replaces single quotes around strings that contain no quotes.
fn single_quotes(text: &str) -> Option<String> {
    let text = text.trim();
    text.starts_with('{').then(|| double_quoted(text))?
}

#[cfg(test)]
mod tests;
