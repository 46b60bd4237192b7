//! The store of `tool-runtime` in SQLite (feature `sqlite`) or PostgreSQL (feature `postgres`).
//!
//! `SqlStore` implements [`Store`](tool_runtime::store::Store). It uses only the public API of `tool-runtime`, as any
//! other store can. Without either feature, this package is empty.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use tool_runtime::{ToolCatalog, ToolPolicy, ToolRunner};
//! # #[cfg(feature = "sqlite")]
//! use tool_runtime_sql::{SqlOptions, SqlStore};
//!
//! # #[cfg(feature = "sqlite")]
//! # async fn open() -> Result<(), Box<dyn std::error::Error>> {
//! let store = SqlStore::sqlite("data/store.db", SqlOptions::new()).await?;
//! let runner = ToolRunner::builder(ToolCatalog::collect()?, ToolPolicy::from_path("policy.toml")?)
//!     .store(Arc::new(store))
//!     .build()?;
//! # drop(runner);
//! # Ok(()) }
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod store;

#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub use store::{SqlOptions, SqlStore};
