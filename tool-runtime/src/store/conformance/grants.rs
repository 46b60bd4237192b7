//! Grants are stored unchanged, and each use is counted.

use std::sync::Arc;

use jiff::Timestamp;

use crate::call::{Decider, Verdict};
use crate::store::Covered;
use crate::store::conformance::ledger::{LONG, intent};
use crate::store::conformance::{ask, at, read, several, update, waiting};
use crate::store::ledger::{self, Begun, Intent};
use crate::store::{Document, GrantCaller, GrantOrigin, GrantScope, Key, Store, StoredGrant, Transaction};
use crate::tool::{Hash, ToolName};

/// Returns a grant with a number of uses.
pub(super) fn grant(id: &str, uses: Option<u32>, expires_at: Option<Timestamp>) -> StoredGrant {
    StoredGrant {
        id: id.into(),
        tool: ToolName::parse("core__add").expect("a name"),
        definition_hash: Hash([7; 32]),
        scope: GrantScope::Conversation("talk\0".into()),
        tenant: None,
        principal: Some("ada\\".into()),
        caller: GrantCaller::Graph("helper".into()),
        origin: GrantOrigin::from(&waiting("a\0", id, 9).call),
        labels: vec!["untrusted".into(), "".into()],
        verdict: Verdict::Allow,
        covers: Covered::Exactly(Hash([8; 32])),
        uses,
        expires_at,
        decider: Decider::new("grace").because("It is \u{1f980}."),
        created_at: at(0),
        on_hold: None,
    }
}

pub(super) async fn keep(store: &dyn Store, grant: StoredGrant) -> Key {
    let key = grant.key();
    let named = key.clone();
    let write = move |transaction: &mut Transaction| transaction.set(&named, Document::Grant(grant.clone().into()));
    update(store, std::slice::from_ref(&key), write).await.expect("it writes");
    key
}

pub(super) async fn grants_are_kept(store: Arc<dyn Store>) {
    let store = &*store;
    let json = |grant: &StoredGrant| serde_json::to_value(grant).expect("JSON");
    for kept in [grant("one", None, None), grant("two\0", Some(u32::MAX), Some(at(9)))] {
        let key = keep(store, kept.clone()).await;
        match read(store, &key).await {
            Some(Document::Grant(read)) => assert_eq!(json(&read), json(&kept), "a grant reads as it was written"),
            other => panic!("a grant reads as a grant: {other:?}"),
        }
    }
}

pub(super) async fn the_uses_of_a_grant_are_limited(store: Arc<dyn Store>) {
    let grant = keep(&*store, grant("three", Some(3), None)).await;
    let named = grant.clone();
    let begin = move |store: Arc<dyn Store>, task: usize| {
        let key = Key::call("run", Hash([u8::try_from(task).unwrap_or(u8::MAX); 32]));
        let intent = Intent { key: key.clone(), grant: Some(named.clone()), ..intent("owner", LONG) };
        let keys = [key, named.clone()];
        async move { ask(&*store, keys, move |transaction| ledger::begin(transaction, &intent)).await.expect("it answers") }
    };
    let begun = several(&store, 8, begin).await;
    let began = begun.iter().filter(|begun| matches!(begun, Begun::Now { .. })).count();
    let refused = begun.iter().filter(|begun| matches!(begun, Begun::Ungranted)).count();
    assert_eq!((began, refused), (3, 5), "a grant lets as many calls begin as it has uses");
    assert!(read(&*store, &grant).await.is_none(), "a grant that is used up is removed");
}
