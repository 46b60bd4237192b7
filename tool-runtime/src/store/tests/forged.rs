//! Verification, in a store and in an export, of removals that this library did not make, and of rotated keys.

use std::time::Duration;

use crate::call::{Decider, DigestKey, Outcome};
use crate::store::conformance::record;
use crate::store::document::StoredDigestKey;
use crate::store::kept;
use crate::store::retention_record::{Act, RetentionRecord};
use crate::store::tests::retention::{DAY, change, end, found, history, removed, retention, store_key, summary};
use crate::store::{
    Anchor, AuditRecord, Chain, Document, HoldScope, Key, MemoryStore, RecordFilter, SealedRecord, Store, Verification,
};
use crate::tool::Hash;

#[tokio::test]
async fn a_forged_purge_is_found() {
    let (other, head) = (DigestKey::new([3; 32]), Hash([9; 32]));
    // A summary with another key, a summary of the store's key with a wrong end, and a summary with an invented end.
    let (store, mut anchors) = history().await;
    retention(&store).hold(HoldScope::Run("x".into())).await.unwrap();
    let (key, last) = (store_key(&store).await, end(&store, "one").await);
    removed(&store, "one", Some(summary("one", (3, last.head()), &other))).await;
    assert_eq!(found(&store, &[]).await, ["removal_unchecked"]);
    assert_eq!(found(&store, &anchors).await, ["removal_unchecked"]);
    (&store as &dyn Store).anchor(|anchor| anchors.push(anchor.clone())).await.unwrap();
    assert_eq!(found(&store, &anchors).await, ["removal_unchecked"], "an anchor does not replace a signature");
    let verified = Verification::of_store(&store, &anchors, |_| {}).await.unwrap();
    assert_eq!(verified.purged, 0, "a forged purge does not count");

    let (store, _) = history().await;
    retention(&store).hold(HoldScope::Run("x".into())).await.unwrap();
    removed(&store, "one", Some(summary("one", (3, head), &store_key(&store).await))).await;
    assert_eq!(found(&store, &[]).await, ["records_missing"], "the summary describes other records");

    let (store, _) = history().await;
    change(&store, &[Key::digest_key()], move |transaction| {
        transaction.set(&Key::digest_key(), Document::DigestKey(StoredDigestKey(key.clone())))
    })
    .await;
    let mut forged = summary("one", (3, end(&store, "one").await.head()), &store_key(&store).await);
    forged.by = Decider::new("mallory");
    removed(&store, "one", Some(forged)).await;
    assert_eq!(found(&store, &[]).await, ["removal_forged"]);
}

/// Removals that were signed with a rotated key are findings, unless the caller accepts the id of the key.
#[tokio::test]
async fn a_rotated_key_is_accepted_by_its_id_only() {
    let (store, mut anchors) = history().await;
    retention(&store).run("one").purge(DAY).await.unwrap();
    retention(&store).erase("ada", None).await.unwrap();
    let old = store_key(&store).await;
    change(&store, &[Key::digest_key()], |transaction| transaction.remove(&Key::digest_key())).await;
    (&store as &dyn Store).anchor(|anchor| anchors.push(anchor.clone())).await.unwrap();
    let verified = Verification::of_store(&store, &anchors, |_| {}).await.unwrap();
    assert_eq!(verified.unchecked_keys.iter().collect::<Vec<_>>(), [&old.id()]);
    assert_eq!(found(&store, &anchors).await, ["removal_unchecked"; 2]);
    let accepting = Verification::new().accept_keys([old.id()]);
    let verified = accepting.verify_store(&store, &anchors, |_| {}).await.unwrap();
    assert_eq!((verified.findings, verified.purged, verified.erased), (vec![], 3, 3));
    let with_key = Verification::new().digest_key(old.clone());
    let verified = with_key.verify_store(&store, &anchors, |_| {}).await.unwrap();
    assert_eq!((verified.findings, verified.unchecked_keys.len()), (vec![], 0), "the key checks them");
    let other = Verification::new().accept_keys(["00000000"]);
    assert_eq!(other.verify_store(&store, &anchors, |_| {}).await.unwrap().findings.len(), 2);

    // The next purge creates a new key, and accepts the erased run if it knows the id of the old key.
    let report = retention(&store).purge(Duration::ZERO).await.unwrap();
    assert_eq!((report.runs, report.kept), (0, vec![("two".into(), "broken")]));
    let report = retention(&store).accept_keys([old.id()]).purge(Duration::ZERO).await.unwrap();
    assert_eq!((report.runs, report.kept_runs), (1, 0));
    assert_ne!(store_key(&store).await.id(), old.id());
}

/// If the application signs with a key outside the store, the store never has a key.
#[tokio::test]
async fn a_key_outside_the_store_signs() {
    let (store, _) = history().await;
    let key = DigestKey::new([5; 32]);
    retention(&store).digest_key(key.clone()).run("one").purge(DAY).await.unwrap();
    assert!(store.read(&[Key::digest_key()]).await.unwrap()[0].is_none());
    assert_eq!(found(&store, &[]).await, ["removal_unchecked"]);
    let verified = Verification::new().digest_key(key).verify_store(&store, &[], |_| {}).await.unwrap();
    assert_eq!((verified.findings, verified.purged), (vec![], 3));
    let (store, _) = history().await;
    retention(&store).dry_run(true).purge(DAY).await.unwrap();
    assert!(store.read(&[Key::digest_key()]).await.unwrap()[0].is_none(), "a dry run writes nothing");
}

fn lines(records: &[SealedRecord]) -> Vec<String> {
    records.iter().map(|sealed| serde_json::to_string(sealed).unwrap()).collect()
}

fn verify(verification: Verification, anchors: &[Anchor], lines: &[String]) -> Verification {
    verification.verify_lines(anchors, false, |check| lines.iter().try_for_each(|line| check(line))).unwrap()
}

fn codes(verified: &Verification) -> Vec<&'static str> {
    verified.findings.iter().map(crate::store::Finding::code).collect()
}

#[tokio::test]
async fn an_export_with_removals_can_be_verified() {
    let (store, anchors) = history().await;
    retention(&store).run("one").purge(DAY).await.unwrap();
    retention(&store).erase("ada", None).await.unwrap();
    let lines = lines(&store.records(&RecordFilter::default()).await.unwrap());
    let key = store_key(&store).await;
    assert_eq!(codes(&verify(Verification::new(), &anchors, &lines)), ["removal_unchecked"; 2], "without a key");
    for verification in [Verification::new().accept_keys([key.id()]), Verification::new().digest_key(key.clone())] {
        let verified = verify(verification, &anchors, &lines);
        assert_eq!((verified.findings, verified.purged, verified.erased), (vec![], 3, 3));
    }
    let accepting = || Verification::new().accept_keys([key.id()]);
    let changed = lines.iter().map(|line| line.replace("call_1", "call_9")).collect::<Vec<_>>();
    assert_eq!(codes(&verify(accepting(), &anchors, &changed)), ["record_changed"], "the remaining members are sealed");
}

/// The beginning of an export is replaced by the record of a purge under an invented key.
#[tokio::test]
async fn a_forged_purge_of_an_export_is_found() {
    let (store, anchors) = history().await;
    let mut records = store.records(&RecordFilter::run("one")).await.unwrap();
    let last = records.pop().unwrap();
    let forged = summary("one", (3, last.hash), &DigestKey::new([3; 32]));
    let mut chain = Chain::after(2, last.hash);
    let mut forged = vec![chain.seal(forged.into()).unwrap()];
    forged.extend(store.records(&RecordFilter::run("two")).await.unwrap());
    for anchors in [&anchors[..], &[]] {
        assert_eq!(codes(&verify(Verification::new(), anchors, &lines(&forged))), ["removal_unchecked"]);
    }
}

/// A person who can write records replaces record 1 of run one by these contents, and adds a record under this key that
/// lists the place.
async fn forged(record: AuditRecord, key: &DigestKey) -> (MemoryStore, Vec<Anchor>) {
    let (store, mut anchors) = history().await;
    let kept = store.records(&RecordFilter::run("one")).await.unwrap().swap_remove(1);
    let sealed = SealedRecord { record, ..kept };
    let act = Act::Erased(vec![1]);
    let by = Decider::new("grace");
    let listing = RetentionRecord::signed("one", &by, jiff::Timestamp::UNIX_EPOCH, act, key).unwrap();
    change(&store, &[Key::run("one")], move |transaction| {
        transaction.erase(sealed.clone())?;
        transaction.append(listing.clone())
    })
    .await;
    (&store as &dyn Store).anchor(|anchor| anchors.push(anchor.clone())).await.unwrap();
    (store, anchors)
}

/// No other contents fit the place of an erased record, under any key.
#[tokio::test]
async fn no_other_contents_can_be_put_in_the_place_of_an_erased_record() {
    let key = DigestKey::new([3; 32]);
    let (store, _) = history().await;
    let one = store.records(&RecordFilter::run("one")).await.unwrap().swap_remove(1).record;
    let kept::Erasure::To(right) = kept::erased(&one).unwrap() else { panic!("it can be erased") };
    let call = |record: &AuditRecord| record.as_call().unwrap().clone();
    let denied = |record: &AuditRecord| crate::ToolInvocationRecord { outcome: Outcome::PolicyDenied, ..call(record) };
    let erased = |record: crate::ToolInvocationRecord| AuditRecord::Erased(Box::new(record.into()));
    let seal = call(&right).seal;
    let forgeries = [
        ("any contents", erased(record("one", "x"))),
        ("another outcome", erased(denied(&right))),
        ("values next to the digest", erased(crate::ToolInvocationRecord { seal: seal.clone(), ..call(&one) })),
        ("a principal next to the digest", {
            erased(crate::ToolInvocationRecord { principal: Some("bob".into()), ..call(&right) })
        }),
        ("the values with their salt", erased(call(&one))),
        ("a whole record with a digest", crate::ToolInvocationRecord { seal, ..call(&one) }.into()),
        ("erased twice", AuditRecord::Erased(Box::new(right.clone()))),
        ("without a digest", erased(crate::ToolInvocationRecord { seal: None, ..call(&right) })),
    ];
    for (what, record) in forgeries {
        let (store, anchors) = forged(record, &key).await;
        for verification in [
            Verification::new(),
            Verification::new().accept_keys([key.id()]),
            Verification::new().digest_key(key.clone()),
        ] {
            let verified = verification.verify_store(&store, &anchors, |_| {}).await.unwrap();
            assert!(codes(&verified).contains(&"record_changed"), "{what}: {:?}", codes(&verified));
        }
        let records = store.records(&RecordFilter::run("one")).await.unwrap();
        assert!(Chain::verify(&records).is_err(), "{what}");
        let report = retention(&store).accept_keys([key.id()]).run("one").purge(DAY).await.unwrap();
        assert_eq!((report.runs, report.kept), (0, vec![("one".into(), "broken")]), "{what}");
    }
}

/// A writer can remove values, but verification finds the removal.
#[tokio::test]
async fn an_erasure_that_no_key_signed_is_found() {
    let (store, anchors) = history().await;
    let sealed = store.records(&RecordFilter::run("one")).await.unwrap().swap_remove(1);
    let kept::Erasure::To(record) = kept::erased(&sealed.record).unwrap() else { panic!("it can be erased") };
    let new = SealedRecord { record, ..sealed };
    change(&store, &[Key::run("one")], move |transaction| transaction.erase(new.clone())).await;
    assert_eq!(found(&store, &anchors).await, ["erasure_unlisted"]);
    // A run with a defect is neither purged nor erased, because a removal would hide the defect.
    let report = retention(&store).run("one").purge(DAY).await.unwrap();
    assert_eq!((report.runs, report.kept), (0, vec![("one".into(), "broken")]));

    let (store, _) = history().await;
    let sealed = store.records(&RecordFilter::run("one")).await.unwrap().swap_remove(1);
    let kept::Erasure::To(record) = kept::erased(&sealed.record).unwrap() else { panic!("it can be erased") };
    let key = DigestKey::new([3; 32]);
    let act = Act::Erased(vec![1]);
    let listing = RetentionRecord::signed("one", &Decider::new("x"), jiff::Timestamp::UNIX_EPOCH, act, &key).unwrap();
    let new = SealedRecord { record, ..sealed };
    change(&store, &[Key::run("one")], move |transaction| {
        transaction.erase(new.clone())?;
        transaction.append(listing.clone())
    })
    .await;
    assert_eq!(found(&store, &[]).await, ["removal_unchecked"]);
}

/// An erased record has nothing from which its values could be guessed.
#[tokio::test]
async fn an_erased_record_has_no_values_and_no_salt() {
    let (store, anchors) = history().await;
    let before = store.records(&RecordFilter::run("one")).await.unwrap();
    assert!(lines(&before).iter().all(|line| line.contains("\"seal\":{\"salt\":")));
    retention(&store).erase("ada", None).await.unwrap();
    for line in &lines(&store.records(&RecordFilter::run("one")).await.unwrap())[..3] {
        assert!(
            line.contains("\"seal\":{\"erased\":") && !line.contains("salt") && !line.contains("\"ada\""),
            "{line}"
        );
    }
    assert_eq!(found(&store, &anchors).await, [""; 0], "the anchors fit as before");
}
