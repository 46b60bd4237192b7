//! [`Grant`]: a decision on a waiting call that also applies to later calls like it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::call::{Decider, DecisionError, Question, Suspension, Verdict};
use crate::policy::ArgumentRule;
use crate::runner::waiting::comparison::{self, Purpose};
use crate::runner::waiting::counting;
use crate::runner::waiting::suspend::{Given, checked_decision};
use crate::runner::{ResumeError, Run};
use crate::store::grants;
use crate::store::{
    Covered, DecisionKind, DecisionRecord, GrantCaller, GrantOrigin, GrantScope, Key, PendingCall, StoredGrant,
    Transaction, ledger, transact,
};
use crate::tool::ToolEffect;

/// The maximum length of the conditions, in bytes. Every call that the grant may cover evaluates them.
const MAX_CONDITIONS: usize = 64 << 10;

/// A decision for later calls, with the runs and the arguments to which it applies, the number of calls and a lifetime.
/// Pass it to [`Run::remember`].
///
/// ```
/// use std::time::Duration;
/// use tool_runtime::runner::Grant;
/// use tool_runtime::store::GrantScope;
///
/// let remember = Grant::allow(GrantScope::Principal)
///     .matching(r#"[{"pointer": "/to", "one_of": ["office@example.org"]}]"#)?
///     .uses(20)
///     .expires_in(Duration::from_secs(7 * 24 * 3600));
/// # let _ = remember;
/// # Ok::<(), tool_runtime::runner::ResumeError>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct Grant {
    scope: GrantScope,
    verdict: Verdict,
    matching: Option<Vec<ArgumentRule>>,
    uses: Option<u32>,
    expires_in: Option<Duration>,
}

impl Grant {
    /// Creates a grant under which calls with the same arguments run without an approval.
    pub fn allow(scope: GrantScope) -> Self {
        Self { scope, verdict: Verdict::Allow, matching: None, uses: None, expires_in: None }
    }

    /// Creates a grant under which calls with the same arguments are refused, without a question to a person.
    pub fn deny(scope: GrantScope) -> Self {
        Self { verdict: Verdict::Deny, ..Self::allow(scope) }
    }

    /// Makes the grant cover every call whose arguments meet all of these conditions. `conditions` is a JSON list of
    /// conditions in the form of a policy's `[[tools.NAME.arguments]]`, without `then` and `otherwise`. An argument
    /// without a condition can have any value.
    ///
    /// # Errors
    /// The text is not a list of conditions, the list is empty, or the text is longer than 64 KiB.
    pub fn matching(mut self, conditions: &str) -> Result<Self, ResumeError> {
        if conditions.len() > MAX_CONDITIONS {
            return Err(ResumeError::GrantConditions("they are longer than 64 KiB".to_owned()));
        }
        // The error texts of the parser quote values, which the message must not contain.
        let written: Vec<serde_json::Map<String, serde_json::Value>> =
            serde_json::from_str(conditions).map_err(|error| {
                let what = if error.is_data() { "a JSON list of objects is expected" } else { "the JSON is invalid" };
                let (line, column) = (error.line(), error.column());
                ResumeError::GrantConditions(format!("{what} at line {line}, column {column}"))
            })?;
        if written.is_empty() {
            let why = "the list is empty; write a condition, or cover any arguments (`any_arguments`)".to_owned();
            return Err(ResumeError::GrantConditions(why));
        }
        let rule = |(at, mut condition): (usize, serde_json::Map<String, serde_json::Value>)| {
            if condition.contains_key("then") || condition.insert("otherwise".to_owned(), "deny".into()).is_some() {
                return Err(ResumeError::GrantConditions("leave `then` and `otherwise` out".to_owned()));
            }
            serde_json::from_value(condition.into()).map_err(|_| {
                let why = "a member of it is missing, unknown, repeated or of another type";
                ResumeError::GrantConditions(format!("condition {} is not valid: {why}", at + 1))
            })
        };
        self.matching = Some(written.into_iter().enumerate().map(rule).collect::<Result<_, _>>()?);
        Ok(self)
    }

    /// Makes the grant cover every call of the tool, with any arguments.
    pub fn any_arguments(mut self) -> Self {
        self.matching = Some(Vec::new());
        self
    }

    /// Sets the maximum number of calls; unlimited by default. A grant that allows calls of a tool with external
    /// effects needs it. With 0 calls, or in a grant that denies calls, it makes [`Run::remember`] return
    /// [`ResumeError::GrantScope`].
    pub const fn uses(mut self, uses: u32) -> Self {
        self.uses = Some(uses);
        self
    }

    /// Sets the lifetime, which must not be zero; unlimited by default. A grant that allows calls of a tool with
    /// external effects needs it.
    pub const fn expires_in(mut self, time: Duration) -> Self {
        self.expires_in = Some(time);
        self
    }
}

impl Grant {
    /// Creates the grant and its record from a decision on a waiting call. `effect` is the effect of the call's tool,
    /// or `None` if the tool no longer exists.
    pub(crate) fn grant(
        self,
        call: &PendingCall,
        effect: Option<ToolEffect>,
        decider: &Decider,
        now: Timestamp,
    ) -> Result<(StoredGrant, DecisionRecord), ResumeError> {
        let Self { scope, verdict, matching, uses, expires_in } = self;
        let fits = match &scope {
            GrantScope::Run(run) => *run == call.run_id,
            GrantScope::Conversation(conversation) => Some(conversation) == call.conversation_id.as_ref(),
            GrantScope::Principal => call.principal.is_some(),
            GrantScope::Tenant => true,
        };
        let counted = if verdict == Verdict::Deny { uses.is_none() } else { uses != Some(0) };
        let lasts = expires_in.is_none_or(|time| !time.is_zero());
        if !fits || !counted || !lasts || call.repair.is_some() || call.graph.is_some() {
            return Err(ResumeError::GrantScope);
        }
        let reaches_out = effect.is_none_or(|effect| effect == ToolEffect::ExternalSideEffect);
        if verdict == Verdict::Allow && reaches_out && (uses.is_none() || expires_in.is_none()) {
            return Err(ResumeError::GrantUnbounded);
        }
        let covers = matching.map_or(Covered::Exactly(call.argument_digest), Covered::Matching);
        if let Some(pointer) = covers.unmet(call.arguments.as_str()) {
            return Err(ResumeError::GrantUnmet(pointer));
        }
        let grant = StoredGrant {
            id: uuid::Uuid::new_v4().simple().to_string().into(),
            tool: call.tool.clone(),
            definition_hash: call.definition_hash,
            scope,
            tenant: call.tenant.clone(),
            principal: call.principal.clone(),
            caller: GrantCaller::from(&call.caller),
            origin: GrantOrigin::from(call),
            labels: call.labels.clone(),
            verdict,
            covers,
            uses,
            expires_at: expires_in.map(|time| now.saturating_add(time).unwrap_or(Timestamp::MAX)),
            decider: decider.clone(),
            created_at: now,
            on_hold: None,
        };
        let mut record = DecisionRecord::new(call, DecisionKind::Remembered, Some(decider), now);
        record.grant = Some(Arc::clone(&grant.id));
        Ok((grant, record))
    }
}

// Conditions contain values of arguments.
impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant")
            .field("scope", &self.scope)
            .field("verdict", &self.verdict)
            .field("uses", &self.uses)
            .field("expires_in", &self.expires_in)
            .finish_non_exhaustive()
    }
}

/// See [`Run::remember`].
pub(in crate::runner) async fn remember(
    run: &Run,
    question: &Question,
    remember: Grant,
    decider: &Decider,
) -> Result<StoredGrant, ResumeError> {
    let id = question.call_id();
    let not_waiting = || ResumeError::NotWaiting(id.clone());
    let (purpose, kind) = (Purpose::Resume(Suspension::Approval), DecisionKind::Remembered);
    let given = Given { purpose, kind, decider: Some(decider), question: Some(question) };
    let call = match checked_decision(run, id, &given).await? {
        // One person may not allow later calls that need several approvals.
        Ok((waiting, decision))
            if remember.verdict == Verdict::Allow && counting::required_now(run, &waiting.call) > 1 =>
        {
            return Err(comparison::barred(run, &waiting, decision, DecisionError::SeveralDeciders).await);
        }
        // The policy under which the call was suspended may name other deciders, and this run does not have that
        // policy.
        Ok((waiting, decision)) if waiting.call.policy_revision != run.policy().revision() => {
            return Err(comparison::barred(run, &waiting, decision, DecisionError::Policy).await);
        }
        Ok((waiting, _)) => waiting.call,
        Err(_) => return Err(ResumeError::NotAllowed(DecisionError::Question)),
    };
    let now = run.shared().clock.now();
    if call.is_expired(now) {
        return Err(not_waiting());
    }
    let effect = run.effect_of(call.tool.as_str());
    let (grant, record) = remember.grant(&call, effect, decider, now)?;
    let waits = Key::of_waiting(&call);
    let keys = vec![Key::run_head(run.identity().clone()), waits, grant.key()];
    let (lease, kept) = (run.lease(), grant.clone());
    let change = move |transaction: &mut Transaction| {
        ledger::check(transaction, lease.as_ref())?;
        grants::give(transaction, &kept, &call, &record)
    };
    match transact(&run.shared().store, keys, change).await {
        Ok(true) => Ok(grant),
        Ok(false) => Err(not_waiting()),
        Err(error) => Err(run.store_failed(error)),
    }
}
