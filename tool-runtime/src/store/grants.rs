//! Grants: stored decisions that apply to later calls.

use std::sync::Arc;

use jiff::Timestamp;

use crate::call::{Caller, Decider, Verdict};
use crate::json::{self, Limits};
use crate::store::kept;
use crate::store::pages::Search;
use crate::store::transact;
use crate::store::transaction::RETENTION_RUN;
use crate::store::{
    Covered, DecisionRecord, Document, DocumentKind, Finding, GrantCaller, GrantScope, Key, PendingCall, Query, Store,
    StoreError, StoredDocument, StoredGrant, Transaction, is_before,
};
use crate::tool::{Hash, ToolEffect};

/// A call that requires an approval, to be compared with grants.
pub(crate) struct GrantQuery<'a> {
    pub(crate) run_id: &'a str,
    pub(crate) conversation_id: Option<&'a str>,
    pub(crate) principal: Option<&'a str>,
    pub(crate) tenant: Option<&'a str>,
    pub(crate) caller: &'a Caller,
    pub(crate) is_script: bool,
    pub(crate) labels: &'a [Arc<str>],
    pub(crate) definition_hash: Hash,
    pub(crate) effect: ToolEffect,
    pub(crate) digest: Hash,
    pub(crate) arguments: &'a str,
    pub(crate) now: Timestamp,
}

impl StoredGrant {
    /// Returns the grants of a tenant that have not expired, oldest first. Grants that cannot be read, of any tenant,
    /// are errors at the end of the list.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub async fn all(store: &dyn Store, tenant: Option<&str>) -> Result<Vec<Result<Self, Finding>>, StoreError> {
        let (now, mut search) = (store.now().await?, Search::of(Query::new(DocumentKind::Grant)));
        let (mut found, mut broken) = (Vec::new(), Vec::new());
        while let Some(page) = search.next_reporting(store, |finding| broken.push(Err(finding))).await? {
            let grants = page.iter().filter_map(StoredDocument::as_grant);
            let ours = grants.filter(|grant| grant.tenant.as_deref() == tenant && !grant.is_expired(now));
            found.extend(ours.cloned().map(Ok));
        }
        found.append(&mut broken);
        Ok(found)
    }

    /// Revokes the grant, so that later calls require an approval again. A [`DecisionRecord`] with
    /// [`DecisionKind::Revoked`](crate::store::DecisionKind::Revoked), in the run of the call from which the grant was
    /// made, names the decider, the grant and the store's time. If that run was purged or erased, the record is in the
    /// run `tool-runtime:retention`, without arguments and without the principal of the grant. It then does not name a
    /// decider who is that principal.
    ///
    /// No policy is checked, so pass only a person whom the application has authenticated and permits to revoke.
    /// Returns `false`, without a change or a record, if the grant does not exist, if the decider belongs to another
    /// tenant, or if the decider has no readable name.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub async fn revoke(&self, store: &dyn Store, decider: &Decider) -> Result<bool, StoreError> {
        let (keys, change) = revocation(self, decider);
        transact(store, keys, change).await
    }

    /// Whether the grant is valid by the clock of a run. `false` for a grant that allows calls if that clock is more
    /// than a minute before the time when the grant was made. Otherwise, a clock that jumped back could extend the
    /// lifetime of the grant.
    fn is_in_force(&self, now: Timestamp) -> bool {
        let is_early = self.verdict != Verdict::Deny && is_before(now, self.created_at);
        !self.is_expired(now) && !is_early
    }

    /// Whether the grant covers a call.
    pub(crate) fn is_for(&self, asked: &GrantQuery<'_>) -> bool {
        let same_principal = self.principal.as_deref() == asked.principal;
        let in_scope = match &self.scope {
            GrantScope::Run(id) => same_principal && **id == *asked.run_id,
            GrantScope::Conversation(id) => same_principal && Some(&**id) == asked.conversation_id,
            GrantScope::Principal => same_principal && self.principal.is_some(),
            GrantScope::Tenant => true,
        };
        // A grant that allows calls with `external_side_effect` needs both bounds. They are checked again here, because
        // the policy may have raised the effect of the tool since the decision.
        let bounded = self.uses.is_some() && self.expires_at.is_some();
        let bounded = bounded || self.verdict == Verdict::Deny || asked.effect != ToolEffect::ExternalSideEffect;
        let holds = self.is_in_force(asked.now) && bounded;
        let known = asked.labels.iter().all(|label| self.labels.contains(label)) || self.verdict == Verdict::Deny;
        // Every call of a script needs its own approval, so only a grant that denies calls covers it.
        let same_caller = !asked.is_script && self.caller == GrantCaller::from(asked.caller);
        let same_caller = same_caller || self.verdict == Verdict::Deny;
        in_scope
            && holds
            && known
            && same_caller
            && self.tenant.as_deref() == asked.tenant
            && self.definition_hash == asked.definition_hash
            && self.covers.has(asked)
    }
}

impl Covered {
    /// Returns the pointer of the first condition that these arguments do not meet. `None` if they meet all of them.
    pub(crate) fn unmet(&self, arguments: &str) -> Option<String> {
        let Self::Matching(rules) = self else { return None };
        match json::parse(arguments, &Limits::UNBOUNDED) {
            Ok(arguments) => rules.iter().find(|rule| rule.fires(&arguments)).map(|rule| rule.pointer.clone()),
            Err(_) => Some(String::new()),
        }
    }

    fn has(&self, asked: &GrantQuery<'_>) -> bool {
        match self {
            Self::Exactly(digest) => *digest == asked.digest,
            Self::Matching(rules) => json::parse(asked.arguments, &Limits::UNBOUNDED)
                .is_ok_and(|arguments| !rules.iter().any(|rule| rule.fires(&arguments))),
        }
    }
}

/// Whether a grant exists and has not expired. A used-up grant no longer exists.
pub(crate) fn holds(transaction: &Transaction, key: &Key) -> bool {
    let Some(Document::Grant(grant)) = transaction.get(key) else { return false };
    !grant.is_expired(transaction.now())
}

/// Stores a grant from a decision on a call, with its record, if the call is still suspended. Returns whether the grant
/// was stored.
pub(crate) fn give(
    transaction: &mut Transaction,
    grant: &StoredGrant,
    call: &PendingCall,
    record: &DecisionRecord,
) -> Result<bool, StoreError> {
    match transaction.get(&Key::of_waiting(call)) {
        Some(Document::Waiting(waiting))
            if waiting.call.is_same(call) && !waiting.call.is_expired(transaction.now()) => {}
        _ => return Ok(false),
    }
    transaction.set(&grant.key(), Document::Grant(Box::new(grant.clone())))?;
    transaction.append(record.clone()).map(|()| true)
}

/// Returns the keys and the change that revoke a grant and write its record. The change returns `false` if the grant
/// does not exist, or the decider may not revoke it.
pub(crate) fn revocation(
    grant: &StoredGrant,
    decider: &Decider,
) -> (Vec<Key>, impl FnMut(&mut Transaction) -> Result<bool, StoreError> + Send + use<>) {
    let (key, decider) = (grant.key(), decider.clone());
    let keys = vec![Key::run_head(Arc::clone(&grant.origin.run_id)), Key::run(RETENTION_RUN), key.clone()];
    let change = move |transaction: &mut Transaction| {
        // The caller's copy may have been changed, so the stored grant is used.
        let Some(Document::Grant(stored)) = transaction.get(&key) else { return Ok(false) };
        if decider.tenant_id() != stored.tenant.as_deref() || !decider.is_named() {
            return Ok(false);
        }
        let mut record = DecisionRecord::revoked(stored, &decider, transaction.now());
        let is_own = Some(decider.principal()) == stored.principal.as_deref();
        transaction.remove(&key)?;
        if transaction.refuse_purged(&record.run_id).is_err() {
            // The run no longer accepts records. The record goes to a run that is kept forever, so it must not contain
            // the principal of the grant.
            record = DecisionRecord {
                run_id: RETENTION_RUN.into(),
                decider: (!is_own).then(|| decider.clone()),
                ..kept::decision(&record)
            };
        }
        transaction.append_anyway(record).map(|()| true)
    };
    (keys, change)
}

/// Consumes one use of a grant that [`holds`].
pub(crate) fn take(transaction: &mut Transaction, key: &Key) -> Result<(), StoreError> {
    let Some(Document::Grant(grant)) = transaction.get(key) else { return Ok(()) };
    match grant.uses {
        None => Ok(()),
        // The last use removes the grant.
        Some(..=1) => transaction.remove(key),
        Some(uses) => {
            let mut grant = grant.clone();
            grant.uses = Some(uses - 1);
            transaction.set(key, Document::Grant(grant))
        }
    }
}
