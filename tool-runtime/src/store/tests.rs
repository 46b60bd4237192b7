//! Cases of the stores and of the chain.

mod chain;
mod contract;
mod memory;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::value::RawValue;

use crate::call::{CallId, Caller, Outcome, RecordedArguments, Suspension, ToolInvocationRecord};
use crate::store::{FrozenArguments, PendingCall};
use crate::tool::{Hash, ToolName};

fn raw(text: &str) -> Arc<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap().into()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

fn record(run: &str, call: &str, ended: Option<i64>) -> ToolInvocationRecord {
    ToolInvocationRecord {
        tool_call_id: CallId::new(call),
        meant_for: None,
        name: "core__add".to_owned(),
        definition_hash: Some(Hash([7; 32])),
        arguments: RecordedArguments::Masked(raw(r#"{"b":2,"a":18446744073709551615}"#)),
        result: Some(raw("[1.5,\"x\"]")),
        media: Vec::new(),
        outcome: if ended.is_some() { Outcome::Ok } else { Outcome::ApprovalRequired },
        cause: None,
        tool_code: None,
        safe_message: None,
        executed: ended.is_some(),
        started_at: at(0),
        ended_at: ended.map(at),
        run_id: run.into(),
        session_id: None,
        conversation_id: None,
        principal: Some("ada".into()),
        roles: Vec::new(),
        attributes: Vec::new(),
        tenant: None,
        violations: Vec::new(),
        caller: Caller::Direct,
        decision: None,
        validator: None,
        repair: None,
        previous: None,
        hash: None,
    }
}

fn waiting(run: &str, call: &str, expires: i64) -> PendingCall {
    PendingCall {
        version: PendingCall::VERSION,
        call_id: CallId::new(call),
        tool: ToolName::parse("core__add").unwrap(),
        definition_hash: Hash([7; 32]),
        arguments: FrozenArguments::new(r#"{"pin":"1234"}"#),
        argument_digest: Hash([8; 32]),
        shown_arguments: raw(r#"{"pin":"[sensitive]"}"#),
        principal: Some("ada".into()),
        roles: Vec::new(),
        attributes: Vec::new(),
        tools: None,
        tenant: None,
        policy_revision: Hash([9; 32]),
        rule: Some("require_approval_for_effects".to_owned()),
        labels: vec!["untrusted".into()],
        run_id: run.into(),
        session_id: None,
        conversation_id: Some("talk".into()),
        caller: Caller::Direct,
        repair: None,
        started_at: at(0),
        created_at: at(1),
        expires_at: at(expires),
        suspension: Suspension::Approval,
        prepared: None,
    }
}
