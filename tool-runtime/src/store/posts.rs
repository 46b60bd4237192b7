//! Messages that any process posts to a run. The worker that has the run receives each message once, in order.

use std::sync::Arc;

use crate::call::Question;
use crate::store::{Document, Key, Post, StoreError, StoredRun, Transaction};

/// The maximum number of unreceived messages to a run.
const MAX_POSTS: u32 = 256;

/// The reason why a message is not posted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotPosted {
    /// The tenant has no such run.
    NoRun,
    /// A message that the run has not received yet already answers this question.
    Answered(Question),
}

/// A message to post, with the questions that it answers.
#[derive(Clone)]
pub(crate) struct Letter {
    pub(crate) key: Key,
    pub(crate) body: Arc<str>,
    pub(crate) answers: Vec<Question>,
}

/// Messages that can be posted to their run. Nothing is written yet.
pub(crate) struct Prepared {
    run: Box<StoredRun>,
    posts: Vec<(Key, Post)>,
}

/// Prepares messages for a run. A message that was posted before is left out; another message under the same key is an
/// error (`Duplicate`). `Ok(Err(_))` is the reason why the messages cannot be posted.
pub(crate) fn prepare(
    transaction: &Transaction,
    run_id: &Arc<str>,
    tenant: Option<&str>,
    letters: Vec<Letter>,
) -> Result<Result<Prepared, NotPosted>, StoreError> {
    let now = transaction.now();
    let mut run = match transaction.get(&Key::run(Arc::clone(run_id))) {
        Some(Document::Run(run)) if run.tenant.as_deref() == tenant => run.clone(),
        _ => return Ok(Err(NotPosted::NoRun)),
    };
    let mut posts = Vec::new();
    for Letter { key, body, answers } in letters {
        match transaction.get(&key) {
            None => {}
            // A retry: the acknowledgement of the first attempt was lost.
            Some(Document::Post(kept)) if kept.body == body => continue,
            Some(_) => return Err(StoreError::Duplicate),
        }
        if let Some(question) = answers.iter().find(|question| run.answers.contains(question)) {
            return Ok(Err(NotPosted::Answered(question.clone())));
        }
        if run.posts >= MAX_POSTS {
            return Err(StoreError::Full);
        }
        run.posts += 1;
        run.changed = Some(now);
        run.answers.extend_from_slice(&answers);
        run.wake(now);
        posts.push((key, Post { body, at: now, answers, holder: None }));
    }
    Ok(Ok(Prepared { run, posts }))
}

impl Prepared {
    /// Posts all messages.
    pub(crate) fn write(self, transaction: &mut Transaction) -> Result<(), StoreError> {
        if self.posts.is_empty() {
            return Ok(());
        }
        for (key, post) in self.posts {
            transaction.set(&key, Document::Post(Box::new(post)))?;
        }
        transaction.set(&Key::run(Arc::clone(&self.run.run_id)), Document::Run(self.run))
    }
}

/// Posts one message to a run: see [`prepare`].
#[cfg(any(test, feature = "testing"))]
pub(crate) fn post(
    transaction: &mut Transaction,
    key: &Key,
    tenant: Option<&str>,
    body: &Arc<str>,
    answers: &[Question],
) -> Result<Result<(), NotPosted>, StoreError> {
    let letter = Letter { key: key.clone(), body: Arc::clone(body), answers: answers.to_vec() };
    match prepare(transaction, key.scope(), tenant, vec![letter])? {
        Ok(prepared) => prepared.write(transaction).map(Ok),
        Err(why) => Ok(Err(why)),
    }
}
