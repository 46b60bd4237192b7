//! Runs that an MCP server continues. Other processes post decisions to these runs, and workers ignore them.

use jiff::Timestamp;

use crate::store::StoredRun;

/// The state of a run that a server continues.
const SERVED: &str = "served";

/// The prefix of the run id of a document that is not a run. With such a document, a server recognizes a repeated call
/// of a client.
const NAME: &str = "asked_";

impl StoredRun {
    /// Whether an MCP server continues the run, and no worker does.
    #[must_use]
    pub fn is_served(&self) -> bool {
        *self.state == *SERVED
    }

    /// Whether this is not a run, but a document by which a server recognizes a repeated call of a client.
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
    use crate::call::Question;
    use crate::store::Holder;
    use crate::store::ledger::after;
    use crate::store::sweep::remove_if;
    use crate::store::{Document, DocumentKind, Key, Store, StoreError, StoredRun, Transaction};

    /// The prefix of the id of a document by which a server recognizes a repeated call of a client.
    pub(crate) const NAME: &str = super::NAME;

    /// Stores a run, or replaces the document of a stored run. Messages that were posted to the run stay.
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

    /// Stores a document under the id of the run. If the same principal and tenant already have a document there,
    /// returns that document and writes nothing.
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

    /// Stores a run, and the document `named` by which a server recognizes a repeated call. Returns `false` and writes
    /// nothing if another call has the id of `named`.
    ///
    /// Replaces an older document of the run. If the server is about to [`forget`] that document because its calls have
    /// ended, the new document and its call stay.
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
    /// has the message, or the message was removed.
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

    /// Returns the key of the mark that a server has searched for documents of dead servers. A `Decided` mark is not
    /// listed with runs, and a sweep removes it if no server uses the store any more.
    pub(crate) fn search_key() -> Key {
        Key::from_parts(DocumentKind::Decided, "mcp-server", "searched")
    }

    /// Claims the search for documents of dead servers for a part of the `interval`. Returns `false` if a server has
    /// claimed the search, or has [ended](searched) a search in this interval.
    pub(crate) fn claim_search(transaction: &mut Transaction, interval: Duration) -> Result<bool, StoreError> {
        let (key, now) = (search_key(), transaction.now());
        match transaction.get(&key) {
            // Ignore a mark that was written before the store's clock was set back.
            Some(Document::Decided { until }) if now < *until && *until <= after(now, interval) => Ok(false),
            _ => transaction.set(&key, Document::Decided { until: after(now, interval / 24) }).map(|()| true),
        }
    }

    /// Records that a search has ended. The next search is an `interval` later.
    pub(crate) fn searched(transaction: &mut Transaction, interval: Duration) -> Result<(), StoreError> {
        let until = after(transaction.now(), interval);
        transaction.set(&search_key(), Document::Decided { until })
    }

    /// Removes a posted message that was carried out. `rest` is a body with the remaining decisions, and their
    /// questions. With `rest`, the message stays with this body, so that any server can carry out these decisions.
    pub(crate) fn taken(
        transaction: &mut Transaction,
        post: &Key,
        rest: Option<&(Arc<str>, Vec<Question>)>,
    ) -> Result<(), StoreError> {
        let Some(Document::Post(kept)) = transaction.get(post) else { return Ok(()) };
        let mut kept = kept.clone();
        // If the claim of this server ended, another server may have carried out the rest.
        let rest = rest.filter(|(_, questions)| kept.answers.iter().any(|question| questions.contains(question)));
        let mut answered = std::mem::take(&mut kept.answers);
        if let Some((body, questions)) = rest {
            (kept.body, kept.holder) = (Arc::clone(body), None);
            (kept.answers, answered) = answered.into_iter().partition(|question| questions.contains(question));
            transaction.set(post, Document::Post(kept))?;
        } else {
            transaction.remove(post)?;
        }
        let key = Key::run(Arc::clone(post.scope()));
        let Some(Document::Run(run)) = transaction.get(&key) else { return Ok(()) };
        let mut run = run.clone();
        run.posts = run.posts.saturating_sub(u32::from(rest.is_none()));
        run.answers.retain(|question| !answered.contains(question));
        transaction.set(&key, Document::Run(run))
    }

    /// Removes a run whose calls have ended, unless a message was posted to it, another document was stored meanwhile,
    /// or a legal hold covers it.
    pub(crate) async fn forget(store: &dyn Store, run_id: &Arc<str>, document: Arc<str>) -> Result<(), StoreError> {
        let stored = store.read(&[Key::run(Arc::clone(run_id))]).await?.pop().flatten();
        let is_over = move |found: &Document, _| is_left(found, &document);
        remove_if(store, stored.as_slice(), is_over).await.map(drop)
    }

    /// Whether a document is a run of a server with this content and without messages.
    fn is_left(document: &Document, content: &str) -> bool {
        matches!(document, Document::Run(run) if run.is_served() && run.posts == 0 && *run.document == *content)
    }

    #[cfg(test)]
    mod tests {
        use std::time::Duration;

        use super::*;
        use crate::call::Decider;
        use crate::store::posts;
        use crate::store::runs;
        use crate::store::{DocumentKind, MemoryStore, Query, Retention, transact};

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
            assert!(!is_left(transaction.get(&run).unwrap(), "two"), "a message was posted");
            assert!(
                matches!(transaction.get(&run), Some(Document::Run(kept)) if kept.posts == 1 && &*kept.document == "two")
            );
            taken(&mut transaction, &post, None).unwrap();
            taken(&mut transaction, &post, None).unwrap();
            assert_eq!(posted(&mut transaction).unwrap(), Ok(()), "another post can decide on the call");
            taken(&mut transaction, &post, None).unwrap();
            assert!(!is_left(transaction.get(&run).unwrap(), "one"), "another document");
            assert!(is_left(transaction.get(&run).unwrap(), "two"));
        }

        #[test]
        fn the_rest_of_a_message_stays() {
            let (run, post) = (Key::run("run"), Key::post("run", "p"));
            let mut transaction = Transaction::over(Timestamp::UNIX_EPOCH, [(run.clone(), None), (post.clone(), None)]);
            keep(&mut transaction, &of("ada", "one")).unwrap();
            let [first, second] = ["first", "second"].map(|call| Question::unknown(&call.into()));
            let both = [first, second.clone()];
            posts::post(&mut transaction, &post, None, &"both".into(), &both).unwrap().unwrap();
            assert!(claim_post(&mut transaction, &post, &"a".into(), Duration::from_secs(30)).unwrap());
            let rest = ("rest".into(), vec![second.clone()]);
            taken(&mut transaction, &post, Some(&rest)).unwrap();
            let Some(Document::Post(kept)) = transaction.get(&post) else { panic!() };
            assert_eq!((&*kept.body, &*kept.answers, kept.holder.is_none()), ("rest", &[second.clone()][..], true));
            let Some(Document::Run(kept)) = transaction.get(&run) else { panic!() };
            assert_eq!((kept.posts, &*kept.answers), (1, &[second][..]));
            taken(&mut transaction, &post, None).unwrap();
            let Some(Document::Run(kept)) = transaction.get(&run) else { panic!() };
            assert_eq!((kept.posts, kept.answers.is_empty(), transaction.get(&post).is_none()), (0, true, true));
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
            assert!(!is_left(transaction.get(&run).unwrap(), "the first call"));
            assert!(matches!(transaction.get(&run), Some(Document::Run(kept)) if &*kept.document == "the second call"));
        }

        #[test]
        fn a_post_is_claimed_by_one_server_at_a_time() {
            let (run, post) = (Key::run("run"), Key::post("run", "p"));
            let mut transaction = Transaction::over(Timestamp::UNIX_EPOCH, [(run, None), (post.clone(), None)]);
            keep(&mut transaction, &of("ada", "one")).unwrap();
            posts::post(&mut transaction, &post, None, &"{}".into(), &[]).unwrap().unwrap();
            let mut kept = transaction.get(&post).cloned();
            let mut claimed = |second, owner: &str| {
                let now = Timestamp::from_second(second).unwrap();
                let mut transaction = Transaction::over(now, [(post.clone(), kept.take())]);
                let claimed = claim_post(&mut transaction, &post, &owner.into(), Duration::from_secs(30)).unwrap();
                kept = transaction.get(&post).cloned();
                claimed
            };
            assert_eq!(
                [(0, "a"), (29, "b"), (29, "a"), (58, "b")].map(|(at, by)| claimed(at, by)),
                [true, false, true, false]
            );
            // The lease is over, and the first owner has lost it.
            assert_eq!([(59, "b"), (60, "a"), (89, "a")].map(|(at, by)| claimed(at, by)), [true, false, true]);
            let mut gone = Transaction::over(Timestamp::UNIX_EPOCH, [(post.clone(), None)]);
            assert!(!claim_post(&mut gone, &post, &"a".into(), Duration::from_secs(30)).unwrap());
            assert!(gone.get(&post).is_none());
        }

        #[test]
        fn one_server_searches_in_each_interval() {
            let (at, day) = (|hours: i64| Timestamp::from_second(hours * 3600).unwrap(), Duration::from_secs(86_400));
            let mut kept = None;
            let mut claimed = |hours, ends| {
                let mut transaction = Transaction::over(at(hours), [(search_key(), kept.take())]);
                let claimed = claim_search(&mut transaction, day).unwrap();
                if claimed && ends {
                    searched(&mut transaction, day).unwrap();
                }
                kept = transaction.get(&search_key()).cloned();
                claimed
            };
            let ended = [48, 49, 71, 72, 73].map(|hours| claimed(hours, true));
            assert_eq!(ended, [true, false, false, true, false]);
            // The clock was set back.
            assert_eq!([24, 25].map(|hours| claimed(hours, true)), [true, false]);
            // A server that dies during its search.
            assert_eq!([48, 49, 50].map(|hours| claimed(hours, hours > 48)), [true, true, false]);
        }

        #[test]
        fn a_run_of_workers_is_left_alone() {
            let mut transaction = Transaction::over(Timestamp::UNIX_EPOCH, [(Key::run("run"), None)]);
            runs::enqueue(&mut transaction, &of("ada", "{}")).unwrap();
            assert!(matches!(keep(&mut transaction, &of("ada", "one")), Err(StoreError::Duplicate)));
            assert!(!is_left(transaction.get(&Key::run("run")).unwrap(), "{}"));
        }

        /// A legal hold does not keep the document of a repeated call, because it would block the next call of its
        /// client.
        #[tokio::test]
        async fn a_run_under_a_legal_hold_is_not_forgotten() {
            let store = MemoryStore::new();
            let retention = Retention::new(&store, Decider::new("grace"));
            let held = retention.hold_principal("ada", None).await.unwrap();
            for id in ["run", "asked_1"] {
                let run = StoredRun { principal: Some("ada".into()), ..StoredRun::new(id, "{}") };
                transact(&store, vec![Key::run(id)], move |transaction| keep(transaction, &run)).await.unwrap();
            }
            let left = async || {
                for id in ["run", "asked_1"] {
                    forget(&store, &id.into(), "{}".into()).await.unwrap();
                }
                let runs = store.list(&Query::new(DocumentKind::Run)).await.unwrap();
                runs.iter().map(|run| run.key.scope().to_string()).collect::<Vec<_>>()
            };
            assert_eq!(left().await, ["run"]);
            assert!(retention.lift(&held.id).await.unwrap());
            assert!(left().await.is_empty());
        }
    }
}
