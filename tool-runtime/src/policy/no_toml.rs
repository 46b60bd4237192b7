//! The replacement for the reader of TOML in a build without it: a policy in TOML is refused.

use crate::error::BuildError;
use crate::policy::data::PolicyData;
use crate::policy::problem::PolicyErrorKind;

/// A string of TOML. No type implements the trait, so that a call of `from_toml` in such a build names the feature.
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
