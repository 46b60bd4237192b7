//! Notices: the contents that hold for a call, and the tasks that they wake.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::call::{Outcome, ToolInvocationRecord};
use crate::policy::{NoticeEvent, NoticeTerms};
use crate::store::conformance::{record, waiting};
use crate::store::ledger::{self, Intent};
use crate::store::{Document, Key, StoredNotice, Transaction, Waiting, notices};
use crate::tool::Hash;

/// The contents of a notice of a call that waits.
pub(super) fn waiting_terms(sentence: &str) -> Arc<NoticeTerms> {
    terms(NoticeEvent::Waiting, sentence)
}

fn terms(event: NoticeEvent, sentence: &str) -> Arc<NoticeTerms> {
    Arc::new(NoticeTerms { events: [event].into(), sentence: Some(sentence.to_owned()), ..NoticeTerms::default() })
}

fn found(transaction: Transaction) -> (Vec<StoredNotice>, Option<Document>) {
    let (mut notices, mut call) = (Vec::new(), None);
    for stored in transaction.into_writes().0.into_iter().filter_map(|(_, stored)| stored) {
        match stored.document {
            Document::Notice(notice) => notices.push(*notice),
            document => call = Some(document),
        }
    }
    (notices, call)
}

#[test]
fn a_notice_wakes_no_task() {
    let suspended = Waiting { notices: Some(terms(NoticeEvent::Waiting, "")), ..waiting("run", "a", 10) };
    let mut transaction = Transaction::over(Timestamp::UNIX_EPOCH, [(Key::of_waiting(&suspended.call), None)]);
    notices::waits(&mut transaction, &suspended, None).unwrap();
    assert!(!transaction.wakes());
    assert_eq!(found(transaction).0.len(), 1);
}

/// The process that takes a call over has another policy. The contents with which the call began hold.
#[test]
fn a_take_over_keeps_the_contents_of_the_first_attempt() {
    let key = Key::call("run", Hash([1; 32]));
    let lost_record = ToolInvocationRecord { ended_at: None, outcome: Outcome::OutcomeUnknown, ..record("run", "a") };
    let intent = |owner: &str, notices| Intent {
        key: key.clone(),
        owner: owner.into(),
        lease: Duration::from_secs(30),
        lost_record: lost_record.clone(),
        grant: None,
        repeatable: false,
        worker: None,
        reconciles: true,
        ends_with_process: false,
        graph: None,
        waited: None,
        bill: None,
        waits: None,
        effect: None,
        notices,
    };
    let first = || Some(terms(NoticeEvent::Unknown, "First."));
    let other = || Some(terms(NoticeEvent::Unknown, "Other."));
    for (began, takes_over, expected) in
        [(first(), None, vec![true]), (first(), other(), vec![true]), (None, other(), vec![])]
    {
        let mut call = None;
        for (second, owner, notices) in [(0, "one", began), (31, "two", takes_over.clone())] {
            let now = Timestamp::from_second(second).unwrap();
            let mut transaction = Transaction::over(now, [(key.clone(), call)]);
            ledger::begin(&mut transaction, &intent(owner, notices)).unwrap();
            call = found(transaction).1;
        }
        let now = Timestamp::from_second(32).unwrap();
        let mut transaction = Transaction::over(now, [(key.clone(), call)]);
        let ended = ToolInvocationRecord { ended_at: Some(now), ..lost_record.clone() };
        let terms = takes_over.as_deref();
        ledger::finish(&mut transaction, &key, &"two".into(), &ended, None, terms).unwrap();
        let notices = found(transaction).0;
        let are_first: Vec<_> = notices.iter().map(|notice| notice.payload().contains("First.")).collect();
        assert_eq!(are_first, expected);
    }
}
