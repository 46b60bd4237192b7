//! The adapters, which implement the capabilities of the office tools.

pub(crate) mod calendar;
pub(crate) mod climate;
pub(crate) mod clock;
pub(crate) mod database;
pub(crate) mod mail;
pub(crate) mod outbox;
mod queries;
mod seed;
pub(crate) mod service;
pub(crate) mod titles;
pub(crate) mod vault;
pub(crate) mod web;
pub(crate) mod workspace;

use office_tools::Failure;

/// Runs blocking work on a blocking thread.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Failure::Unavailable(error.into()))?
}

/// Wraps an error of the system that an adapter uses. Only operators read it.
pub(crate) fn unavailable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Failure {
    Failure::Unavailable(error.into())
}
