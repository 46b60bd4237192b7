//! Runs that a long-lived server continues. Other processes post decisions to them, and workers ignore them.

use jiff::Timestamp;

use crate::store::StoredRun;

/// The state of a run that a server continues.
const SERVED: &str = "served";

/// The prefix of the run id of a document that is not a run: with it, a server finds a repeated call of a client.
const NAME: &str = "asked_";

impl StoredRun {
    /// Whether an MCP server continues the run, and no worker does.
    #[must_use]
    pub fn is_served(&self) -> bool {
        *self.state == *SERVED
    }

    /// Whether this is a document by which a server finds a repeated call of a client, and not a run.
    pub(in crate::store) fn is_name(&self) -> bool {
        self.is_served() && self.run_id.starts_with(NAME)
    }

    /// Whether an engine for durable execution continues the run and stores its conversation.
    pub(crate) fn is_driven(&self) -> bool {
        !self.has_document()
    }

    /// Makes the run due, because of an event for a worker.
    pub(super) fn wake(&mut self, now: Timestamp) {
        self.news += 1;
        self.due = Some(self.due.map_or(now, |due| due.min(now)));
    }

    /// Whether a process has the run under a lease at this time of the store's clock.
    #[must_use]
    pub fn is_held(&self, now: Timestamp) -> bool {
        self.holder.as_ref().is_some_and(|holder| now < holder.until)
    }
}

/// The writes of an MCP server.
#[cfg(feature = "mcp-server")]
pub(crate) mod served {
    use std::sync::Arc;
    use std::time::Duration;

    use jiff::Timestamp;

    use super::SERVED;
    use crate::store::Holder;
    use crate::store::ledger::after;
    use crate::store::{Document, Key, StoreError, StoredRun, Transaction};

    /// The prefix of the id of a document by which a server finds a repeated call of a client.
    pub(crate) const NAME: &str = super::NAME;

    /// Stores a run with its document, or a new document of the same run. Posted messages of the run stay.
    pub(crate) fn keep(transaction: &mut Transaction, run: &StoredRun) -> Result<(), StoreError> {
        let key = Key::run(Arc::clone(&run.run_id));
        transaction.refuse_purged(&run.run_id)?;
        let mut kept = run.clone();
        match transaction.get(&key) {
            Some(Document::Run(before))
                if before.is_served() && before.principal == run.principal && before.tenant == run.tenant =>
            {
                (kept.posts, kept.news, kept.due) = (before.posts, before.news, before.due);
                kept.answers.clone_from(&before.answers);
            }
            Some(_) => return Err(StoreError::Duplicate),
            None => {}
        }
        kept.state = SERVED.into();
        kept.changed = Some(transaction.now());
        // The lease never ends, so the run never becomes due for a worker.
        kept.holder = Some(Holder { owner: SERVED.into(), until: Timestamp::MAX });
        transaction.set(&key, Document::Run(Box::new(kept)))
    }

    /// Stores a document, unless the same party has one under this id. Returns that one if it exists.
    pub(crate) fn claim(transaction: &mut Transaction, run: &StoredRun) -> Result<Option<Arc<str>>, StoreError> {
        match transaction.get(&Key::run(Arc::clone(&run.run_id))) {
            Some(Document::Run(before))
                if before.is_served() && before.principal == run.principal && before.tenant == run.tenant =>
            {
                Ok(Some(Arc::clone(&before.document)))
            }
            _ => keep(transaction, run).map(|()| None),
        }
    }

    /// Stores a run with its document, and an id by which one of its calls is found. Returns `false` and writes nothing
    /// if another call has that id.
    ///
    /// An older document of the run is replaced. The server may be about to [`forget`] it because its calls have ended,
    /// and would forget this call with it.
    pub(crate) fn enter(
        transaction: &mut Transaction,
        run: &StoredRun,
        named: Option<&StoredRun>,
    ) -> Result<bool, StoreError> {
        if let Some(named) = named
            && let Some(before) = claim(transaction, named)?
            && before != named.document
        {
            return Ok(false);
        }
        keep(transaction, run).map(|()| true)
    }

    /// Leases a message to the process that carries it out, or renews that lease. Returns `false` if another process
    /// has the message, or the message is gone.
    pub(crate) fn claim_post(
        transaction: &mut Transaction,
        post: &Key,
        owner: &Arc<str>,
        lease_duration: Duration,
    ) -> Result<bool, StoreError> {
        let now = transaction.now();
        let is_free = |holder: &Holder| holder.owner == *owner || holder.until <= now;
        let mut kept = match transaction.get(post) {
            Some(Document::Post(kept)) if kept.holder.as_ref().is_none_or(is_free) => kept.clone(),
            _ => return Ok(false),
        };
        kept.holder = Some(Holder { owner: Arc::clone(owner), until: after(now, lease_duration) });
        transaction.set(post, Document::Post(kept))?;
        Ok(true)
    }

    /// Removes a posted message that was carried out.
    pub(crate) fn taken(transaction: &mut Transaction, post: &Key) -> Result<(), StoreError> {
        let Some(Document::Post(kept)) = transaction.get(post) else { return Ok(()) };
        let answered = kept.answers.clone();
        transaction.remove(post)?;
        let key = Key::run(Arc::clone(post.scope()));
        let Some(Document::Run(run)) = transaction.get(&key) else { return Ok(()) };
        let mut run = run.clone();
        run.posts = run.posts.saturating_sub(1);
        run.answers.retain(|question| !answered.contains(question));
        transaction.set(&key, Document::Run(run))
    }

    /// Removes a run whose calls have ended, unless a message was posted to it or another document was stored
    /// meanwhile.
    pub(crate) fn forget(transaction: &mut Transaction, run_id: &Arc<str>, document: &str) -> Result<(), StoreError> {
        let key = Key::run(Arc::clone(run_id));
        match transaction.get(&key) {
            Some(Document::Run(run)) if run.is_served() && run.posts == 0 && *run.document == *document => {
                transaction.remove(&key)
            }
            _ => Ok(()),
        }
    }

    #[cfg(test)]
    mod tests {
        use std::time::Duration;

        use super::*;
        use crate::call::Question;
        use crate::store::posts;
        use crate::store::runs;

        fn of(principal: &str, document: &str) -> StoredRun {
            StoredRun { principal: Some(principal.into()), ..StoredRun::new("run", document) }
        }

        #[test]
        fn a_served_run_takes_posts_and_no_worker_takes_it() {
            let (run, post) = (Key::run("run"), Key::post("run", "p"));
            let mut transaction = Transaction::over(Timestamp::UNIX_EPOCH, [(run.clone(), None), (post.clone(), None)]);
            keep(&mut transaction, &of("ada", "one")).unwrap();
            let questions = [Question::unknown(&"call".into())];
            let posted =
                |transaction: &mut Transaction| posts::post(transaction, &post, None, &"{}".into(), &questions);
            assert_eq!(posted(&mut transaction).unwrap(), Ok(()));
            let worker = runs::Taker::any("worker", Duration::from_secs(1));
            let leased = runs::lease(&mut transaction, &"run".into(), &worker);
            assert!(leased.unwrap().leased().is_none());
            // Storing a later document keeps the post; a run of another party is not replaced.
            keep(&mut transaction, &of("ada", "two")).unwrap();
            assert!(matches!(keep(&mut transaction, &of("bob", "three")), Err(StoreError::Duplicate)));
            forget(&mut transaction, &"run".into(), "two").unwrap();
            assert!(
                matches!(transaction.get(&run), Some(Document::Run(kept)) if kept.posts == 1 && &*kept.document == "two")
            );
            taken(&mut transaction, &post).unwrap();
            taken(&mut transaction, &post).unwrap();
            assert_eq!(posted(&mut transaction).unwrap(), Ok(()), "its call can be decided on again");
            taken(&mut transaction, &post).unwrap();
            forget(&mut transaction, &"run".into(), "one").unwrap();
            assert!(transaction.get(&run).is_some());
            forget(&mut transaction, &"run".into(), "two").unwrap();
            assert!(transaction.get(&run).is_none());
        }

        #[test]
        fn a_call_that_enters_is_not_forgotten_with_the_calls_before_it() {
            let (run, asked) = (Key::run("run"), Key::run("asked"));
            let mut transaction =
                Transaction::over(Timestamp::UNIX_EPOCH, [(run.clone(), None), (asked.clone(), None)]);
            let named =
                |document: &str| StoredRun { principal: Some("ada".into()), ..StoredRun::new("asked", document) };
            assert!(enter(&mut transaction, &of("ada", "the first call"), Some(&named("first"))).unwrap());
            assert!(!enter(&mut transaction, &of("ada", "another"), Some(&named("another"))).unwrap());
            assert!(enter(&mut transaction, &of("ada", "the second call"), None).unwrap());
            forget(&mut transaction, &"run".into(), "the first call").unwrap();
            assert!(matches!(transaction.get(&run), Some(Document::Run(kept)) if &*kept.document == "the second call"));
        }

        #[test]
        fn a_run_of_workers_is_left_alone() {
            let mut transaction = Transaction::over(Timestamp::UNIX_EPOCH, [(Key::run("run"), None)]);
            runs::enqueue(&mut transaction, &of("ada", "{}")).unwrap();
            assert!(matches!(keep(&mut transaction, &of("ada", "one")), Err(StoreError::Duplicate)));
            forget(&mut transaction, &"run".into(), "{}").unwrap();
            assert!(transaction.get(&Key::run("run")).is_some());
        }
    }
}
