//! Notices: the contents that apply to a call, and the tasks that they wake.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::call::ToolInvocationRecord;
use crate::policy::{NoticeEvent, NoticeTerms};
use crate::store::conformance::{self, waiting};
use crate::store::effects::EffectClaim;
use crate::store::ledger::{self, Intent};
use crate::store::{Document, Key, StoredNotice, Transaction, Waiting, notices};

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

/// The process that takes a call over has another policy. The contents with which the call began still apply.
#[test]
fn a_take_over_keeps_the_contents_of_the_first_attempt() {
    let key = conformance::key();
    let intent = |owner: &str, notices| Intent {
        reconciles: true,
        notices,
        ..conformance::intent(owner, Duration::from_secs(30))
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
        let ended = ToolInvocationRecord { ended_at: Some(now), ..intent("two", None).lost_record };
        let terms = takes_over.as_deref();
        ledger::finish(&mut transaction, &key, &"two".into(), &ended, None, terms).unwrap();
        let notices = found(transaction).0;
        let are_first: Vec<_> = notices.iter().map(|notice| notice.payload().contains("First.")).collect();
        assert_eq!(are_first, expected);
    }
}

/// A call that is left open for another process can stay open for a week.
#[test]
fn a_call_that_is_left_open_has_its_notice_once() {
    let effect = Key::effect("digest".into());
    let claim = EffectClaim { key: effect.clone(), shown: Vec::new(), once: None };
    // A tool that may be repeated blocks no other call.
    for claim in [Some(claim), None] {
        assert_eq!(notices_of_a_left_call(claim, &effect), [0, 1, 0, 0]);
    }
}

fn notices_of_a_left_call(effect: Option<EffectClaim>, place: &Key) -> Vec<usize> {
    let key = conformance::key();
    let intent = Intent {
        waited: Some(Box::new(waiting("run", "a", 10).call)),
        effect,
        notices: Some(terms(NoticeEvent::Unknown, "First.")),
        reconciles: true,
        ..conformance::intent("one", Duration::from_secs(30))
    };
    let mut documents = [(key.clone(), None), (place.clone(), None)];
    let mut noticed = Vec::new();
    // The call begins, is left open after its lease, and is closed after a week.
    for second in [0, 31, 40, 31 + 8 * 86_400] {
        let mut transaction = Transaction::over(Timestamp::from_second(second).unwrap(), documents.clone());
        if second == 0 {
            ledger::begin(&mut transaction, &intent).unwrap();
        } else {
            ledger::leave_or_close(&mut transaction, &key, None).unwrap();
        }
        let mut count = 0;
        for (key, stored) in transaction.into_writes().0 {
            match documents.iter_mut().find(|(known, _)| *known == key) {
                Some((_, document)) => *document = stored.map(|stored| stored.document),
                None => count += 1,
            }
        }
        noticed.push(count);
    }
    noticed
}
