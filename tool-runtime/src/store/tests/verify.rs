//! Tampering with records or anchors is found and reported.

use std::sync::Arc;

use async_trait::async_trait;

use crate::call::Outcome;
use crate::store::anchors::only;
use crate::store::conformance::record;
use crate::store::verify::Verifier;
use crate::store::{
    Anchor, AuditRecord, Chain, ChangeFn, Document, Finding, Key, MemoryStore, Query, RecordFilter, SealedRecord,
    Store, StoreError, StoredDocument, Transaction, Verification, WriteHandle,
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
            (&store as &dyn Store).anchor(|anchor| anchors.push(anchor.clone())).await.unwrap();
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

/// Seals the records of a run again, from an index of the list.
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

/// Checks the findings of an attack, with and without the anchors.
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
    // Records 0, 2, 4 and 6 of the list belong to run one, and the other records to run two.
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
    let checked = Verification::of_store(store, kept, |_| {}).await.unwrap();
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
            .starts_with("anchor 0: it was removed, but a later anchor")
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
    (&forged as &dyn Store).anchor(|_| {}).await.unwrap();
    assert_eq!(verified(&forged, &[]).await, Ok(1));
    let found = verified(&forged, &exported).await.unwrap_err();
    assert!(found.starts_with("run \"one\", record 1: missing from here up to anchor 0"), "{found}");
    // The store has all records that the exported anchors cover.
    let (anew, exported) = history().await;
    for key in [Key::anchor(0), Key::anchor(1), Key::last_anchor()] {
        tamper(&anew, key, |_| None).await;
    }
    (&anew as &dyn Store).anchor(|_| {}).await.unwrap();
    let found = verified(&anew, &exported).await.unwrap_err();
    assert_eq!(found, "anchor 0: it differs from the exported anchor: the anchors were recreated");
}

/// A store that lost its last writes lacks the last records and their anchors.
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
        assert!(verified(&kept, &[]).await.is_ok(), "the store alone does not show the loss");
        let found = verified(&kept, &exported).await.unwrap_err();
        assert!(found.starts_with(first), "{records}: {found}");
        // The store continues, and new anchors are made.
        kept.append(record("three", "call_0").into()).await.unwrap();
        (&kept as &dyn Store).anchor(|_| {}).await.unwrap();
        let found = verified(&kept, &exported).await.unwrap_err();
        assert!(found.starts_with(first), "{records}, continued: {found}");
    }
}

/// An export has two anchors of one number if it was continued after the store went back to an earlier state.
#[tokio::test]
async fn exported_anchors_that_contradict_each_other_are_named() {
    let (store, exported) = history().await;
    let twice: Vec<_> = exported.iter().chain(&exported).cloned().collect();
    assert_eq!(verified(&store, &twice).await, Ok(2), "the same anchor twice");
    // The store goes back to the first anchor and continues from there.
    let again = MemoryStore::new();
    for (at, sealed) in store.records(&RecordFilter::default()).await.unwrap().into_iter().take(4).enumerate() {
        again.append(sealed.record).await.unwrap();
        if at == 3 {
            keep(&again, &exported[0]).await;
        }
    }
    again.append(record("three", "call_0").into()).await.unwrap();
    let mut continued = exported.clone();
    (&again as &dyn Store).anchor(|anchor| continued.push(anchor.clone())).await.unwrap();
    assert_eq!((continued.len(), continued[1].number, continued[2].number), (3, 1, 1));
    assert_eq!(verified(&again, &continued[2..]).await, Ok(2));
    let found = verified(&again, &continued).await.unwrap_err();
    assert!(found.starts_with("run \"one\", record 2: missing from here up to anchor 1"), "{found}");
    // The order of the export does not matter, and the store's anchor of that number may be unreadable.
    continued.reverse();
    assert_eq!(verified(&again, &continued).await.unwrap_err(), found);
    let (_, found) = all(&Torn(again, vec![Key::anchor(1)]), &continued).await;
    assert!(found.iter().any(|found| found.contains("record 2: missing from here")), "{found:?}");
}

/// Stores an anchor as the last one.
async fn keep(store: &MemoryStore, anchor: &Anchor) {
    let (anchor, keys) = (Box::new(anchor.clone()), vec![Key::anchor(anchor.number), Key::last_anchor()]);
    let change = move |transaction: &mut Transaction| {
        transaction.set(&Key::anchor(anchor.number), Document::Anchor(anchor.clone()))?;
        transaction.set(&Key::last_anchor(), Document::LastAnchor(anchor.clone()))
    };
    store.update(keys, Box::new(change)).await.unwrap();
}

/// Forged anchors are reported. They neither stop the verification nor hide other anchors.
#[tokio::test]
async fn forged_anchors_end_nothing_and_are_named() {
    let forge = |last: Option<&Anchor>, position, number| {
        let mut forged = Anchor::after(last, jiff::Timestamp::MAX, position, Vec::new()).unwrap();
        forged.number = number;
        // Anyone who can write to the store can seal an anchor again.
        let sealed = Anchor { number: number.saturating_sub(1), hash: forged.previous, ..forged.clone() };
        Anchor::after(Some(&sealed), jiff::Timestamp::MAX, position, Vec::new()).unwrap()
    };
    for (position, number) in [(0, 2), (u64::MAX, 2), (8, 1_000_000), (8, u64::MAX - 1), (u64::MAX, u64::MAX)] {
        let (store, exported) = history().await;
        let forged = forge(exported.last(), position, number);
        assert_eq!((forged.number, forged.is_whole()), (number, true));
        keep(&store, &forged).await;
        let mut seen = Vec::new();
        let number_of =
            |read: Result<Anchor, Finding>| read.map_or_else(|found| found.anchor(), |read| Some(read.number));
        (&store as &dyn Store).anchors(|read| seen.extend(number_of(read))).await.unwrap();
        assert_eq!(seen, [0, 1, number], "{position}");
        store.append(record("later", "call").into()).await.unwrap();
        match (&store as &dyn Store).anchor(|_| {}).await {
            Ok(_) => {}
            Err(error) => assert_eq!(error.code(), "store_corrupt", "{position} {number}"),
        }
        // A forged anchor that follows the others verifies; only the export shows the forgery.
        if number > 2 {
            assert!(verified(&store, &exported).await.is_err(), "{position} {number}");
        }
    }
    // Anchors of another store.
    let (store, exported) = history().await;
    let (_, foreign) = long(3).await;
    assert!(verified(&store, &foreign).await.is_err());
    let both: Vec<_> = exported.iter().chain(&foreign).cloned().collect();
    let (_, found) = all(&store, &both).await;
    let anew = "it differs from the exported anchor: the anchors were recreated";
    for number in [0, 1] {
        assert!(found.contains(&format!("anchor {number}: {anew}")), "{found:?}");
    }
    assert!(
        found.iter().any(|found| found.starts_with("anchor 2: it was exported and is not in the store")),
        "{found:?}"
    );
}

#[tokio::test]
async fn an_anchor_never_replaces_another() {
    let (store, anchors) = history().await;
    let first = anchors[0].clone();
    tamper(&store, Key::last_anchor(), move |_| Some(Document::LastAnchor(Box::new(first.clone())))).await;
    store.append(record("one", "more").into()).await.unwrap();
    assert_eq!((&store as &dyn Store).anchor(|_| {}).await.unwrap_err().code(), "store_corrupt");
    assert_eq!(only(&store, Key::anchor(1)).await.unwrap(), Some(anchors[1].clone()));
    assert!(verified(&store, &[]).await.unwrap_err().starts_with("anchor 1: the end of the anchors"));
}

/// A store in which some documents cannot be read.
struct Torn(MemoryStore, Vec<Key>);

impl Torn {
    fn readable<'k>(&self, mut keys: impl Iterator<Item = &'k Key>) -> Result<(), StoreError> {
        if keys.any(|key| self.1.contains(key)) { Err(StoreError::Corrupt("torn".into())) } else { Ok(()) }
    }
}

#[async_trait]
impl Store for Torn {
    fn append(&self, record: AuditRecord) -> WriteHandle {
        self.0.append(record)
    }

    fn update(&self, keys: Vec<Key>, change: ChangeFn) -> WriteHandle {
        match self.readable(keys.iter()) {
            Ok(()) => self.0.update(keys, change),
            Err(error) => WriteHandle::ready(Err(error)),
        }
    }

    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<StoredDocument>>, StoreError> {
        self.readable(keys.iter())?;
        self.0.read(keys).await
    }

    async fn list(&self, query: &Query) -> Result<Vec<StoredDocument>, StoreError> {
        let listed = self.0.list(query).await?;
        self.readable(listed.iter().map(|listed| &listed.key))?;
        Ok(listed)
    }

    async fn records(&self, filter: &RecordFilter) -> Result<Vec<SealedRecord>, StoreError> {
        self.0.records(filter).await
    }

    async fn flush(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Returns a store with this many anchors, each over one more record of a separate run.
async fn long(anchors: u64) -> (MemoryStore, Vec<Anchor>) {
    let (store, mut made) = (MemoryStore::with_limits(10_000, 10_000), Vec::new());
    for number in 0..anchors {
        store.append(record(&format!("run_{number}"), "call").into()).await.unwrap();
        (&store as &dyn Store).anchor(|anchor| made.push(anchor.clone())).await.unwrap();
    }
    (store, made)
}

async fn all(store: &dyn Store, kept: &[Anchor]) -> (u64, Vec<String>) {
    let checked = Verification::of_store(store, kept, |_| {}).await.unwrap();
    (checked.anchors, checked.findings.iter().map(ToString::to_string).collect())
}

fn unread(number: u64) -> String {
    format!("anchor {number}: it cannot be read")
}

/// Unreadable anchors in any place are reported, and the anchors after them are checked.
#[tokio::test]
async fn an_unreadable_anchor_does_not_hide_others() {
    for torn in [vec![0], vec![20], vec![39], vec![3, 4, 30], (0..40).collect()] {
        let (store, made) = long(40).await;
        let store = Torn(store, torn.iter().copied().map(Key::anchor).collect());
        let (read, unread) = (40 - torn.len() as u64, torn.iter().copied().map(unread).collect::<Vec<_>>());
        // The copy of the last anchor is checked in its place.
        let copied = u64::from(torn.contains(&39));
        assert_eq!(all(&store, &[]).await, (read + copied, unread.clone()), "{torn:?}");
        assert_eq!(all(&store, &made).await, (40 + copied, unread), "{torn:?}: their export is checked instead");
        let mut numbers = Vec::new();
        let number = |read: Result<Anchor, Finding>| match read {
            Ok(anchor) => anchor.number,
            Err(finding) => finding.anchor().unwrap(),
        };
        (&store as &dyn Store).anchors(|read| numbers.push(number(read))).await.unwrap();
        assert_eq!(numbers, (0..40).collect::<Vec<_>>(), "{torn:?}");
    }
}

/// A defect after an unreadable anchor is found.
#[tokio::test]
async fn an_unreadable_anchor_does_not_hide_an_attack() {
    let gone: fn(Document) -> Option<Document> = |_| None;
    for (key, with, finding) in [
        (Key::anchor(20), edited as fn(_) -> _, "anchor 20: it was changed after it was made"),
        (Key::anchor(20), gone, "anchor 20: it was removed, but a later anchor exists"),
        (Key::anchor(39), gone, "anchor 39: it was removed, but the stored end of the anchors names it"),
        (Key::last_anchor(), gone, "anchor 39: the end of the anchors is not this anchor: it was changed"),
    ] {
        let (store, _) = long(40).await;
        tamper(&store, key.clone(), with).await;
        let (_, found) = all(&Torn(store, vec![Key::anchor(3)]), &[]).await;
        assert_eq!((&found[0], found.iter().any(|found| found == finding)), (&unread(3), true), "{key:?}: {found:?}");
    }
    // The last records of a run are missing, and only a later anchor covers them.
    let (_, made) = long(40).await;
    let cut = MemoryStore::with_limits(10_000, 10_000);
    for number in 0..39 {
        cut.append(record(&format!("run_{number}"), "call").into()).await.unwrap();
    }
    for anchor in made {
        let keys = vec![Key::anchor(anchor.number), Key::last_anchor()];
        let change = move |transaction: &mut Transaction| {
            let anchor = Box::new(anchor.clone());
            transaction.set(&Key::anchor(anchor.number), Document::Anchor(anchor.clone()))?;
            transaction.set(&Key::last_anchor(), Document::LastAnchor(anchor))
        };
        cut.update(keys, Box::new(change)).await.unwrap();
    }
    let (_, found) = all(&Torn(cut, vec![Key::anchor(3)]), &[]).await;
    assert!(found.iter().any(|found| found.starts_with("run \"run_39\", record 0: missing from here")), "{found:?}");
}

/// Only the copy of the last anchor cannot be read: all anchors are checked.
#[tokio::test]
async fn an_unreadable_end_of_the_anchors_is_named_once() {
    let (store, made) = long(40).await;
    let store = Torn(store, vec![Key::last_anchor()]);
    let end = "anchor 39: the copy of this anchor at the end of the anchors cannot be read".to_owned();
    for kept in [&[][..], &made] {
        assert_eq!(all(&store, kept).await, (40, vec![end.clone()]));
    }
}

/// New anchors follow an unreadable one, and the next anchor contains its heads.
#[tokio::test]
async fn anchors_are_made_after_an_unreadable_one() {
    for torn in [vec![4], vec![2, 3, 4], vec![0, 1, 2, 3, 4]] {
        let (store, _) = long(5).await;
        let store = Torn(store, torn.iter().copied().map(Key::anchor).collect());
        store.append(record("later", "call").into()).await.unwrap();
        let mut heads = Vec::new();
        (&store as &dyn Store)
            .anchor(|anchor| heads.extend(anchor.heads.iter().map(|head| head.run_id.to_string())))
            .await
            .unwrap();
        assert!(heads.contains(&"later".to_owned()), "{torn:?}: {heads:?}");
        for number in &torn {
            assert!(heads.contains(&format!("run_{number}")), "{torn:?}: {heads:?}");
        }
        let (_, found) = all(&store, &[]).await;
        assert_eq!(found, torn.iter().copied().map(unread).collect::<Vec<_>>());
    }
}

/// An exported line of any content is an error or a finding, and the verification continues.
#[tokio::test]
async fn a_hostile_line_ends_nothing() {
    let (store, _) = history().await;
    let records = store.records(&RecordFilter::default()).await.unwrap();
    let lines: Vec<_> = records.iter().map(|sealed| serde_json::to_string(sealed).unwrap()).collect();
    let with = |member: &str, value: &str| {
        let mut document: serde_json::Value = serde_json::from_str(&lines[2]).unwrap();
        document["record"]["call"][member] = serde_json::Value::String("HERE".to_owned());
        document.to_string().replace("\"HERE\"", value)
    };
    let numbered = |number: u64| lines[2].replace("\"sequence\":1", &format!("\"sequence\":{number}"));
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    for (name, line) in [
        ("nothing", String::new()),
        ("no record", "{}".to_owned()),
        ("cut", lines[2][..lines[2].len() / 2].to_owned()),
        ("two", format!("{}{}", lines[2], lines[3])),
        ("deep", deep(100_000)),
        ("a deep result", with("result", &deep(100_000))),
        ("a deep result that is read", with("result", &deep(100))),
        ("a long result", with("result", &format!("\"{}\"", "x".repeat(8 << 20)))),
        ("a result with a member twice", with("result", r#"{"a":1,"a":2}"#)),
        ("a surrogate", with("result", r#""\ud800""#)),
        ("a number", with("result", "1e999999999")),
        ("the largest place", numbered(u64::MAX)),
        ("the place before", numbered(u64::MAX - 1)),
        ("a place beyond", lines[2].replace("\"sequence\":1", "\"sequence\":18446744073709551616")),
        ("a negative place", lines[2].replace("\"sequence\":1", "\"sequence\":-1")),
    ] {
        for part in [false, true] {
            let mut verifier = Verifier::new(part);
            let read = verifier.follow_line(&line);
            let _ = verifier.follow_line(&line);
            for line in [1, 3, 5, 7] {
                verifier.follow_line(&lines[line]).unwrap();
            }
            let checked = verifier.finish();
            assert!(read.is_err() || !checked.findings.is_empty(), "{name}");
            assert_eq!(checked.records, 4, "{name}: the other run");
        }
    }
}
