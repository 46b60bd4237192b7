//! Replaces `policy::toml_text` in a build without the feature `toml`: reading a policy in TOML fails.

use crate::error::BuildError;
use crate::policy::data::PolicyData;
use crate::policy::problem::PolicyErrorKind;

/// The text of a policy in TOML. No type implements this trait, so a call of `from_toml` gives this compiler error.
#[diagnostic::on_unimplemented(
    message = "this build reads no policy in TOML",
    label = "enable the feature `toml` of `tool-runtime`",
    note = "`cargo add tool-runtime --features toml`; without the feature, `ToolPolicy::from_json` reads the same keys"
)]
pub trait TomlText: AsRef<str> {}

pub(super) fn read(_: &str) -> Result<PolicyData, BuildError> {
    let message = "this build reads no TOML; enable the feature `toml` of `tool-runtime`, or write the policy in JSON";
    Err(PolicyErrorKind::Format.error(None, message.to_owned()))
}
