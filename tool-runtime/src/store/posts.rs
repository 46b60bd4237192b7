//! Messages that any process posts to a run. The worker that has the run takes each of them once, in order.

use std::sync::Arc;

use crate::call::Question;
use crate::store::{Document, Key, Post, StoreError, StoredRun, Transaction};

/// The maximum number of messages that wait in the post of a run.
const MOST: u32 = 256;

/// The reason why a message is not posted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotPosted {
    /// The tenant has no such run.
    NoRun,
    /// A message in the run's post already answers this question.
    Answered(Question),
}

/// A message that its run takes. Nothing is written yet.
pub(crate) struct Prepared {
    key: Key,
    run: Box<StoredRun>,
    post: Post,
}

/// Prepares a message for a run, with the questions that it answers. Another message under the same key is an error;
/// `Ok(None)` if the same message was posted before.
pub(crate) fn prepare(
    transaction: &Transaction,
    key: &Key,
    tenant: Option<&str>,
    body: &Arc<str>,
    answers: &[Question],
) -> Result<Result<Option<Prepared>, NotPosted>, StoreError> {
    let (run_key, now) = (Key::run(Arc::clone(key.scope())), transaction.now());
    let mut run = match transaction.get(&run_key) {
        Some(Document::Run(run)) if run.tenant.as_deref() == tenant => run.clone(),
        _ => return Ok(Err(NotPosted::NoRun)),
    };
    match transaction.get(key) {
        None => {}
        // A retry: the acknowledgement of the first attempt was lost.
        Some(Document::Post(kept)) if kept.body == *body => return Ok(Ok(None)),
        Some(_) => return Err(StoreError::Duplicate),
    }
    if let Some(question) = answers.iter().find(|question| run.answers.contains(question)) {
        return Ok(Err(NotPosted::Answered(question.clone())));
    }
    if run.posts >= MOST {
        return Err(StoreError::Full);
    }
    run.posts += 1;
    run.answers.extend_from_slice(answers);
    run.wake(now);
    let post = Post { body: Arc::clone(body), at: now, answers: answers.to_vec() };
    Ok(Ok(Some(Prepared { key: key.clone(), run, post })))
}

/// Posts a message to a run, with the questions that it answers: see [`prepare`].
pub(crate) fn post(
    transaction: &mut Transaction,
    key: &Key,
    tenant: Option<&str>,
    body: &Arc<str>,
    answers: &[Question],
) -> Result<Result<(), NotPosted>, StoreError> {
    match prepare(transaction, key, tenant, body, answers)? {
        Ok(prepared) => prepared.map_or(Ok(()), |prepared| prepared.write(transaction)).map(Ok),
        Err(why) => Ok(Err(why)),
    }
}

impl Prepared {
    /// Posts the message. It takes effect as a whole or not at all.
    pub(crate) fn write(self, transaction: &mut Transaction) -> Result<(), StoreError> {
        let run_key = Key::run(Arc::clone(self.key.scope()));
        transaction.set(&self.key, Document::Post(Box::new(self.post)))?;
        transaction.set(&run_key, Document::Run(self.run))
    }
}
