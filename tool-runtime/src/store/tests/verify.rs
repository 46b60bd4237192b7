//! Tampering with records or anchors is found and named.

use std::sync::Arc;

use crate::call::Outcome;
use crate::store::anchors::only;
use crate::store::conformance::record;
use crate::store::{
    Anchor, AuditRecord, Chain, Document, Key, MemoryStore, RecordFilter, SealedRecord, Store, Transaction, Verifier,
    anchor,
};

/// Returns a store with two runs of four records each, interleaved, with an anchor after half of them and one after
/// all.
async fn history() -> (MemoryStore, Vec<Anchor>) {
    let (store, mut anchors) = (MemoryStore::new(), Vec::new());
    for number in 0..4 {
        for run in ["one", "two"] {
            store.append(record(run, &format!("call_{number}")).into()).await.unwrap();
        }
        if number % 2 == 1 {
            anchor(&store, |anchor| anchors.push(anchor.clone())).await.unwrap();
        }
    }
    (store, anchors)
}

fn found(records: &[SealedRecord], anchors: &[Anchor]) -> Option<String> {
    let mut verifier = Verifier::new(false);
    anchors.iter().for_each(|anchor| verifier.expect(anchor));
    records.iter().for_each(|sealed| verifier.follow(sealed));
    let findings = verifier.finish().findings;
    let finding = findings.first()?;
    let place = finding.record().map(|(run, sequence)| format!("{run} {sequence} ")).unwrap_or_default();
    Some(format!("{place}{}", finding.code()))
}

fn change(sealed: &mut SealedRecord) {
    let AuditRecord::Call(record) = &mut sealed.record else { panic!("a call") };
    record.outcome = Outcome::PolicyDenied;
}

/// Seals a run anew from an index of the list on.
fn reseal(records: &mut [SealedRecord], from: usize) {
    let run = Arc::clone(records[from].record.run_id());
    let mut chain = match records[..from].iter().rev().find(|sealed| *sealed.record.run_id() == run) {
        Some(before) => Chain::after(before.sequence, before.hash),
        None => Chain::new(),
    };
    for sealed in records[from..].iter_mut().filter(|sealed| *sealed.record.run_id() == run) {
        *sealed = chain.seal(sealed.record.clone()).unwrap();
    }
}

/// Checks the finding with the anchors, and the finding without them.
async fn check(attack: impl FnOnce(&mut Vec<SealedRecord>), anchored: Option<&str>, alone: Option<&str>) {
    let (store, anchors) = history().await;
    let mut records = store.records(&RecordFilter::default()).await.unwrap();
    attack(&mut records);
    assert_eq!(found(&records, &anchors).as_deref(), anchored);
    assert_eq!(found(&records, &[]).as_deref(), alone);
}

/// A manipulation of records.
type Attack = fn(&mut Vec<SealedRecord>);

#[tokio::test]
async fn every_attack_on_records_is_named() {
    // In the list, records 0, 2, 4, 6 are of run one, the others of run two.
    check(|_| {}, None, None).await;
    let same = |word| (Some(word), Some(word));
    let cases: [(Attack, _); 12] = [
        (|records| change(&mut records[2]), same("one 1 record_changed")),
        (|records| drop(records.remove(2)), same("one 2 records_missing")),
        (|records| drop(records.remove(0)), same("one 1 records_missing")),
        (|records| drop(records.remove(6)), (Some("one 3 records_cut"), None)),
        (|records| records.retain(|sealed| **sealed.record.run_id() != *"two"), (Some("two 0 records_cut"), None)),
        (Vec::clear, (Some("one 0 records_cut"), None)),
        (|records| records.swap(2, 4), same("one 2 records_missing")),
        (|records| records.insert(4, records[2].clone()), same("one 1 record_repeated")),
        (
            |records| {
                let moved = records[4].record.clone();
                records[5].record = moved;
            },
            same("one 2 record_repeated"),
        ),
        (|records| records[4].previous = records[3].hash, same("one 2 record_unlinked")),
        (
            |records| {
                change(&mut records[2]);
                reseal(records, 2);
            },
            (Some("one 1 record_not_anchored"), None),
        ),
        (
            |records| {
                records.remove(4);
                reseal(records, 5);
            },
            (Some("one 3 records_cut"), None),
        ),
    ];
    for (attack, (anchored, alone)) in cases {
        check(attack, anchored, alone).await;
    }
}

#[tokio::test]
async fn a_part_begins_and_ends_anywhere() {
    let (store, anchors) = history().await;
    let records = store.records(&RecordFilter::default()).await.unwrap();
    let part = |records: &[SealedRecord]| {
        let mut verifier = Verifier::new(true);
        anchors.iter().for_each(|anchor| verifier.expect(anchor));
        records.iter().for_each(|sealed| verifier.follow(sealed));
        let checked = verifier.finish();
        if checked.findings.is_empty() { Ok(checked.records) } else { Err(checked.findings) }
    };
    assert_eq!(part(&records[3..]), Ok(5));
    assert_eq!(part(&[]), Ok(0));
    assert!(part(&records[3..7]).is_err(), "the end is anchored");
}

async fn tamper(store: &MemoryStore, key: Key, with: impl Fn(Document) -> Option<Document> + Send + 'static) {
    let named = key.clone();
    let change = move |transaction: &mut Transaction| {
        let document = transaction.get(&named).cloned().expect("it is there");
        match with(document) {
            Some(document) => transaction.set(&named, document),
            None => transaction.remove(&named),
        }
    };
    store.update(vec![key], Box::new(change)).await.unwrap();
}

fn edited(document: Document) -> Option<Document> {
    match document {
        Document::Anchor(anchor) => {
            let mut anchor = anchor.clone();
            anchor.heads.clear();
            Some(Document::Anchor(anchor))
        }
        _ => None,
    }
}

async fn verified(store: &MemoryStore, kept: &[Anchor]) -> Result<u64, String> {
    let checked = Verifier::verify(store, kept, |_| {}).await.unwrap();
    checked.findings.first().map_or(Ok(checked.anchors), |finding| Err(finding.to_string()))
}

#[tokio::test]
async fn every_attack_on_anchors_is_named() {
    let attacked = async |keys: &[Key], with: fn(Document) -> Option<Document>, exported: bool| {
        let (store, mut anchors) = history().await;
        assert_eq!(verified(&store, &anchors).await, Ok(2));
        for key in keys {
            tamper(&store, key.clone(), with).await;
        }
        if !exported {
            anchors.clear();
        }
        verified(&store, &anchors).await.expect_err("it is found")
    };
    let (gone, last): (fn(_) -> _, _) = (|_| None, Key::last_anchor());
    let (first, second) = (Key::anchor(0), Key::anchor(1));
    assert_eq!(
        attacked(std::slice::from_ref(&first), edited, false).await,
        "anchor 0: it was changed after it was made"
    );
    assert!(
        attacked(std::slice::from_ref(&first), gone, false)
            .await
            .starts_with("anchor 0: it was removed, and a later one")
    );
    assert!(
        attacked(std::slice::from_ref(&second), gone, false)
            .await
            .starts_with("anchor 1: it was removed, but the stored end")
    );
    assert!(attacked(std::slice::from_ref(&last), gone, false).await.starts_with("anchor 1: the end of the anchors"));
    let all = [first, second, last];
    assert!(attacked(&all, gone, true).await.starts_with("anchor 0: it was exported and is not in the store"));
}

#[tokio::test]
async fn a_history_that_was_made_anew_is_found_by_what_was_exported() {
    let (_, exported) = history().await;
    let forged = MemoryStore::new();
    for run in ["one", "two"] {
        forged.append(record(run, "another").into()).await.unwrap();
    }
    anchor(&forged, |_| {}).await.unwrap();
    assert_eq!(verified(&forged, &[]).await, Ok(1));
    let found = verified(&forged, &exported).await.unwrap_err();
    assert!(found.starts_with("run \"one\", record 1: it is missing, and what anchor 0 holds"), "{found}");
    // All records that the exported anchors cover are there.
    let (anew, exported) = history().await;
    for key in [Key::anchor(0), Key::anchor(1), Key::last_anchor()] {
        tamper(&anew, key, |_| None).await;
    }
    anchor(&anew, |_| {}).await.unwrap();
    let found = verified(&anew, &exported).await.unwrap_err();
    assert_eq!(found, "anchor 0: it is not the one that was exported: the anchors were made anew");
}

/// The lost tail of a log takes the last records and their anchors with it.
#[tokio::test]
async fn a_lost_tail_is_named_by_its_first_record() {
    let (whole, exported) = history().await;
    let cases = [(7, 1, "run \"two\", record 3"), (5, 1, "run \"one\", record 3"), (1, 0, "run \"one\", record 1")];
    for (records, anchors, first) in cases {
        let kept = MemoryStore::new();
        for sealed in &whole.records(&RecordFilter::default()).await.unwrap()[..records] {
            kept.append(sealed.record.clone()).await.unwrap();
        }
        for last in exported[..anchors].iter().cloned() {
            let keys = vec![Key::anchor(last.number), Key::last_anchor()];
            let change = move |transaction: &mut Transaction| {
                let anchor = Box::new(last.clone());
                transaction.set(&Key::anchor(last.number), Document::Anchor(anchor.clone()))?;
                transaction.set(&Key::last_anchor(), Document::LastAnchor(anchor))
            };
            kept.update(keys, Box::new(change)).await.unwrap();
        }
        assert!(verified(&kept, &[]).await.is_ok(), "nothing in the store tells");
        let found = verified(&kept, &exported).await.unwrap_err();
        assert!(found.starts_with(first), "{records}: {found}");
        // The store continues, and new anchors are made.
        kept.append(record("three", "call_0").into()).await.unwrap();
        anchor(&kept, |_| {}).await.unwrap();
        let found = verified(&kept, &exported).await.unwrap_err();
        assert!(found.starts_with(first), "{records}, continued: {found}");
    }
}

#[tokio::test]
async fn an_anchor_never_replaces_another() {
    let (store, anchors) = history().await;
    let first = anchors[0].clone();
    tamper(&store, Key::last_anchor(), move |_| Some(Document::LastAnchor(Box::new(first.clone())))).await;
    store.append(record("one", "more").into()).await.unwrap();
    assert_eq!(anchor(&store, |_| {}).await.unwrap_err().code(), "store_corrupt");
    assert_eq!(only(&store, Key::anchor(1)).await.unwrap(), Some(anchors[1].clone()));
    assert!(verified(&store, &[]).await.unwrap_err().starts_with("anchor 1: the end of the anchors"));
}
