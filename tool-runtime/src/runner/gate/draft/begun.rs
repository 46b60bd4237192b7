//! The initial record of a new call, and the stored record of a call that waited.

use std::sync::Arc;

use jiff::Timestamp;

use crate::call::{ArgumentDigest, CallId, LeftOut, Outcome, RecordedArguments, ToolInvocationRecord};
use crate::runner::Run;
use crate::runner::gate::draft::{Called, Draft};

/// The placeholder in a record until its arguments are read or digested: `OpenCall::read` reads them,
/// [`Draft::take_record`] digests them.
const UNPARSED: RecordedArguments = RecordedArguments::Unread { length: 0, digest: ArgumentDigest::NONE };

impl Draft {
    #[inline]
    pub(in crate::runner) fn new(run: &Run, id: CallId, called: Called) -> Self {
        let options = run.options();
        let record = Box::new(ToolInvocationRecord {
            tool_call_id: id,
            name: Arc::clone(called.name()),
            definition_hash: None,
            arguments: UNPARSED,
            changes: Vec::new(),
            result: None,
            left_out: LeftOut::default(),
            media: Vec::new(),
            outcome: Outcome::OutcomeUnknown,
            cause: None,
            tool_code: None,
            safe_message: None,
            violations: Vec::new(),
            executed: false,
            started_at: run.shared().clock.now(),
            ended_at: None,
            run_id: Arc::clone(run.identity()),
            session_id: options.session.clone(),
            conversation_id: options.conversation.clone(),
            principal: options.principal.clone(),
            roles: options.roles.clone(),
            attributes: options.attributes.clone(),
            tenant: options.tenant.clone(),
            effect_key: None,
            caller: options.caller.clone(),
            decision: None,
            validator: None,
            repair: None,
            intervention: None,
            void_grant: None,
            seal: None,
        });
        Self::of(called, record)
    }

    /// Returns the draft of a call that was suspended or begun before. It keeps the session, the conversation and the
    /// caller of the stored record.
    pub(in crate::runner) fn reopened(run: &Run, record: ToolInvocationRecord) -> Self {
        let options = run.options();
        let record = Box::new(ToolInvocationRecord {
            run_id: Arc::clone(run.identity()),
            principal: options.principal.clone(),
            roles: options.roles.clone(),
            attributes: options.attributes.clone(),
            tenant: options.tenant.clone(),
            // The final record must not contain the message of the suspension.
            safe_message: None,
            ..record
        });
        Self::of(Called::Unknown(Arc::clone(&record.name)), record)
    }

    /// Replaces the start of the call with the store's time.
    #[cold]
    pub(in crate::runner) fn starts(&mut self, now: Timestamp) {
        self.started_at = now;
        if let Some(record) = &mut self.record {
            record.started_at = now;
        }
    }

    #[inline]
    fn of(called: Called, record: Box<ToolInvocationRecord>) -> Self {
        Self {
            id: record.tool_call_id.clone(),
            called,
            started_at: record.started_at,
            effect: None,
            executed: false,
            unparsed_call: None,
            explanation: None,
            record: Some(record),
            shown: None,
            plain: None,
        }
    }
}
