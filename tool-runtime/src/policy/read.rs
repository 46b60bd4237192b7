//! Reads a policy from JSON, and builds the errors for any text that is not a policy.

use crate::error::BuildError;
use crate::json::{self, DeErrorKind, Limits, Tree};
use crate::policy::data::PolicyData;
use crate::policy::parse::Table;
use crate::policy::problem::PolicyErrorKind;
use crate::text::line_column;

pub(super) fn json(text: &str) -> Result<PolicyData, BuildError> {
    serde_json::from_str(text).map(|Table(data)| data).map_err(|error| {
        // serde_json appends the position to its message; ours begins with it.
        let message = error.to_string();
        let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message);
        let place = Some((error.line(), error.column().max(1)));
        if error.is_data() {
            refused(json::parse_value(text, &Limits::UNBOUNDED).ok().as_ref(), place, message)
        } else {
            PolicyErrorKind::Syntax.error(place, one_line(message))
        }
    })
}

/// Returns the error for valid TOML or JSON that is not a policy.
///
/// The errors of `toml` and `serde_json` have a position and a message, but no kind. So this function reads the policy
/// again from `tree`, which fails with an error that has a kind.
pub(super) fn refused(tree: Option<&Tree<'_>>, place: Option<(usize, usize)>, message: &str) -> BuildError {
    let again = tree.and_then(|tree| json::from_tree::<Table<PolicyData>>(tree).err());
    let (kind, nearest) = match again.map(|error| error.kind()) {
        Some(DeErrorKind::Type) => (PolicyErrorKind::WrongType, None),
        Some(DeErrorKind::Property(nearest)) => (PolicyErrorKind::UnknownKey, nearest),
        Some(DeErrorKind::Word(nearest)) => (PolicyErrorKind::Value, nearest),
        Some(DeErrorKind::Value | DeErrorKind::Count) | None => (PolicyErrorKind::Value, None),
    };
    let suggestion = nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
    kind.error(place, one_line(message) + suggestion.as_str())
}

pub(super) fn one_line(message: &str) -> String {
    message.trim_end().replace('\n', ", ")
}

pub(super) fn utf8(bytes: &[u8]) -> Result<&str, BuildError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let read = std::str::from_utf8(bytes.get(..error.valid_up_to()).unwrap_or_default()).unwrap_or_default();
        PolicyErrorKind::NotUtf8
            .error(Some(line_column(read, read.len())), "the text is not UTF-8; save the file as UTF-8".to_owned())
    })
}
