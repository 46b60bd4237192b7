//! What is posted to runs: by any process, and taken once, in order, by the worker that has the run.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::store::{Document, Key, StoreError, Transaction};

/// How much may wait in the post of a run.
const MOST: u32 = 256;

/// What was posted to a run: a message, decisions, answers of the client.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Post {
    /// What it brings, as text that the store does not read.
    pub(crate) body: Arc<str>,
    /// When it was posted.
    pub(crate) at: Timestamp,
}

// What people wrote is in it.
impl std::fmt::Debug for Post {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Post").field("at", &self.at).finish_non_exhaustive()
    }
}

/// Posts something to a run. `false` if the tenant has no such run; an error if something else waits under the key.
pub(crate) fn post(
    transaction: &mut Transaction,
    key: &Key,
    tenant: Option<&str>,
    body: &Arc<str>,
) -> Result<bool, StoreError> {
    let (run_key, now) = (Key::run(Arc::clone(key.scope())), transaction.now());
    let mut run = match transaction.get(&run_key) {
        Some(Document::Run(run)) if run.tenant.as_deref() == tenant => run.clone(),
        _ => return Ok(false),
    };
    match transaction.get(key) {
        None => {}
        // The answer to the first attempt was lost.
        Some(Document::Post(kept)) if kept.body == *body => return Ok(true),
        Some(_) => return Err(StoreError::Duplicate),
    }
    if run.posts >= MOST {
        return Err(StoreError::Full);
    }
    run.posts += 1;
    run.wake(now);
    transaction.set(key, Document::Post(Box::new(Post { body: Arc::clone(body), at: now })))?;
    transaction.set(&run_key, Document::Run(run))?;
    Ok(true)
}
