//! A changed, removed or moved record is found.

use crate::call::{Outcome, ToolInvocationRecord};
use crate::store::Chain;
use crate::store::tests::{raw, record};
use crate::tool::Hash;

fn chain() -> Vec<ToolInvocationRecord> {
    let mut records: Vec<_> = (0..4).map(|number| record("run", &format!("call_{number}"), Some(number))).collect();
    let mut chain = Chain::new();
    records.iter_mut().for_each(|record| chain.seal(record).unwrap());
    records
}

#[track_caller]
fn check(change: impl FnOnce(&mut Vec<ToolInvocationRecord>), broken_at: Option<usize>) {
    let mut records = chain();
    change(&mut records);
    assert_eq!(Chain::new().follow(&records).err().map(|error| error.at), broken_at);
}

#[test]
fn every_change_is_found() {
    check(|_| {}, None);
    check(Vec::clear, None);
    check(|records| drop(records.pop()), None);
    check(|records| drop(records.remove(0)), Some(0));
    check(|records| drop(records.remove(2)), Some(2));
    check(|records| records.swap(1, 2), Some(1));
    check(|records| records.insert(1, records[1].clone()), Some(2));
    check(|records| records[1].outcome = Outcome::PolicyDenied, Some(1));
    check(|records| records[2].result = Some(raw("[1.5,\"y\"]")), Some(2));
    check(|records| records[3].principal = None, Some(3));
    check(|records| records[1].hash = None, Some(1));
    check(|records| records[1].hash = Some(Chain::new().head()), Some(1));
    check(|records| records[3].previous = Some(Hash([1; 32])), Some(3));
    let reseal = |records: &mut Vec<ToolInvocationRecord>| {
        records[1].executed = false;
        let mut chain = Chain::after(records[0].hash.unwrap());
        chain.seal(&mut records[1]).unwrap();
    };
    check(reseal, Some(2));
}

#[test]
fn a_part_is_checked_by_itself() {
    assert_eq!(Chain::verify(&chain()[2..]), Ok(()));
    assert_eq!(Chain::verify(&[]), Ok(()));
    let error = Chain::verify(&[record("run", "call", Some(1))]).unwrap_err();
    assert_eq!(error.to_string(), "the audit chain is broken at record 0: the record is not sealed");
}

#[test]
fn a_chain_is_followed_page_by_page() {
    let (records, mut chain) = (chain(), Chain::new());
    assert_eq!(chain.follow(&records[..2]), Ok(()));
    assert_eq!(chain.follow(&records[3..]).map_err(|error| error.at), Err(0));
    assert_eq!(chain.follow(&records[2..]), Ok(()));
    assert_eq!(Some(chain.head()), records[3].hash);
}

#[test]
fn a_chain_survives_being_written_and_laid_out_anew() {
    let records = chain();
    for text in [serde_json::to_string(&records).unwrap(), serde_json::to_string_pretty(&records).unwrap()] {
        let read: Vec<ToolInvocationRecord> = serde_json::from_str(&text).unwrap();
        assert_eq!(Chain::new().follow(&read), Ok(()));
    }
    let mut read = chain();
    read[0].result = Some(raw("[1.5, \"\\u0078\"]"));
    assert_eq!(Chain::new().follow(&read), Ok(()));
}
