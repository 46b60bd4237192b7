//! Purges and erasures, and their verification.

use std::sync::Arc;
use std::time::Duration;

use crate::call::{Decider, DigestKey};
use crate::store::conformance::{record, waiting};
use crate::store::retention_record::{Act, RetentionRecord};
use crate::store::{
    Anchor, Chain, Clock as _, Document, DocumentKind, GrantScope, HoldScope, Key, MemoryStore, Post, Query,
    RecordFilter, Retention, Store, StoreError, StoredGrant, StoredRun, Transaction, Verification, Waiting, grants,
    notices,
};
use crate::testing::ManualClock;
use crate::tool::Hash;

pub(super) const DAY: Duration = Duration::from_secs(86_400);

pub(super) fn retention(store: &MemoryStore) -> Retention<'_> {
    Retention::new(store, Decider::new("grace").because("Asked for."))
}

/// Two runs of three records each, anchored after two of them and at the end.
pub(super) async fn history() -> (MemoryStore, Vec<Anchor>) {
    let (store, mut anchors) = (MemoryStore::new(), Vec::new());
    for number in 0..3 {
        for run in ["one", "two"] {
            store.append(record(run, &format!("call_{number}")).into()).await.unwrap();
        }
        if number > 0 {
            (&store as &dyn Store).anchor(|anchor| anchors.push(anchor.clone())).await.unwrap();
        }
    }
    (store, anchors)
}

pub(super) async fn found(store: &MemoryStore, kept: &[Anchor]) -> Vec<&'static str> {
    let verified = Verification::of_store(store, kept, |_| {}).await.unwrap();
    verified.findings.iter().map(crate::store::Finding::code).collect()
}

pub(super) async fn change(
    store: &MemoryStore,
    keys: &[Key],
    change: impl FnMut(&mut Transaction) -> Result<(), StoreError> + Send + 'static,
) {
    store.update(keys.to_vec(), Box::new(change)).await.unwrap();
}

pub(super) async fn end(store: &MemoryStore, run: &str) -> Chain {
    let last = store.records(&RecordFilter::run(run)).await.unwrap().pop().unwrap();
    Chain::after(last.sequence, last.hash)
}

/// Removes a run like a person who can write to the store, with this record in its place.
pub(super) async fn removed(store: &MemoryStore, run: &'static str, record: Option<RetentionRecord>) {
    let end = end(store, run).await;
    change(store, &[Key::run(run)], move |transaction| {
        transaction.close(run.into(), Some(end))?;
        record.clone().map_or(Ok(()), |record| transaction.append(record))
    })
    .await;
}

pub(super) fn summary(run: &str, (end, head): (u64, Hash), key: &DigestKey) -> RetentionRecord {
    let act = Act::Purged { first: 0, end, head, records: end };
    RetentionRecord::signed(run, &Decider::new("grace"), jiff::Timestamp::UNIX_EPOCH, act, key).unwrap()
}

pub(super) async fn store_key(store: &MemoryStore) -> DigestKey {
    let read = store.read(&[Key::digest_key()]).await.unwrap().pop().flatten();
    crate::store::digest_key::read(read).expect("a key")
}

#[tokio::test]
async fn a_purge_is_accepted_and_a_removal_is_found() {
    let (store, anchors) = history().await;
    retention(&store).run("one").purge(DAY).await.unwrap();
    assert_eq!(found(&store, &anchors).await, [""; 0]);
    // The record of the purge is anchored like any other.
    let mut later = anchors.clone();
    (&store as &dyn Store).anchor(|anchor| later.push(anchor.clone())).await.unwrap();
    assert_eq!(found(&store, &later).await, [""; 0]);
    removed(&store, "one", None).await;
    assert_eq!(found(&store, &later).await, ["records_cut"], "the record of the purge is gone");

    let (store, anchors) = history().await;
    removed(&store, "one", None).await;
    assert_eq!(found(&store, &anchors).await, ["records_cut"]);
}

#[tokio::test]
async fn a_hold_names_its_data() {
    let (store, _) = history().await;
    let principal = |principal: &str, tenant: Option<&str>| HoldScope::Principal {
        principal: principal.into(),
        tenant: tenant.map(Into::into),
    };
    for scope in
        [HoldScope::Run("".into()), HoldScope::Tenant("".into()), principal("", None), principal("a", Some(""))]
    {
        let refused = retention(&store).hold(scope).await;
        assert!(matches!(refused, Err(StoreError::Misconfigured { .. })), "{refused:?}");
    }
    assert!(retention(&store).holds().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_hold_stops_purge_and_erasure() {
    let principal = || HoldScope::Principal { principal: "ada".into(), tenant: None };
    for scope in [HoldScope::Run("one".into()), principal()] {
        let (store, _) = history().await;
        let (first, second) = (
            retention(&store).hold(scope.clone()).await.unwrap(),
            retention(&store).hold(scope.clone()).await.unwrap(),
        );
        assert!(retention(&store).lift(&first.id).await.unwrap());
        assert!(!retention(&store).lift(&first.id).await.unwrap(), "it is lifted once");
        let report = retention(&store).run("one").purge(DAY).await.unwrap();
        assert_eq!((report.runs, report.kept), (0, vec![("one".into(), "legal_hold")]), "the second hold stays");
        match retention(&store).erase("ada", None).await {
            Err(StoreError::OnHold) => assert_eq!(scope, principal()),
            report => assert_eq!(report.unwrap().kept, [("one".into(), "legal_hold")]),
        }
        assert_eq!(found(&store, &[]).await, [""; 0]);
        assert!(retention(&store).lift(&second.id).await.unwrap());
        assert_eq!(retention(&store).run("one").purge(DAY).await.unwrap().runs, 1);
        let records = store.records(&RecordFilter::run("tool-runtime:retention")).await.unwrap();
        let codes: Vec<_> = records.iter().map(|sealed| sealed.record.code()).collect();
        assert_eq!(codes, ["hold_put", "hold_put", "hold_lifted", "hold_lifted"]);
        let report = retention(&store).run("tool-runtime:retention").purge(Duration::ZERO).await.unwrap();
        assert_eq!(report.runs, 0, "the history of holds stays");
    }
}

#[tokio::test]
async fn a_hold_on_a_tenant_covers_its_runs() {
    let store = MemoryStore::new();
    let of_acme = crate::ToolInvocationRecord { tenant: Some("acme".into()), ..record("one", "a") };
    store.append(of_acme.into()).await.unwrap();
    store.append(record("two", "a").into()).await.unwrap();
    retention(&store).hold(HoldScope::Tenant("acme".into())).await.unwrap();
    let report = retention(&store).purge(DAY).await.unwrap();
    assert_eq!((report.runs, report.kept), (1, vec![("one".into(), "legal_hold")]));
    assert!(matches!(retention(&store).erase("ada", Some("acme")).await, Err(StoreError::OnHold)));
    let unnamed = Retention::new(&store, Decider::new(" "));
    assert_eq!(unnamed.purge(DAY).await.unwrap_err().code(), "store_misconfigured");
}

#[tokio::test]
async fn a_hold_on_a_principal_covers_every_tenant() {
    let store = MemoryStore::new();
    let of_acme = crate::ToolInvocationRecord { tenant: Some("acme".into()), ..record("one", "a") };
    store.append(of_acme.into()).await.unwrap();
    retention(&store).hold(HoldScope::Principal { principal: "ada".into(), tenant: None }).await.unwrap();
    let report = retention(&store).purge(DAY).await.unwrap();
    assert_eq!((report.runs, report.kept), (0, vec![("one".into(), "legal_hold")]));
    for tenant in [Some("acme"), Some("other"), None] {
        assert!(matches!(retention(&store).erase("ada", tenant).await, Err(StoreError::OnHold)), "{tenant:?}");
    }
}

/// A dead server never ends its runs, so its lease does not count.
#[tokio::test]
async fn a_served_run_that_was_left_can_be_removed() {
    for erases in [true, false] {
        let clock = Arc::new(ManualClock::at("2026-01-01T00:00:00Z".parse().unwrap()));
        let store = MemoryStore::with_clock(Arc::clone(&clock));
        let mut run = StoredRun { principal: Some("ada".into()), ..StoredRun::new("one", "{}") };
        run.state = "served".into();
        run.changed = Some("2026-01-01T00:00:00Z".parse().unwrap());
        run.holder = Some(crate::store::Holder { owner: "served".into(), until: jiff::Timestamp::MAX });
        let waits = waiting("one", "w", 9);
        let (run_key, call) = (Key::run("one"), Key::of_waiting(&waits.call));
        let keys = [run_key.clone(), call.clone()];
        change(&store, &keys, move |transaction| {
            transaction.set(&Key::run("one"), Document::Run(Box::new(run.clone())))?;
            transaction.set(&Key::of_waiting(&waits.call), Document::Waiting(Box::new(waits.clone())))
        })
        .await;
        clock.advance(2 * DAY);
        let remove = async || {
            let retention = retention(&store);
            if erases { retention.erase("ada", None).await.unwrap() } else { retention.purge(DAY).await.unwrap() }
        };
        let report = remove().await;
        assert_eq!((report.runs, report.kept), (0, vec![("one".into(), "in_progress")]), "a call waits");
        change(&store, std::slice::from_ref(&call.clone()), move |transaction| transaction.remove(&call)).await;
        let report = remove().await;
        assert_eq!((report.runs, report.kept_runs), (1, 0), "erases: {erases}");
        let left = store.read(&[run_key]).await.unwrap().pop().flatten().unwrap();
        assert!(matches!(left.document, Document::Purged { .. }));
    }
}

/// The store's time decides, and a run with one young record stays.
#[tokio::test]
async fn a_run_with_a_young_record_stays() {
    let clock = Arc::new(ManualClock::at("2023-11-15T22:13:22Z".parse().unwrap()));
    let store = MemoryStore::with_clock(Arc::clone(&clock));
    store.append(record("one", "a").into()).await.unwrap();
    let later =
        crate::ToolInvocationRecord { ended_at: Some("2023-11-16T00:00:00Z".parse().unwrap()), ..record("one", "b") };
    store.append(later.into()).await.unwrap();
    let purged = async || retention(&store).purge(DAY).await.unwrap().runs;
    assert_eq!(purged().await, 0);
    clock.advance(2 * DAY);
    assert_eq!(purged().await, 1);
    clock.advance(10 * DAY);
    assert_eq!(purged().await, 0, "the record of a purge stays");
}

/// A conversation of a version without retention has no time of its last write. The first purge that finds it sets the
/// time.
#[tokio::test]
async fn a_conversation_is_purged_when_it_is_old() {
    let clock = Arc::new(ManualClock::at("2026-01-01T00:00:00Z".parse().unwrap()));
    let store = MemoryStore::with_clock(Arc::clone(&clock));
    let run = |id: &str| StoredRun { principal: Some("ada".into()), ..StoredRun::new(id, "{}") };
    for id in ["old", "due"] {
        let due = (id == "due").then_some(jiff::Timestamp::UNIX_EPOCH);
        let run = StoredRun { due, ..run(id) };
        change(&store, &[Key::run(id)], move |transaction| {
            transaction.set(&Key::run(Arc::clone(&run.run_id)), Document::Run(Box::new(run.clone())))
        })
        .await;
    }
    let report = retention(&store).purge(DAY).await.unwrap();
    assert_eq!((report.runs, report.kept), (0, vec![("due".into(), "in_progress")]));
    clock.advance(2 * DAY);
    assert_eq!(retention(&store).purge(DAY).await.unwrap().runs, 1);
    assert!(matches!(
        store.read(&[Key::run("old")]).await.unwrap()[0].as_ref().unwrap().document,
        Document::Purged { .. }
    ));
    assert_eq!(found(&store, &[]).await, [""; 0]);
}

pub(super) fn grant(id: &str, scope: GrantScope) -> StoredGrant {
    StoredGrant {
        id: id.into(),
        tool: crate::tool::ToolName::parse("core__add").unwrap(),
        definition_hash: Hash([7; 32]),
        scope,
        tenant: None,
        principal: Some("ada".into()),
        caller: crate::store::GrantCaller::Direct,
        origin: (&waiting("one", "w", 9).call).into(),
        labels: Vec::new(),
        verdict: crate::call::Verdict::Allow,
        covers: crate::store::Covered::Exactly(Hash([1; 32])),
        uses: None,
        expires_at: None,
        decider: Decider::new("grace"),
        created_at: jiff::Timestamp::UNIX_EPOCH,
        on_hold: None,
    }
}

/// Writes a grant, an effect key with its result and a notice of run one, which all expire at the epoch.
async fn expired(store: &MemoryStore) -> Vec<Key> {
    let given = StoredGrant { expires_at: Some(jiff::Timestamp::UNIX_EPOCH), ..grant("old", GrantScope::Principal) };
    let effect = Key::effect("digest".into());
    let held = crate::store::EffectHolder {
        record: Some(Box::new(record("one", "a"))),
        until: Some(jiff::Timestamp::UNIX_EPOCH),
        ..crate::store::EffectHolder::new("one".into(), "a".into(), Hash([1; 32]))
    };
    let suspended = Waiting { notices: Some(super::notices::waiting_terms("")), ..waiting("one", "w", 10) };
    let keys = [given.key(), effect.clone(), Key::run("one")];
    change(store, &keys, move |transaction| {
        let stored = crate::store::StoredEffect { held: Some(Box::new(held.clone())), ..Default::default() };
        transaction.set(&effect, Document::Effect(Box::new(stored)))?;
        transaction.set(&given.key(), Document::Grant(Box::new(given.clone())))?;
        notices::waits(transaction, &suspended, None)
    })
    .await;
    let [grant, effect, _] = keys;
    let notice = store.list(&Query::new(DocumentKind::Notice)).await.unwrap().remove(0).key;
    vec![grant, effect, notice]
}

#[tokio::test]
async fn a_sweep_leaves_what_a_legal_hold_covers() {
    const WEEK: Duration = Duration::from_secs(7 * 86_400);
    let of_ada =
        |tenant: Option<&str>| HoldScope::Principal { principal: "ada".into(), tenant: tenant.map(Into::into) };
    for scope in [HoldScope::Run("one".into()), of_ada(None)] {
        let clock = Arc::new(ManualClock::at("2026-01-01T00:00:00Z".parse().unwrap()));
        let store = MemoryStore::with_clock(Arc::clone(&clock));
        let keys = expired(&store).await;
        clock.advance(2 * WEEK);
        let hold = retention(&store).hold(scope.clone()).await.unwrap();
        let sweep = async || (&store as &dyn Store).sweep().await.unwrap();
        for _ in 0..2 {
            assert_eq!(sweep().await, 0, "{scope:?}");
            for kind in [DocumentKind::Grant, DocumentKind::Effect] {
                let due = Query { due: Some(clock.now().saturating_sub(DAY).unwrap()), ..Query::new(kind) };
                assert!(store.list(&due).await.unwrap().is_empty(), "{scope:?}: it is checked again in a week");
            }
            clock.advance(WEEK);
        }
        assert!(store.read(&keys).await.unwrap().iter().all(Option::is_some), "{scope:?}");
        assert!(retention(&store).lift(&hold.id).await.unwrap());
        assert_eq!(sweep().await, 3, "{scope:?}");
    }
    // Another tenant's hold does not cover them.
    let store = MemoryStore::with_clock(Arc::new(ManualClock::at("2026-01-01T00:00:00Z".parse().unwrap())));
    expired(&store).await;
    retention(&store).hold(of_ada(Some("acme"))).await.unwrap();
    assert_eq!((&store as &dyn Store).sweep().await.unwrap(), 2, "the notice is not a week old");
}

/// A grant outlives the run in which it was made, and can still be revoked.
#[tokio::test]
async fn a_grant_of_a_purged_run_can_be_revoked() {
    let store = MemoryStore::new();
    store.append(record("one", "a").into()).await.unwrap();
    let given = grant("all", GrantScope::Tenant);
    let (key, stored) = (given.key(), given.clone());
    change(&store, std::slice::from_ref(&key), move |transaction| {
        transaction.set(&stored.key(), Document::Grant(Box::new(stored.clone())))
    })
    .await;
    assert_eq!(retention(&store).purge(DAY).await.unwrap().runs, 1);
    let (keys, mut revoke) = grants::revocation(&given, &Decider::new("grace"));
    change(&store, &keys, move |transaction| revoke(transaction).map(|revoked| assert!(revoked))).await;
    assert!(store.read(&[key]).await.unwrap()[0].is_none());
    assert_eq!(store.records(&RecordFilter::run("one")).await.unwrap().len(), 1, "the run accepts no record");
    let records = store.records(&RecordFilter::run("tool-runtime:retention")).await.unwrap();
    let revoked = records[0].record.as_decision().unwrap();
    assert_eq!((revoked.decision.code(), revoked.decider.as_ref().unwrap().principal()), ("revoked", "grace"));
    assert!(revoked.principal.is_none() && revoked.argument_digest.is_none());
    assert_eq!(found(&store, &[]).await, [""; 0]);
}

/// The run that records the revocation is never purged.
#[tokio::test]
async fn the_principal_of_a_grant_that_revokes_it_is_not_named_for_ever() {
    let store = MemoryStore::new();
    store.append(record("one", "a").into()).await.unwrap();
    let given = grant("own", GrantScope::Principal);
    let (key, stored) = (given.key(), given.clone());
    change(&store, &[key], move |transaction| {
        transaction.set(&stored.key(), Document::Grant(Box::new(stored.clone())))
    })
    .await;
    assert_eq!(retention(&store).purge(DAY).await.unwrap().runs, 1);
    let (keys, mut revoke) = grants::revocation(&given, &Decider::new("ada").because("It is mine."));
    change(&store, &keys, move |transaction| revoke(transaction).map(drop)).await;
    let records = store.records(&RecordFilter::run("tool-runtime:retention")).await.unwrap();
    let text = serde_json::to_string(&records).unwrap();
    assert!(text.contains("revoked") && !text.contains("\"ada\"") && !text.contains("It is mine"), "{text}");
}

#[tokio::test]
async fn an_erasure_reaches_every_document_of_the_principal() {
    let store = MemoryStore::new();
    store.append(record("one", "a").into()).await.unwrap();
    let foreign = crate::ToolInvocationRecord { principal: Some("bob".into()), ..record("two", "a") };
    store.append(foreign.into()).await.unwrap();
    let run = StoredRun { principal: Some("ada".into()), ..StoredRun::new("one", "{\"secret\":1}") };
    let grants = [grant("own", GrantScope::Principal), grant("all", GrantScope::Tenant)];
    let (call, effect) = (Key::call("one", Hash([1; 32])), Key::effect("digest".into()));
    let mark = Key::decided(&waiting("one", "w", 9).call);
    let keys = [Key::run("one"), call.clone(), effect.clone(), mark.clone(), grants[0].key(), grants[1].key()];
    change(&store, &keys, move |transaction| {
        transaction.set(&Key::run("one"), Document::Run(Box::new(run.clone())))?;
        let entry = crate::store::LedgerEntry::closed("o".into(), 1, transaction.now(), Box::new(record("one", "a")));
        transaction.set(&call, Document::Call(Box::new(entry)))?;
        transaction.set(&mark, Document::Decided { until: jiff::Timestamp::MAX })?;
        let held = crate::store::EffectHolder {
            record: Some(Box::new(record("one", "a"))),
            ..crate::store::EffectHolder::new("one".into(), "a".into(), Hash([1; 32]))
        };
        let stored = crate::store::StoredEffect { held: Some(Box::new(held)), ..Default::default() };
        transaction.set(&effect, Document::Effect(Box::new(stored)))?;
        grants.iter().try_for_each(|grant| transaction.set(&grant.key(), Document::Grant(Box::new(grant.clone()))))
    })
    .await;
    let suspended = Waiting { notices: Some(super::notices::waiting_terms("secret")), ..waiting("one", "w", 10) };
    let keys = [Key::run("one")];
    change(&store, &keys, move |transaction| notices::waits(transaction, &suspended, None)).await;
    // A message waits, so the run is in progress and nothing is erased.
    let post = Key::post("one", "p");
    let with_post = |posts| {
        let post = post.clone();
        move |transaction: &mut Transaction| {
            let Some(Document::Run(run)) = transaction.get(&Key::run("one")) else { panic!("a run") };
            let run = StoredRun { posts, ..(**run).clone() };
            transaction.set(&Key::run("one"), Document::Run(Box::new(run)))?;
            let body = "{\"secret\":2}".into();
            let post_document = Post { body, at: transaction.now(), answers: Vec::new(), holder: None };
            transaction.set(&post, Document::Post(Box::new(post_document)))
        }
    };
    change(&store, &[Key::run("one"), post.clone()], with_post(1)).await;
    let report = retention(&store).erase("ada", None).await.unwrap();
    assert_eq!((report.records, report.kept), (0, vec![("one".into(), "in_progress")]));
    change(&store, &[Key::run("one"), post.clone()], with_post(0)).await;
    let report = retention(&store).erase("ada", None).await.unwrap();
    assert_eq!((report.runs, report.records, report.documents, report.kept_runs), (1, 1, 3, 0));
    let left = store.list_all().await;
    assert!(left.iter().all(|text| !text.starts_with("{\"decided\"") && !text.starts_with("{\"call\"")), "{left:?}");
    for secret in ["secret", "\"ada\"", "\"1.5", "[sensitive]", "18446744073709551615", &Hash([1; 32]).to_string()] {
        let at: Vec<_> = left.iter().filter(|text| text.contains(secret)).collect();
        assert!(at.is_empty(), "{secret}: {at:?}");
    }
    let others = store.records(&RecordFilter::run("two")).await.unwrap();
    assert!(others.len() == 1 && !others[0].record.is_erased(), "bob's records stay");
    assert_eq!(found(&store, &[]).await, [""; 0]);
    let again = retention(&store).erase("ada", None).await.unwrap();
    assert_eq!((again.records, again.documents), (0, 0), "a second erasure finds nothing");
}

impl MemoryStore {
    /// The JSON of all documents, and of the records of run one.
    async fn list_all(&self) -> Vec<String> {
        use crate::store::DocumentKind::{Call, Decided, Effect, Grant, Notice, Post, Run, Waiting};
        let mut all = Vec::new();
        for kind in [Call, Decided, Effect, Grant, Notice, Post, Run, Waiting] {
            let listed = self.list(&Query::new(kind)).await.unwrap();
            all.extend(listed.iter().map(|document| document.to_json().unwrap()));
        }
        let records = self.records(&RecordFilter::run("one")).await.unwrap();
        all.extend(records.iter().map(|sealed| serde_json::to_string(&sealed.record).unwrap()));
        all
    }
}

/// A bounded store that drops records to make room keeps the chains of purged runs.
#[tokio::test]
async fn a_purge_in_a_full_store_continues_the_chain() {
    for more in 0..12 {
        let store = MemoryStore::with_limits(6, 64);
        for call in ["a", "b", "c"] {
            store.append(record("one", call).into()).await.unwrap();
        }
        for number in 0..3 {
            store.append(record(&format!("other-{number}"), "x").into()).await.unwrap();
        }
        assert_eq!(retention(&store).run("one").purge(DAY).await.unwrap().records, 3);
        for number in 0..more {
            store.append(record(&format!("later-{number}"), "x").into()).await.unwrap();
        }
        // Only records of removals are appended to the purged run.
        let key = store_key(&store).await;
        change(&store, &[Key::run("one")], move |transaction| {
            let act = Act::Erased(Vec::new());
            let by = Decider::new("grace");
            transaction.append(RetentionRecord::signed("one", &by, transaction.now(), act, &key)?)
        })
        .await;
        let records = store.records(&RecordFilter::run("one")).await.unwrap();
        let last = records.last().unwrap();
        assert_eq!(Chain::verify(&records), Ok(()), "{more}");
        if records.len() == 2 {
            assert_eq!((records[0].record.code(), last.sequence), ("purged", 4), "{more}");
        }
    }
}
