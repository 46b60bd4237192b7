//! Messages that any process posts to a run. The worker that has the run takes each of them once, in order.

use std::sync::Arc;

use crate::call::Question;
use crate::store::{Document, Key, Post, StoreError, Transaction};

/// The maximum number of messages that wait in the post of a run.
const MOST: u32 = 256;

/// The result of posting.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Posted {
    Kept,
    /// The tenant has no such run.
    NoRun,
    /// A message in the run's post already answers this question.
    Answered(Question),
}

/// Posts a message to a run, with the questions that it answers. It takes effect as a whole or not at all. Another
/// message under the same key is an error.
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
        // A retry: the acknowledgement of the first attempt was lost.
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
