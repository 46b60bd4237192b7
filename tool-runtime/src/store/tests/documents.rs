//! Documents have a version, and their `Debug` shows no contents.

use tokio::sync::oneshot;

use crate::store::conformance::waiting;
use crate::store::{Clock, PendingCall, StoreError, WriteHandle};
use crate::testing::ManualClock;

#[test]
fn a_pending_call_is_a_versioned_document() {
    let call = waiting("one", "a", 10).call;
    assert!(!format!("{call:?}").contains("1234"));
    let text = serde_json::to_string(&call).unwrap();
    assert!(text.starts_with("{\"version\":1,"));
    let again: PendingCall = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&again).unwrap(), text);
    let later = text.replacen("\"version\":1", "\"version\":2,\"more\":0", 1);
    let error = serde_json::from_str::<PendingCall>(&later).unwrap_err().to_string();
    assert!(error.starts_with("the pending call was written by another version"), "{error}");
    let error = serde_json::from_str::<PendingCall>(&text.replacen('{', "{\"more\":0,", 1)).unwrap_err().to_string();
    assert!(error.starts_with("unknown field `more`"), "{error}");
    let clock = ManualClock::at(call.expires_at - std::time::Duration::from_secs(1));
    assert!(!call.is_expired(clock.now()));
    clock.advance(std::time::Duration::from_secs(1));
    assert!(call.is_expired(clock.now()));
}

#[tokio::test]
async fn a_receipt_resolves_when_its_writer_says_so() {
    let (writer, receiver) = oneshot::channel();
    writer.send(Ok(())).unwrap();
    assert!(WriteHandle::new(receiver).await.is_ok());
    let (writer, receiver) = oneshot::channel();
    drop(writer);
    assert!(matches!(WriteHandle::new(receiver).await, Err(StoreError::Lost)));
}
