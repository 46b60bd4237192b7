//! Reads a policy from text and says where it is wrong.

use crate::policy::data::PolicyData;
use crate::policy::parse::Table;
use crate::policy::problem::{PolicyError, PolicyErrorKind};
use crate::text::line_column;

pub(super) fn toml(text: &str) -> Result<PolicyData, PolicyError> {
    toml::from_str(text).map(|Table(data)| data).map_err(|error| {
        let kind = if text.parse::<toml::Table>().is_err() { PolicyErrorKind::Syntax } else { PolicyErrorKind::Value };
        let place = error.span().map(|span| line_column(text, span.start));
        PolicyError::parsed(kind, place, error.message())
    })
}

pub(super) fn json(text: &str) -> Result<PolicyData, PolicyError> {
    serde_json::from_str(text).map(|Table(data)| data).map_err(|error| {
        let kind = if error.is_data() { PolicyErrorKind::Value } else { PolicyErrorKind::Syntax };
        // serde_json appends the place to its message; here it comes first.
        let message = error.to_string();
        let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message);
        PolicyError::parsed(kind, Some((error.line(), error.column().max(1))), message)
    })
}

pub(super) fn utf8(bytes: &[u8]) -> Result<&str, PolicyError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let read = std::str::from_utf8(bytes.get(..error.valid_up_to()).unwrap_or_default()).unwrap_or_default();
        PolicyError::new(
            PolicyErrorKind::NotUtf8,
            Some(line_column(read, read.len())),
            "the text is not UTF-8; save the file as UTF-8".to_owned(),
        )
    })
}
