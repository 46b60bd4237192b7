//! Reads a policy from TOML, and reports mistakes with line and column. Only this file names the crate `toml`.

use std::borrow::Cow;

use crate::error::BuildError;
use crate::json::Tree;
use crate::policy::data::PolicyData;
use crate::policy::parse::Table;
use crate::policy::problem::PolicyErrorKind;
use crate::policy::read::{one_line, refused};
use crate::text::line_column;

pub(super) fn read(text: &str) -> Result<PolicyData, BuildError> {
    toml::from_str(text).map(|Table(data)| data).map_err(|error| {
        let place = error.span().map(|span| line_column(text, span.start));
        match text.parse().map(toml::Value::Table) {
            Ok(value) => refused(Some(&from_toml(&value)), place, error.message()),
            Err(_) => PolicyErrorKind::Syntax.error(place, one_line(error.message())),
        }
    })
}

fn from_toml(value: &toml::Value) -> Tree<'_> {
    match value {
        toml::Value::String(text) => Tree::String(Cow::Borrowed(text)),
        toml::Value::Integer(number) => Tree::Int(*number),
        toml::Value::Float(number) => Tree::Float(*number),
        toml::Value::Boolean(flag) => Tree::Bool(*flag),
        // serde reads a TOML date as a table, and a policy has no dates.
        toml::Value::Datetime(_) => Tree::Object(Vec::new()),
        toml::Value::Array(items) => Tree::Array(items.iter().map(from_toml).collect()),
        toml::Value::Table(members) => {
            Tree::Object(members.iter().map(|(name, value)| (Cow::Borrowed(name.as_str()), from_toml(value))).collect())
        }
    }
}
