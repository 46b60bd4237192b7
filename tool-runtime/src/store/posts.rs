//! What is posted to runs: by any process, and taken once, in order, by the worker that has the run.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::json;
use crate::store::{Document, Key, PendingCall, StoreError, Transaction};

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
    /// The calls that it finishes, as [`finishes`] names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) finishes: Vec<Arc<str>>,
}

// What people wrote is in it.
impl std::fmt::Debug for Post {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Post").field("at", &self.at).finish_non_exhaustive()
    }
}

/// What became of a post.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Posted {
    Kept,
    /// The tenant has no such run.
    NoRun,
    /// Something in the run's post finishes one of its calls already: the one in this place.
    Decided(usize),
}

/// What a post is known by that finishes a call: the call as it waits now, and not as it may wait again.
pub(crate) fn finishes(call: &PendingCall) -> Result<Arc<str>, StoreError> {
    let next = call.graph.as_ref().map(|graph| &graph.call_id);
    let of_call = serde_json::to_vec(&(&call.call_id, call.created_at, next));
    let of_call = of_call.map_err(|error| StoreError::Corrupt(error.into()))?;
    Ok(json::digest(of_call).to_string().into())
}

/// Whether a decision that was posted on these is about the call as it waits now.
pub(crate) fn is_about(posted: &[Arc<str>], call: &PendingCall) -> bool {
    finishes(call).is_ok_and(|waits| posted.contains(&waits))
}

/// Posts something to a run that finishes these calls. It counts whole or not at all; an error if something else waits
/// under the key.
pub(crate) fn post(
    transaction: &mut Transaction,
    key: &Key,
    tenant: Option<&str>,
    body: &Arc<str>,
    finishes: &[Arc<str>],
) -> Result<Posted, StoreError> {
    let (run_key, now) = (Key::run(Arc::clone(key.scope())), transaction.now());
    let mut run = match transaction.get(&run_key) {
        Some(Document::Run(run)) if run.tenant.as_deref() == tenant => run.clone(),
        _ => return Ok(Posted::NoRun),
    };
    match transaction.get(key) {
        None => {}
        // The answer to the first attempt was lost.
        Some(Document::Post(kept)) if kept.body == *body => return Ok(Posted::Kept),
        Some(_) => return Err(StoreError::Duplicate),
    }
    if let Some(place) = finishes.iter().position(|call| run.finishes.contains(call)) {
        return Ok(Posted::Decided(place));
    }
    if run.posts >= MOST {
        return Err(StoreError::Full);
    }
    run.posts += 1;
    run.finishes.extend_from_slice(finishes);
    run.wake(now);
    let post = Post { body: Arc::clone(body), at: now, finishes: finishes.to_vec() };
    transaction.set(key, Document::Post(Box::new(post)))?;
    transaction.set(&run_key, Document::Run(run))?;
    Ok(Posted::Kept)
}
