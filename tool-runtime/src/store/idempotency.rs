//! What is kept under an idempotency key, so that work with effects is done once.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::call::Outcome;

/// What [`Store::begin`](crate::store::Store::begin) found.
#[derive(Debug, Clone)]
pub enum Begun {
    /// Nothing: the caller is the one to do the work.
    First,
    /// Somebody began and did not finish. Whether it took effect is not known.
    Running,
    /// The work was done before.
    Finished(Finished),
}

/// How work ended, in projected form.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Finished {
    /// How.
    pub outcome: Outcome,
    /// The projected value.
    pub value: Option<Arc<RawValue>>,
    /// The projection for the model where it differs.
    pub model_value: Option<Arc<RawValue>>,
}
