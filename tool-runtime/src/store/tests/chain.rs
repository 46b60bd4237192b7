//! A changed, removed or moved record is found.

use crate::call::{Outcome, RecordSeal};
use crate::store::conformance::record;
use crate::store::{AuditRecord, Chain, SealedRecord};
use crate::tool::Hash;

fn chain() -> Vec<SealedRecord> {
    let mut chain = Chain::new();
    (0..4).map(|number| chain.seal(record("run", &format!("call_{number}")).into()).unwrap()).collect()
}

fn call(sealed: &mut SealedRecord) -> &mut crate::call::ToolInvocationRecord {
    match &mut sealed.record {
        AuditRecord::Call(record) => record,
        _ => panic!("a call"),
    }
}

#[track_caller]
fn check(change: impl FnOnce(&mut Vec<SealedRecord>), broken_at: Option<usize>) {
    let mut records = chain();
    change(&mut records);
    assert_eq!(Chain::verify(&records).err().and_then(|error| error.index()), broken_at);
}

#[test]
fn every_change_is_found() {
    check(|_| {}, None);
    check(Vec::clear, None);
    check(|records| drop(records.pop()), None);
    // The records before a part are unknown, so a missing first record is accepted.
    check(|records| drop(records.remove(0)), None);
    check(|records| drop(records.remove(2)), Some(2));
    check(|records| records.swap(1, 2), Some(1));
    check(|records| records.insert(1, records[1].clone()), Some(2));
    check(|records| call(&mut records[1]).outcome = Outcome::PolicyDenied, Some(1));
    check(|records| call(&mut records[3]).principal = None, Some(3));
    check(|records| call(&mut records[2]).seal = None, Some(2));
    check(|records| call(&mut records[2]).seal = Some(Box::new(RecordSeal::random())), Some(2));
    check(|records| records[1].hash = Chain::new().head(), Some(1));
    check(|records| records[1].sequence = 7, Some(1));
    check(|records| records[3].previous = Hash([1; 32]), Some(3));
    let reseal = |records: &mut Vec<SealedRecord>| {
        call(&mut records[1]).executed = false;
        let mut chain = Chain::after(0, records[0].hash);
        records[1] = chain.seal(records[1].record.clone()).unwrap();
    };
    check(reseal, Some(2));
    let elsewhere = |records: &mut Vec<SealedRecord>| call(&mut records[2]).run_id = "other".into();
    check(elsewhere, Some(2));
}

/// Equal records have different digests, so that the values of an erased record cannot be guessed.
#[test]
fn each_record_has_its_own_salt() {
    let (one, other) = (chain(), chain());
    assert!(one.iter().zip(&other).all(|(one, other)| one.hash != other.hash));
    let again = Chain::new().seal(one[0].record.clone()).unwrap();
    assert_eq!(again.hash, one[0].hash, "a copy keeps the salt, so that a chain can be copied");
}

/// An earlier version sealed a record as one text.
#[test]
fn a_record_that_is_sealed_as_one_text_verifies() {
    let text = include_str!("as_one_text.json");
    let read: Vec<SealedRecord> = serde_json::from_str(text).unwrap();
    assert_eq!((read.len(), Chain::verify(&read)), (2, Ok(())));
    let mut chain = Chain::after(1, read[1].hash);
    let next = chain.seal(record("run", "c").into()).unwrap();
    assert_eq!(Chain::verify(&[read[0].clone(), read[1].clone(), next]), Ok(()));
    let mut changed = read;
    call(&mut changed[1]).principal = None;
    assert_eq!(Chain::verify(&changed).err().and_then(|error| error.index()), Some(1));
}

#[test]
fn a_chain_survives_being_written_and_laid_out_anew() {
    let records = chain();
    for text in [serde_json::to_string(&records).unwrap(), serde_json::to_string_pretty(&records).unwrap()] {
        let read: Vec<SealedRecord> = serde_json::from_str(&text).unwrap();
        assert_eq!(Chain::verify(&read), Ok(()));
    }
}
