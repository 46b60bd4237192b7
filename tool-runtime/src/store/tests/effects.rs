//! Effect keys of calls that were left open, and the order of unsettled outcomes.

use jiff::Timestamp;

use crate::call::{CallId, Outcome, ToolInvocationRecord};
use crate::store::conformance::record;
use crate::store::effects::{self, EffectClaim, OnceClaim};
use crate::store::{
    Document, Key, MemoryStore, RecordFilter, Store, StoredEffect, StoredUnknown, Transaction, UnknownCall, transact,
};
use crate::tool::Hash;

const FIRST: Hash = Hash([1; 32]);
const SECOND: Hash = Hash([2; 32]);

fn effect() -> Key {
    Key::effect("digest".into())
}

fn ends(transaction: &mut Transaction, call: Hash, outcome: Outcome) {
    let id = if call == FIRST { "first" } else { "second" };
    let record = ToolInvocationRecord { outcome, ..record("run", id) };
    effects::ended(transaction, (&effect(), None), &Key::call("run", call), &record, None).expect("it is locked");
}

fn shown(key: Hash) -> UnknownCall {
    let (run_id, call_id, since) = ("run".into(), CallId::new("first"), Timestamp::UNIX_EPOCH);
    UnknownCall { run_id, call_id, key, since, cause: None, is_once: true, known: None }
}

fn stored(transaction: &Transaction) -> Option<StoredEffect> {
    match transaction.get(&effect()) {
        Some(Document::Effect(effect)) => Some((**effect).clone()),
        _ => None,
    }
}

/// The first call has the key and is left open. The second call begins with a person's approval.
fn second_begins() -> (Transaction, EffectClaim) {
    let mut transaction = Transaction::over(Timestamp::UNIX_EPOCH, [(effect(), None)]);
    let claim = EffectClaim { key: effect(), shown: vec![shown(FIRST)], once: Some(OnceClaim { keep: None }) };
    effects::hold(&mut transaction, &claim, &Key::call("run", FIRST), &CallId::new("first")).expect("it is locked");
    ends(&mut transaction, FIRST, Outcome::OutcomeUnknown);
    effects::hold(&mut transaction, &claim, &Key::call("run", SECOND), &CallId::new("second")).expect("it is locked");
    (transaction, claim)
}

#[test]
fn a_left_call_that_took_effect_keeps_the_key_though_the_second_call_fails() {
    let (mut transaction, _) = second_begins();
    ends(&mut transaction, FIRST, Outcome::Ok);
    ends(&mut transaction, SECOND, Outcome::ExecutionError);
    let held = stored(&transaction).and_then(|effect| effect.held).expect("the effect happened");
    assert_eq!((held.key, held.record.map(|record| record.outcome)), (FIRST, Some(Outcome::Ok)));
}

#[test]
fn a_left_call_is_not_repeated_while_a_later_one_is_unknown() {
    let (mut transaction, claim) = second_begins();
    let first = Key::call("run", FIRST);
    assert!(effects::is_superseded(&transaction, &claim, &first), "the second one runs");
    ends(&mut transaction, SECOND, Outcome::OutcomeUnknown);
    assert!(effects::is_superseded(&transaction, &claim, &first), "the second one may have had the effect");
    assert!(
        !effects::is_superseded(&transaction, &claim, &Key::call("run", SECOND)),
        "the approver saw the first call"
    );
}

/// The document of an effect key is written when its call begins, so its position does not depend on the outcome.
#[tokio::test]
async fn the_first_call_to_become_unknown_is_the_first_of_the_list() {
    let store = MemoryStore::new();
    for (began, unknown_at) in [("first", 30), ("second", 10), ("third", 20)] {
        let since = Timestamp::from_second(unknown_at).unwrap();
        let call = UnknownCall { since, ..shown(FIRST) };
        let unknown = StoredUnknown { call, record: Box::new(record("run", began)), waited: None };
        let (key, effect) = (Key::effect(began.into()), StoredEffect { unknown: vec![unknown], ..Default::default() });
        let write =
            move |transaction: &mut Transaction| transaction.set(&key, Document::Effect(Box::new(effect.clone())));
        transact(&store, vec![Key::effect(began.into())], write).await.unwrap();
    }
    for (limit, expected) in [(None, &["second", "third", "first"][..]), (Some(1), &["second"])] {
        let filter = RecordFilter { limit, ..RecordFilter::default() };
        let listed = (&store as &dyn Store).unsettled_calls(&filter).await.unwrap();
        let ids: Vec<_> = listed.into_iter().map(|record| record.unwrap().tool_call_id.to_string()).collect();
        assert_eq!(ids, expected);
    }
}
