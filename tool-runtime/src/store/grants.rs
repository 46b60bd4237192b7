//! [`Grant`]: what somebody decided for calls that come later, as data.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::call::{Caller, Decider, Verdict};
use crate::json::{self, Limits};
use crate::policy::ArgumentRule;
use crate::store::transaction::returning;
use crate::store::{
    DecisionRecord, Document, DocumentKind, Key, PendingCall, Query, Store, StoreError, StoredDocument, Transaction,
    is_before, pages,
};
use crate::tool::{Hash, ToolEffect, ToolName};

/// What somebody decided for calls that come later. It answers where the policy requires an approval, and nowhere else:
/// what the policy denies stays denied.
///
/// Made by [`Run::remember`](crate::Run::remember). It holds for the definition of the tool that was looked at, for runs
/// of the same tenant that have no label which the call's run did not have, and never for repaired arguments. An
/// allowance holds for the caller whose call was looked at, never for a script, and only while its decider may decide on
/// such a call under the policy of the run that uses it. A denial holds for every caller, stays until it is taken back,
/// and wins over any number of allowances. Its `Debug` shows no arguments.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Grant {
    /// Its id. A call that it let run has the rule `grant:ID` in its record.
    pub id: Arc<str>,
    /// The tool.
    pub tool: ToolName,
    /// The definition that was looked at.
    pub definition_hash: Hash,
    /// For which runs it holds.
    pub scope: GrantScope,
    /// The tenant of the run.
    pub tenant: Option<Arc<str>>,
    /// The principal of the run. Of other principals' runs only the scope [`GrantScope::Tenant`] covers any.
    pub principal: Option<Arc<str>>,
    /// Who made the call.
    pub caller: GrantCaller,
    /// The labels that the run had.
    pub labels: Vec<Arc<str>>,
    /// Whether such calls run. Never [`Verdict::RequireApproval`].
    pub verdict: Verdict,
    pub(crate) covers: Covered,
    /// How many more calls may run; `None` for any number.
    pub uses: Option<u32>,
    /// From when on it does not hold; `None` for never.
    pub expires_at: Option<Timestamp>,
    /// Who decided, and why.
    pub decider: Decider,
    /// When.
    pub created_at: Timestamp,
}

/// For which runs a grant holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GrantScope {
    /// This run.
    Run(Arc<str>),
    /// Runs of this conversation.
    Conversation(Arc<str>),
    /// Runs of the principal.
    Principal,
    /// Runs of everybody in the tenant.
    Tenant,
}

/// Whose calls an allowance covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GrantCaller {
    /// Those of the agent loop or the application.
    Direct,
    /// Those of the graph of this name.
    Graph(Arc<str>),
}

impl From<&Caller> for GrantCaller {
    fn from(caller: &Caller) -> Self {
        match caller {
            Caller::Direct => Self::Direct,
            Caller::Graph { name, .. } => Self::Graph(name.as_str().into()),
        }
    }
}

/// Which arguments a grant covers.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Covered {
    /// These, by their digest.
    Exactly(Hash),
    /// Those that none of these rules refuses.
    Matching(Vec<ArgumentRule>),
}

/// A call that requires an approval.
pub(crate) struct Asked<'a> {
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

impl Grant {
    /// Returns the grants of a tenant that hold now, oldest first.
    ///
    /// # Errors
    /// The store cannot be reached, or what it holds cannot be read.
    pub async fn all(store: &dyn Store, tenant: Option<&str>) -> Result<Vec<Self>, StoreError> {
        let (now, mut found) = (store.now().await?, Vec::new());
        let mut pages = pages(store, Query::new(DocumentKind::Grant));
        while let Some(page) = pages.next().await? {
            let grants = page.iter().filter_map(StoredDocument::as_grant);
            found.extend(grants.filter(|grant| grant.tenant.as_deref() == tenant && !grant.is_expired(now)).cloned());
        }
        Ok(found)
    }

    /// Takes the grant back: later calls are asked about again. Returns whether it was there.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub async fn revoke(&self, store: &dyn Store) -> Result<bool, StoreError> {
        let key = self.key();
        let revoked = key.clone();
        let (change, found) = returning(move |transaction: &mut Transaction| revoke(transaction, &revoked));
        store.update(vec![key], change).await?;
        found()
    }

    /// Where it is kept.
    pub(crate) fn key(&self) -> Key {
        Key::grant(self.tool.as_str(), self.tenant.as_deref(), Arc::clone(&self.id))
    }

    pub(crate) fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| now >= end)
    }

    /// Whether it holds by the clock of a run, which is the one that it was made by. If that clock jumped back, an
    /// allowance could hold for longer than it was given for.
    fn is_in_force(&self, now: Timestamp) -> bool {
        let is_early = self.verdict != Verdict::Deny && is_before(now, self.created_at);
        !self.is_expired(now) && !is_early && self.uses != Some(0)
    }

    /// Whether it covers a call.
    pub(crate) fn is_for(&self, asked: &Asked<'_>) -> bool {
        let same_principal = self.principal.as_deref() == asked.principal;
        let in_scope = match &self.scope {
            GrantScope::Run(id) => same_principal && **id == *asked.run_id,
            GrantScope::Conversation(id) => same_principal && Some(&**id) == asked.conversation_id,
            GrantScope::Principal => same_principal && self.principal.is_some(),
            GrantScope::Tenant => true,
        };
        // The policy may have raised the effect of the tool since.
        let bounded = self.uses.is_some() && self.expires_at.is_some();
        let bounded = bounded || self.verdict == Verdict::Deny || asked.effect != ToolEffect::ExternalSideEffect;
        let holds = self.is_in_force(asked.now) && bounded;
        let known = asked.labels.iter().all(|label| self.labels.contains(label)) || self.verdict == Verdict::Deny;
        // Each call of a script waits for a person, whatever the decision on another call was.
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
    /// The pointer of the first condition that these arguments do not meet. `None` if they meet all.
    pub(crate) fn unmet(&self, arguments: &str) -> Option<String> {
        let Self::Matching(rules) = self else { return None };
        match json::parse(arguments, &Limits::UNBOUNDED) {
            Ok(arguments) => rules.iter().find(|rule| rule.fires(&arguments)).map(|rule| rule.pointer.clone()),
            Err(_) => Some(String::new()),
        }
    }

    fn has(&self, asked: &Asked<'_>) -> bool {
        match self {
            Self::Exactly(digest) => *digest == asked.digest,
            Self::Matching(rules) => json::parse(asked.arguments, &Limits::UNBOUNDED)
                .is_ok_and(|arguments| !rules.iter().any(|rule| rule.fires(&arguments))),
        }
    }
}

/// Whether a grant is there, with a use left, and has not expired.
pub(crate) fn holds(transaction: &Transaction, key: &Key) -> bool {
    let Some(Document::Grant(grant)) = transaction.get(key) else { return false };
    !grant.is_expired(transaction.now()) && grant.uses != Some(0)
}

/// Keeps a grant that was made of a call, with its record, while the call still waits. Returns whether it does.
pub(crate) fn give(
    transaction: &mut Transaction,
    grant: &Grant,
    call: &PendingCall,
    record: &DecisionRecord,
) -> Result<bool, StoreError> {
    match transaction.get(&Key::of_waiting(call)) {
        Some(Document::Waiting(waiting)) if waiting.call.is_same(call) => {}
        _ => return Ok(false),
    }
    transaction.set(&grant.key(), Document::Grant(Box::new(grant.clone())))?;
    transaction.append(record.clone()).map(|()| true)
}

/// Takes a grant back. Returns whether there was one.
pub(crate) fn revoke(transaction: &mut Transaction, key: &Key) -> Result<bool, StoreError> {
    let found = transaction.get(key).is_some();
    transaction.remove(key).map(|()| found)
}

/// Takes one use of a grant that [`holds`].
pub(crate) fn take(transaction: &mut Transaction, key: &Key) -> Result<(), StoreError> {
    let Some(Document::Grant(grant)) = transaction.get(key) else { return Ok(()) };
    match grant.uses {
        None => Ok(()),
        Some(0 | 1) => transaction.remove(key),
        Some(uses) => {
            let mut grant = grant.clone();
            grant.uses = Some(uses - 1);
            transaction.set(key, Document::Grant(grant))
        }
    }
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant")
            .field("id", &self.id)
            .field("tool", &self.tool)
            .field("scope", &self.scope)
            .field("verdict", &self.verdict)
            .field("uses", &self.uses)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}
