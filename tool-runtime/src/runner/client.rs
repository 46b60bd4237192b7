//! Client tools: a prepared payload goes out, and the client's untrusted answer comes back, once.

use crate::call::{Outcome, ToolExecResult};
use crate::json::{self, Limits};
use crate::runner::Run;
use crate::runner::approval::{NotPending, reopen};
use crate::runner::open::OpenCall;
use crate::runner::stages;
use crate::runner::stop::{Ended, Stop};
use crate::store::{PendingCall, Suspension};

/// An answer may be this many times longer than what of it may be shown.
const ANSWER_FACTOR: usize = 8;

impl Run {
    /// Finishes a call that waits for its client with the client's answer, a JSON value as text. It counts once.
    ///
    /// The answer is untrusted: it is size-limited, validated against the tool's `client_result`, and projected.
    ///
    /// # Errors
    /// Nothing waits for a client under this id. An answer that does not fit is a result, not an error.
    pub async fn client_result(&self, call_id: &str, value: &str) -> Result<ToolExecResult, NotPending> {
        let (mut open, pending) = reopen(self, call_id, Some(Suspension::Client)).await?;
        open.executed = true;
        let ended = answered(&mut open, &pending, value);
        Ok(open.finish(ended).await)
    }
}

fn answered(open: &mut OpenCall, pending: &PendingCall, value: &str) -> Result<Ended, Stop> {
    let shared = std::sync::Arc::clone(&open.run.0.shared);
    let entry = shared.catalog.entry(pending.tool.as_str());
    let entry = entry.filter(|entry| entry.spec.definition_hash == pending.definition_hash);
    let both = entry.and_then(|entry| Some((entry, entry.answer.as_ref()?)));
    let (entry, answer) = both.ok_or_else(|| Stop::new(Outcome::ApprovalMismatch))?;
    if pending.is_expired(shared.clock.now()) {
        return Err(Stop::new(Outcome::ApprovalExpired));
    }
    let limit = shared.policy.limits_of(pending.tool.as_str()).result_bytes;
    let limits = Limits { bytes: limit.saturating_mul(ANSWER_FACTOR), ..Limits::default() };
    let tree = json::parse_value(value, &limits).map_err(|error| {
        Stop::new(if error.kind.is_limit() { Outcome::ResultTooLarge } else { Outcome::OutputInvalid })
    })?;
    let invalid = || Stop::new(Outcome::OutputInvalid);
    let violations = shared.compiled.check_answer(entry, &tree).ok_or_else(invalid)?;
    if !violations.is_empty() {
        return Err(invalid().errors(violations));
    }
    let projected = answer.projector.project(&tree, limit).map_err(|error| stages::unprojected(&error))?;
    stages::remember(&open.run, projected.model.as_ref().unwrap_or(&projected.shown).get());
    Ok(Ended { shown: projected.shown, model: projected.model, warning: None })
}
