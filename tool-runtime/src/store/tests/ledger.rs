//! The answers of the ledger in every state of an entry.

use std::time::Duration;

use jiff::Timestamp;

use crate::call::{Cause, Outcome, ToolInvocationRecord};
use crate::store::conformance::{self, key, record};
use crate::store::ledger::{self, Begun, Intent};
use crate::store::{Document, StoreError, Transaction};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn intent(owner: &str, repeatable: bool) -> Intent {
    Intent { repeatable, ..conformance::intent(owner, Duration::from_secs(30)) }
}

/// An entry that successive transactions change.
#[derive(Default)]
struct Entry(Option<Document>, Vec<String>);

impl Entry {
    fn at<T>(
        &mut self,
        second: i64,
        change: impl FnOnce(&mut Transaction) -> Result<T, StoreError>,
    ) -> Result<T, &'static str> {
        let mut transaction = Transaction::over(at(second), [(key(), self.0.clone())]);
        let answer = change(&mut transaction).map_err(|error| error.code())?;
        let (documents, _, _, records) = transaction.into_writes();
        for (_, document) in documents {
            self.0 = document.map(|stored| stored.document);
        }
        self.1.extend(records.iter().filter_map(|record| Some(record.as_call()?.outcome.code().to_owned())));
        Ok(answer)
    }

    fn begin(&mut self, second: i64, owner: &str, repeatable: bool) -> Begun {
        self.at(second, |transaction| ledger::begin(transaction, &intent(owner, repeatable))).unwrap()
    }

    fn finish(&mut self, second: i64, owner: &str) -> Result<(), &'static str> {
        self.close(second, owner, &record("run", "a"))
    }

    fn close(&mut self, second: i64, owner: &str, record: &ToolInvocationRecord) -> Result<(), &'static str> {
        self.at(second, |transaction| ledger::finish(transaction, &key(), &owner.into(), record, None, None).map(drop))
    }

    fn renew(&mut self, second: i64, owner: &str) -> Result<(), &'static str> {
        self.at(second, |transaction| ledger::renew(transaction, &key(), owner, Duration::from_secs(30)))
    }

    /// Returns the end of the owner's lease, in seconds.
    fn until(&self) -> i64 {
        let due = self.0.as_ref().and_then(Document::due).unwrap();
        due.as_second() - at(0).as_second()
    }
}

/// A server that takes over a call of a killed server can be killed, too. Other servers still look for the call.
#[test]
fn a_call_that_a_server_took_over_is_still_a_servers() {
    let mut entry = Entry::default();
    let served = Intent { ends_with_process: true, ..intent("one", true) };
    entry.at(0, |transaction| ledger::begin(transaction, &served)).unwrap();
    // The run that sweeps has no session.
    entry.begin(31, "two", true);
    let Some(Document::Call(call)) = &entry.0 else { panic!("it began") };
    assert!(call.ends_with_process && *call.owner == *"two");
}

/// A clock that jumped back lets no other attempt take a call over early.
#[test]
fn a_lease_is_never_shortened() {
    let mut entry = Entry::default();
    entry.begin(100, "one", false);
    for (now, until) in [(100, 130), (40, 130), (-900, 130), (99, 130), (101, 131), (70, 131), (140, 170)] {
        entry.renew(now, "one").unwrap();
        assert_eq!(entry.until(), until, "renewed at {now}");
    }
    // The acknowledgement of the intent was lost, and the intent is written again.
    assert!(matches!(entry.begin(20, "one", false), Begun::Now { booked: None, .. }));
    assert_eq!(entry.until(), 170);
    assert!(matches!(entry.begin(169, "two", false), Begun::Elsewhere));
    assert_eq!(entry.renew(169, "two"), Err("store_fenced"));
}

/// An attempt that took a call over and did not run it cannot know the effects of the earlier attempt.
#[test]
fn what_began_before_is_not_closed_as_cancelled() {
    let cancelled =
        |cause| ToolInvocationRecord { outcome: Outcome::Cancelled, cause, executed: false, ..record("run", "a") };
    let mut first = Entry::default();
    first.begin(0, "one", false);
    first.close(1, "one", &cancelled(Some(Cause::Cancelled))).unwrap();
    assert_eq!(first.1, ["cancelled"], "the tool did not run");
    for repeatable in [false, true] {
        let taken_over = || {
            let mut entry = Entry::default();
            entry.begin(0, "one", repeatable);
            entry.begin(30, "two", repeatable);
            entry
        };
        for (cause, expected) in [
            (Some(Cause::Cancelled), "outcome_unknown"),
            (None, "outcome_unknown"),
            // The tool confirms that the earlier attempt had no effect.
            (Some(Cause::Prevented), "cancelled"),
        ] {
            let mut entry = taken_over();
            entry.close(31, "two", &cancelled(cause)).unwrap();
            assert_eq!(entry.1, [expected], "{cause:?}");
            let Some(Document::Call(kept)) = &entry.0 else { panic!("it is kept") };
            assert_eq!((kept.record.outcome.code(), kept.record.ended_at.is_some()), (expected, true));
        }
        let mut entry = taken_over();
        entry.finish(31, "two").unwrap();
        assert_eq!(entry.1, ["ok"]);
    }
}

#[test]
fn a_call_begins_once() {
    let mut entry = Entry::default();
    assert!(matches!(entry.begin(0, "one", false), Begun::Now { booked: None, .. }));
    assert!(
        matches!(entry.begin(0, "one", false), Begun::Now { booked: None, .. }),
        "the first answer may have been lost"
    );
    assert!(matches!(entry.begin(29, "two", false), Begun::Elsewhere));
    assert!(matches!(entry.begin(29, "two", true), Begun::Elsewhere));
    assert_eq!(entry.finish(31, "one"), Ok(()));
    assert!(matches!(entry.begin(32, "two", true), Begun::Finished(_)));
    assert_eq!(entry.finish(33, "one"), Ok(()), "the first answer may have been lost");
    assert_eq!(entry.1, ["ok"], "one record");
}

#[test]
fn who_lost_a_call_cannot_write() {
    let mut entry = Entry::default();
    entry.begin(0, "one", false);
    assert!(matches!(entry.begin(30, "two", false), Begun::Abandoned));
    assert_eq!(entry.finish(31, "one"), Err("store_fenced"));
    let renewed = entry.at(31, |transaction| ledger::renew(transaction, &key(), "one", Duration::from_secs(30)));
    assert_eq!(renewed, Err("store_fenced"));
    assert_eq!(entry.finish(31, "two"), Ok(()));
    assert_eq!(entry.1, ["ok"]);
}

#[test]
fn a_renewed_call_is_not_taken_over() {
    let mut entry = Entry::default();
    entry.begin(0, "one", false);
    entry.at(20, |transaction| ledger::renew(transaction, &key(), "one", Duration::from_secs(30))).unwrap();
    assert!(matches!(entry.begin(49, "two", false), Begun::Elsewhere));
    assert!(!entry.at(49, |transaction| ledger::close_abandoned(transaction, &key(), None)).unwrap());
    assert!(entry.at(50, |transaction| ledger::close_abandoned(transaction, &key(), None)).unwrap());
    assert_eq!(
        (entry.finish(51, "one"), entry.1.as_slice()),
        (Err("store_fenced"), &["outcome_unknown".to_owned()][..])
    );
    assert!(!entry.at(99, |transaction| ledger::close_abandoned(transaction, &key(), None)).unwrap(), "closed once");
}

#[test]
fn what_may_be_repeated_begins_again() {
    let mut entry = Entry::default();
    entry.begin(0, "one", true);
    assert!(matches!(entry.begin(30, "two", true), Begun::Now { booked: None, .. }));
    assert_eq!(entry.finish(31, "one"), Err("store_fenced"));
}

#[test]
fn an_intent_that_comes_after_its_end_does_not_begin() {
    let mut entry = Entry::default();
    entry.finish(0, "one").unwrap();
    assert!(matches!(entry.begin(1, "one", false), Begun::Finished(_)));
    assert_eq!(entry.1.len(), 1);
}

/// The worker that has the run knows that the previous worker can no longer write.
#[test]
fn a_new_worker_takes_over_what_the_one_before_it_began() {
    let held = |owner: &'static str, worker| Intent { worker, ..intent(owner, false) };
    for (before, now, expected) in [
        (Some(1), Some(2), true),
        (Some(2), Some(2), false),
        (Some(2), Some(1), false),
        (None, Some(2), false),
        (Some(1), None, false),
    ] {
        let mut entry = Entry::default();
        assert!(matches!(
            entry.at(0, |transaction| ledger::begin(transaction, &held("a", before))).unwrap(),
            Begun::Now { .. }
        ));
        let begun = entry.at(1, |transaction| ledger::begin(transaction, &held("b", now))).unwrap();
        assert_eq!(matches!(begun, Begun::Abandoned), expected, "{before:?} {now:?} {begun:?}");
    }
}
