//! Definitions for #[tool] and #[capability].
