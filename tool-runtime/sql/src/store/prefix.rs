//! [`Prefix`]: the prefix of the names of a store's tables.

use std::sync::Arc;

use sqlx::AssertSqlSafe;
use tool_runtime::store::StoreError;

use crate::store::problem::misconfigured;

/// The default prefix of tables. The statements in this library are written with it.
const DEFAULT: &str = "tool_runtime_";

/// The longest prefix, in bytes. PostgreSQL truncates names to 63 bytes, and the longest name of an index,
/// `tool_runtime_documents_space_scope_id_key`, has 28 bytes after the prefix.
const MAX_BYTES: usize = 32;

/// The prefix of the names of a store's tables. `None` is the default.
#[derive(Debug, Clone, Default)]
pub(super) struct Prefix(Option<Arc<str>>);

impl Prefix {
    pub(super) fn new(prefix: &str) -> Self {
        Self((prefix != DEFAULT).then(|| prefix.into()))
    }

    pub(super) const fn is_default(&self) -> bool {
        self.0.is_none()
    }

    fn text(&self) -> &str {
        self.0.as_deref().unwrap_or(DEFAULT)
    }

    /// Refuses a prefix that is not a plain identifier, because it becomes part of statements. Also refuses `sqlite_`,
    /// with which SQLite allows no table to begin.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let text = self.text();
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let is_name = text.bytes().all(is_plain) && text.bytes().next().is_some_and(|first| !first.is_ascii_digit());
        if is_name && text.len() <= MAX_BYTES && !text.starts_with("sqlite_") {
            return Ok(());
        }
        Err(misconfigured(format!(
            "the prefix of the tables is invalid: write 1 to {MAX_BYTES} characters of a-z, 0-9 and _, that start with \
             neither a digit nor `sqlite_`, such as `orders_`"
        )))
    }

    /// Returns the name of a table, an index or a channel of this store.
    pub(super) fn name(&self, default: &str) -> String {
        match &self.0 {
            Some(prefix) => default.replace(DEFAULT, prefix),
            None => default.to_owned(),
        }
    }

    /// Replaces the default prefix in a statement of this library. `AssertSqlSafe` is correct here: values from outside
    /// are arguments of the statement, and `check` admits only prefixes that are plain identifiers.
    pub(super) fn named(&self, sql: String) -> AssertSqlSafe<String> {
        AssertSqlSafe(match &self.0 {
            Some(prefix) => sql.replace(DEFAULT, prefix),
            None => sql,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_a_plain_identifier() {
        let longest = "p".repeat(MAX_BYTES);
        for good in [DEFAULT, "a", "_", "orders_2_", &longest] {
            assert!(Prefix::new(good).check().is_ok(), "{good}");
        }
        let long = "p".repeat(MAX_BYTES + 1);
        for wrong in ["", "2_", "Orders_", "a-b", "a b", "a.b", "a\"b", "a;", "\u{e4}", "sqlite_x", &long] {
            let error = Prefix::new(wrong).check().unwrap_err();
            assert_eq!(error.code(), "store_misconfigured", "{wrong}");
        }
    }

    #[test]
    fn statements_are_written_with_the_default() {
        let sql = "SELECT 1 FROM tool_runtime_records JOIN tool_runtime_documents";
        assert_eq!(Prefix::default().name(sql), sql);
        assert_eq!(Prefix::new("a_").name(sql), "SELECT 1 FROM a_records JOIN a_documents");
    }
}
