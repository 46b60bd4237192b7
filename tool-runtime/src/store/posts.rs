//! What is posted to runs: by any process, and taken once, in order, by the worker that has the run.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::call::Question;
use crate::store::{Document, Key, StoreError, Transaction};

/// How much may wait in the post of a run.
const MOST: u32 = 256;

/// What was posted to a run: a message, decisions, answers of the client.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Post {
    /// What it brings, as text that the store does not read.
    pub(crate) body: Arc<str>,
    /// When it was posted.
    pub(crate) at: Timestamp,
    /// The questions that it answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) answers: Vec<Question>,
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
    /// Something in the run's post answers one of its questions already: this one.
    Answered(Question),
}

/// Posts something to a run that answers these questions. It counts whole or not at all; an error if something else waits
/// under the key.
pub(crate) fn post(
    transaction: &mut Transaction,
    key: &Key,
    tenant: Option<&str>,
    body: &Arc<str>,
    answers: &[Question],
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
    if let Some(question) = answers.iter().find(|question| run.answers.contains(question)) {
        return Ok(Posted::Answered(question.clone()));
    }
    if run.posts >= MOST {
        return Err(StoreError::Full);
    }
    run.posts += 1;
    run.answers.extend_from_slice(answers);
    run.wake(now);
    let post = Post { body: Arc::clone(body), at: now, answers: answers.to_vec() };
    transaction.set(key, Document::Post(Box::new(post)))?;
    transaction.set(&run_key, Document::Run(run))?;
    Ok(Posted::Kept)
}
