//! Records and documents of a store, for tests that write to a store without a run or inspect one.

#![allow(clippy::expect_used)] // The text below is a record.

use serde_json::{Value, json};
use tool_runtime::store::{AuditRecord, Key, StoredDocument};

/// The JSON of a document.
///
/// # Panics
/// Never: a store read the document.
#[must_use]
pub fn json_of(document: &StoredDocument) -> Value {
    serde_json::from_str(&document.to_json().expect("a document")).expect("JSON")
}

/// A document from its JSON.
///
/// # Panics
/// The JSON is not a document.
#[must_use]
pub fn document(key: Key, json: &Value) -> StoredDocument {
    StoredDocument::from_json(key, &json.to_string()).expect("a document")
}

/// The record of a call that ended well.
///
/// # Panics
/// Never: the text below is a record.
#[must_use]
pub fn record(run: &str, call: &str) -> AuditRecord {
    let record = json!({"call": {
        "tool_call_id": call, "name": "core__add", "definition_hash": null, "arguments": {"masked": {"number": 1}},
        "result": 2, "outcome": "ok", "executed": true, "started_at": "2026-01-01T00:00:00Z",
        "ended_at": "2026-01-01T00:00:01Z", "run_id": run, "session_id": null, "conversation_id": null,
        "principal": "ada", "roles": [], "tenant": null, "violations": [], "caller": "direct", "decision": null,
        "validator": null, "repair": null,
    }});
    serde_json::from_value(record).expect("a record")
}
