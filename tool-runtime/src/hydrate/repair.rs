//! Repair of arguments that did not parse: one attempt by a named repairer, if the policy allows it.
//!
//! A repairer only rewrites text. The result is parsed and validated like any other text.

mod scan;

use std::fmt;
use std::sync::Arc;

use crate::json::digest;
use crate::tool::Hash;
use scan::{double_quoted, first_object, without_trailing_commas};

/// Rewrites text that is almost JSON.
///
/// It runs only if the policy names it, at most once for a call, and only on arguments that could not be parsed. The
/// result is parsed and validated like any other text.
///
/// ```
/// use tool_runtime::hydrate::Repairer;
/// use tool_runtime::{ToolCatalog, ToolPolicy, ToolRunner};
///
/// /// Removes a byte order mark in front of the object.
/// struct ByteOrderMark;
///
/// impl Repairer for ByteOrderMark {
///     fn name(&self) -> &str {
///         "byte_order_mark"
///     }
///
///     fn repair(&self, text: &str) -> Option<String> {
///         text.strip_prefix('\u{feff}').map(str::to_owned)
///     }
/// }
///
/// let policy = ToolPolicy::from_toml(r#"repair.allowed = ["byte_order_mark"]"#)?;
/// let runner = ToolRunner::builder(ToolCatalog::builder().build()?, policy).repairer(ByteOrderMark).build()?;
/// # drop(runner);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Repairer: Send + Sync {
    /// The name by which a policy turns it on and records show it.
    fn name(&self) -> &str;

    /// Returns the text to read instead; `None` if the text is not broken in the way it knows.
    fn repair(&self, text: &str) -> Option<String>;
}

impl<R: Repairer + ?Sized> Repairer for Arc<R> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn repair(&self, text: &str) -> Option<String> {
        (**self).repair(text)
    }
}

/// The repairers that are built in: `fenced_json`, `double_encoded`, `trailing_junk`, `single_quotes`.
pub const BUILT_IN: [&dyn Repairer; 4] = [&FencedJson, &DoubleEncoded, &TrailingJunk, &SingleQuotes];

/// A text that a repairer rewrote. `Debug` shows only the digests.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) struct Repaired {
    /// The repairer.
    pub repairer: String,
    /// The rewritten text.
    pub text: String,
    /// SHA-256 of the text as it arrived.
    pub before: Hash,
    /// SHA-256 of the rewritten text.
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

/// Makes the one attempt: the first repairer that has a result gives the text.
#[must_use]
pub(crate) fn attempt<'r>(repairers: impl IntoIterator<Item = &'r dyn Repairer>, text: &str) -> Option<Repaired> {
    let (name, after) = repairers.into_iter().find_map(|repairer| {
        let after = repairer.repair(text).filter(|after| after != text)?;
        Some((repairer.name().to_owned(), after))
    })?;
    Some(Repaired { repairer: name, before: digest(text), after: digest(&after), text: after })
}

/// A Markdown fence around the object, with or without a language: ```` ```json ````.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FencedJson;

impl Repairer for FencedJson {
    fn name(&self) -> &'static str {
        "fenced_json"
    }

    fn repair(&self, text: &str) -> Option<String> {
        let (info, body) = text.trim().strip_prefix("```")?.strip_suffix("```")?.split_once('\n')?;
        let plain = info.trim().chars().all(char::is_alphanumeric) && !body.contains("```");
        plain.then(|| body.trim().to_owned())
    }
}

/// The object as a JSON string: one level of quoting too much.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DoubleEncoded;

impl Repairer for DoubleEncoded {
    fn name(&self) -> &'static str {
        "double_encoded"
    }

    fn repair(&self, text: &str) -> Option<String> {
        let inner: String = serde_json::from_str(text.trim()).ok()?;
        inner.trim_start().starts_with('{').then_some(inner)
    }
}

/// A comma before a closing bracket, or something after a complete object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TrailingJunk;

impl Repairer for TrailingJunk {
    fn name(&self) -> &'static str {
        "trailing_junk"
    }

    fn repair(&self, text: &str) -> Option<String> {
        let text = text.trim();
        let repaired = without_trailing_commas(first_object(text)?);
        (repaired != text).then_some(repaired)
    }
}

/// Strings in single quotes, that hold no quote of either kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SingleQuotes;

impl Repairer for SingleQuotes {
    fn name(&self) -> &'static str {
        "single_quotes"
    }

    fn repair(&self, text: &str) -> Option<String> {
        let text = text.trim();
        text.starts_with('{').then(|| double_quoted(text))?
    }
}

#[cfg(test)]
mod tests;
