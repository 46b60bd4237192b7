//! One process at a time takes a run, for the run's own principal. One post finishes a call.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::call::Question;
use crate::store::posts::NotPosted;
use crate::store::runs::{self, AfterUpdate, Due, RunUpdate, Taker, Taking};
use crate::store::{Document, Key, RunLease, StoreError, StoredRun, Transaction, posts};

const LEASE: Duration = Duration::from_secs(30);

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

/// One run and one post. Successive transactions change them.
struct One(Option<Document>, Option<Document>);

impl One {
    fn change<T>(
        &mut self,
        second: i64,
        change: impl FnOnce(&mut Transaction) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let documents = [(Key::run("r"), self.0.clone()), (Key::post("r", "p"), self.1.clone())];
        let mut transaction = Transaction::over(at(second), documents);
        let changed = change(&mut transaction)?;
        for (key, document) in transaction.into_writes().0 {
            *(if key == Key::run("r") { &mut self.0 } else { &mut self.1 }) = document.map(|stored| stored.document);
        }
        Ok(changed)
    }

    fn take(&mut self, second: i64, party: (&str, &str), owner: &str) -> Taking {
        let party = (Some(party.0), Some(party.1));
        self.change(second, |transaction| runs::take(transaction, &"r".into(), party, &owner.into(), LEASE)).unwrap()
    }

    fn save(&mut self, second: i64, lease: &RunLease, next: AfterUpdate) -> Result<(), StoreError> {
        let update =
            RunUpdate { document: None, state: Some("asked".into()), version: None, taken: None, failures: 0, next };
        self.change(second, |transaction| runs::save(transaction, lease, &update))
    }
}

fn lease(taking: Taking) -> RunLease {
    let Taking::Taken(lease, _) = taking else { panic!("{taking:?}") };
    lease
}

#[test]
fn one_process_has_a_run() {
    let mut one = One(None, None);
    let mut run = StoredRun::new("r", "{}");
    (run.principal, run.tenant) = (Some("ada".into()), Some("acme".into()));
    let owner: Arc<str> = "maker".into();
    let made = one.change(0, |transaction| runs::enqueue_held(transaction, &run, &owner, LEASE)).unwrap();
    let again = one.change(0, |transaction| runs::enqueue_held(transaction, &run, &owner, LEASE));
    assert!(matches!(again, Err(StoreError::Duplicate)));
    // A worker, another process of the same principal, and other principals and tenants cannot take the run.
    let leased = one.change(1, |transaction| runs::lease(transaction, &"r".into(), &Taker::any("worker", LEASE)));
    assert!(leased.unwrap().leased().is_none());
    assert!(matches!(one.take(1, ("ada", "acme"), "other"), Taking::Held));
    for party in [("bob", "acme"), ("ada", "other")] {
        assert!(matches!(one.take(1, party, "other"), Taking::Unknown), "{party:?}");
    }
    assert_eq!(lease(one.take(1, ("ada", "acme"), "maker")), made, "a repeated request has the same lease");
    // Once the run is released, another process may take it before it is due, and the first process can no longer
    // write.
    one.save(2, &made, AfterUpdate::Release { due: Due::Never, news: 0 }).unwrap();
    let taken = lease(one.take(3, ("ada", "acme"), "other"));
    assert!(matches!(one.save(4, &made, AfterUpdate::Keep), Err(StoreError::Fenced)));
    one.save(4, &taken, AfterUpdate::Keep).unwrap();
    // After the lease has ended, the next process takes the run. Here it is a worker, because the run is due.
    let leased =
        one.change(40, |transaction| runs::lease(transaction, &"r".into(), &Taker::any("worker", LEASE))).unwrap();
    assert!(leased.leased().is_some() && matches!(one.save(41, &taken, AfterUpdate::Keep), Err(StoreError::Fenced)));
}

#[test]
fn another_post_does_not_take_the_place_of_the_first() {
    let mut one = One(Some(Document::Run(Box::new(StoredRun::new("r", "{}")))), None);
    let mut post = |body: &str| {
        one.change(0, |transaction| posts::post(transaction, &Key::post("r", "p"), None, &Arc::from(body), &[]))
    };
    assert_eq!(post("approved").unwrap(), Ok(()));
    assert_eq!(post("approved").unwrap(), Ok(()), "an attempt whose answer was lost is repeated");
    assert!(matches!(post("denied"), Err(StoreError::Duplicate)));
    let Some(Document::Run(run)) = one.0 else { panic!("the run is gone") };
    assert_eq!(run.posts, 1);
}

/// One post finishes a call, at any place in a post with several decisions.
#[test]
fn each_call_of_a_post_is_decided_by_it_alone() {
    let key = Key::post("r", "p");
    let run = StoredRun { due: Some(at(0)), ..StoredRun::new("r", "{}") };
    let mut one = One(Some(Document::Run(Box::new(run))), None);
    let question = |call: &str| Question::unknown(&call.into());
    let post = |one: &mut One, calls: &[&str]| {
        let answers: Vec<_> = calls.iter().copied().map(question).collect();
        // The store holds one post, so it is cleared before the next one.
        one.1 = None;
        one.change(0, |transaction| posts::post(transaction, &key, None, &"body".into(), &answers)).unwrap()
    };
    assert_eq!(post(&mut one, &["a", "b"]), Ok(()));
    for (calls, answered) in [(&["b"][..], "b"), (&["a"], "a"), (&["c", "b"], "b"), (&["a", "c"], "a")] {
        assert_eq!(post(&mut one, calls), Err(NotPosted::Answered(question(answered))), "{calls:?}");
        assert!(one.1.is_none(), "a refused post writes nothing");
    }
    assert_eq!(post(&mut one, &["c"]), Ok(()), "another call");
    // A message that was taken no longer blocks its questions.
    let lease = one.change(1, |transaction| runs::lease(transaction, &"r".into(), &Taker::any("worker", LEASE)));
    let (lease, _) = lease.unwrap().leased().unwrap();
    let taken = Some(key.clone());
    let (state, next) = (Some("ran".into()), AfterUpdate::Keep);
    let update = RunUpdate { document: None, state, version: None, taken, failures: 0, next };
    one.change(2, |transaction| runs::save(transaction, &lease, &update)).unwrap();
    assert_eq!(post(&mut one, &["b"]), Err(NotPosted::Answered(question("b"))));
    assert_eq!(post(&mut one, &["c"]), Ok(()));
}
