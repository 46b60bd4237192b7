//! [`Retention`]: removes old runs, places legal holds, and erases the data of a principal.
//!
//! Every removal leaves a signed record in the chain that it shortens, so that
//! [`Verification`](crate::store::Verification) accepts it. Each removal is one transaction for one run, or for one
//! page of its records. The next attempt continues an interrupted removal.

mod erase;
pub(in crate::store) mod guards;
mod purge;
mod redacted;
mod report;

use std::sync::Arc;

use crate::call::{Decider, DigestKey};
use crate::store::retention_record::{Act, RetentionRecord};
use crate::store::transaction::RETENTION_RUN;
use crate::store::verify::Trust;
use crate::store::{
    Document, DocumentKind, HoldScope, Key, LegalHold, Query, Store, StoreError, Transaction, digest_key, transact,
};

pub use report::RetentionReport;

/// The maximum number of legal holds on one subject.
const MOST_HOLDS: usize = 64;

/// Removes old runs from a store, places and lifts legal holds, and erases the data of a principal. A person is
/// responsible for each act.
///
/// No policy is checked, so pass only a person whom the application has authenticated and permits to act. Each act
/// leaves a record with the person, the reason and the store's time. The records are signed with
/// [`digest_key`](Self::digest_key), or else with the store's key for digests ([`Key::digest_key`]), which is created
/// if the store has none.
///
/// ```
/// use std::time::Duration;
/// use tool_runtime::ToolInvocationRecord;
/// use tool_runtime::call::Decider;
/// use tool_runtime::store::{MemoryStore, Retention, Store, Verification};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let store = MemoryStore::new();
/// store.append(ToolInvocationRecord::example("run-1", "call_1").into()).await?;
/// let retention = Retention::new(&store, Decider::new("grace").because("Our records are kept for 90 days."));
///
/// let hold = retention.hold_run("run-1").await?;
/// assert_eq!(hold.run_id().map(|id| &**id), Some("run-1"));
/// let kept_for = Duration::from_secs(90 * 86_400);
/// let report = retention.purge(kept_for).await?;
/// assert_eq!((report.runs, report.kept[0].1), (0, "legal_hold"));
///
/// retention.lift(&hold.id).await?;
/// let report = retention.purge(kept_for).await?;
/// assert_eq!((report.runs, report.records), (1, 1));
/// let verified = Verification::of_store(&store, &[], |_| ()).await?;
/// assert_eq!((verified.purged, verified.findings.len()), (1, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct Retention<'s> {
    store: &'s dyn Store,
    by: Decider,
    dry_run: bool,
    results: bool,
    run: Option<Arc<str>>,
    trust: Trust,
}

impl std::fmt::Debug for Retention<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Retention").field("by", &self.by).field("dry_run", &self.dry_run).finish_non_exhaustive()
    }
}

impl<'s> Retention<'s> {
    /// Creates a value whose methods act for a person on a store. The reason of the decider ([`Decider::because`]) is
    /// in the records.
    pub fn new(store: &'s dyn Store, by: Decider) -> Self {
        Self { store, by, dry_run: false, results: false, run: None, trust: Trust::default() }
    }

    /// Sets whether [`purge`](Self::purge) only reports the runs that it would remove, and writes nothing.
    pub fn dry_run(self, dry_run: bool) -> Self {
        Self { dry_run, ..self }
    }

    /// Sets whether [`purge`](Self::purge) also removes the results that are stored under effect keys (the key `once`
    /// of `#[tool]`). The keys stay, so the effect does not happen again. A later call with the key does not run, and
    /// its message states that the result was deleted.
    pub fn results(self, results: bool) -> Self {
        Self { results, ..self }
    }

    /// Restricts [`purge`](Self::purge) to one run. [`results`](Self::results) then has no effect, because an effect
    /// key does not belong to a run.
    pub fn run(self, run_id: impl Into<Arc<str>>) -> Self {
        Self { run: Some(run_id.into()), ..self }
    }

    /// Signs the records with this key instead of the store's own. Pass the key of
    /// [`RunnerBuilder::digest_key`](crate::runner::RunnerBuilder::digest_key), which readers of the database do not
    /// have.
    pub fn digest_key(mut self, key: DigestKey) -> Self {
        self.trust.key = Some(key);
        self
    }

    /// Accepts earlier erasures that were signed with rotated keys, by the ids of these keys. Otherwise, a run with
    /// such an erasure is kept as `broken`. See [`Verification::accept_keys`](crate::store::Verification::accept_keys).
    pub fn accept_keys(mut self, ids: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.trust.accepted.extend(ids.into_iter().map(Into::into));
        self
    }

    /// Places a legal hold on a run. Until the hold is lifted, a purge or an erasure of its data is refused. Several
    /// holds on the same data are independent of each other.
    ///
    /// # Errors
    /// [`StoreError::Full`] if the subject already has 64 holds. An id is empty, the decider has no readable name, or
    /// the store cannot be reached.
    pub async fn hold_run(&self, run_id: impl Into<Arc<str>>) -> Result<LegalHold, StoreError> {
        self.hold(HoldScope::Run(run_id.into())).await
    }

    /// Like [`hold_run`](Self::hold_run), for the runs that act for a principal. If `tenant` is `None`, the hold covers
    /// the principal's runs in every tenant and without a tenant.
    ///
    /// An erased run no longer has a principal, so a hold that is placed later does not cover its remaining data. Place
    /// a hold on the run or the tenant instead.
    ///
    /// # Errors
    /// The errors of [`hold_run`](Self::hold_run).
    pub async fn hold_principal(
        &self,
        principal: impl Into<Arc<str>>,
        tenant: Option<&str>,
    ) -> Result<LegalHold, StoreError> {
        self.hold(HoldScope::Principal { principal: principal.into(), tenant: tenant.map(Into::into) }).await
    }

    /// Like [`hold_run`](Self::hold_run), for the runs of a tenant.
    ///
    /// # Errors
    /// The errors of [`hold_run`](Self::hold_run).
    pub async fn hold_tenant(&self, tenant: impl Into<Arc<str>>) -> Result<LegalHold, StoreError> {
        self.hold(HoldScope::Tenant(tenant.into())).await
    }

    pub(in crate::store) async fn hold(&self, scope: HoldScope) -> Result<LegalHold, StoreError> {
        self.named()?;
        if scope.is_empty() {
            let problem = "an id of the legal hold is empty: name a run, a principal or a tenant".to_owned();
            return Err(StoreError::Misconfigured { problem, source: None });
        }
        let key = self.key().await?;
        let (id, by): (Arc<str>, _) = (uuid::Uuid::new_v4().simple().to_string().into(), self.by.clone());
        let place = Key::hold(&scope);
        let keys = vec![place.clone(), Key::run(RETENTION_RUN)];
        let change = move |transaction: &mut Transaction| {
            let hold =
                LegalHold { id: Arc::clone(&id), scope: scope.clone(), by: by.clone(), since: transaction.now() };
            let mut holds = stored(transaction.get(&place));
            // The store runs the change again if the answer to the first attempt was lost.
            if holds.iter().all(|other| other.id != id) {
                if holds.len() >= MOST_HOLDS {
                    return Err(StoreError::Full);
                }
                holds.push(hold.clone());
                transaction.set(&place, Document::Holds(holds))?;
                let act = Act::Held(hold.clone());
                transaction.append(RetentionRecord::signed(RETENTION_RUN, &by, hold.since, act, &key)?)?;
            }
            Ok(hold)
        };
        transact(self.store, keys, change).await
    }

    /// Lifts a legal hold. Returns `false`, and writes no record, if there is no hold with this id.
    ///
    /// # Errors
    /// The decider has no readable name, or the store cannot be reached.
    pub async fn lift(&self, id: &str) -> Result<bool, StoreError> {
        self.named()?;
        let Some(hold) = self.holds().await?.into_iter().find(|hold| *hold.id == *id) else { return Ok(false) };
        let (key, by) = (self.key().await?, self.by.clone());
        let place = Key::hold(&hold.scope);
        let keys = vec![place.clone(), Key::run(RETENTION_RUN)];
        let change = move |transaction: &mut Transaction| {
            let mut holds = stored(transaction.get(&place));
            let Some(at) = holds.iter().position(|other| other.id == hold.id) else { return Ok(false) };
            let lifted = holds.remove(at);
            if holds.is_empty() {
                transaction.remove(&place)?;
            } else {
                transaction.set(&place, Document::Holds(holds))?;
            }
            let (now, act) = (transaction.now(), Act::Lifted(lifted));
            transaction.append(RetentionRecord::signed(RETENTION_RUN, &by, now, act, &key)?)?;
            Ok(true)
        };
        transact(self.store, keys, change).await
    }

    /// Returns all legal holds. Holds on the same subject are next to each other.
    ///
    /// # Errors
    /// The store cannot be reached, or its documents cannot be read.
    pub async fn holds(&self) -> Result<Vec<LegalHold>, StoreError> {
        let (mut query, mut found) = (Query::new(DocumentKind::Hold), Vec::new());
        while let Some(page) = query.next_page(self.store).await? {
            page.into_iter().for_each(|listed| found.extend(stored(Some(&listed.document))));
        }
        Ok(found)
    }

    /// Returns an error if the name of the decider would be unreadable in a record.
    fn named(&self) -> Result<(), StoreError> {
        if self.by.is_named() {
            return Ok(());
        }
        let problem = "the records name the person who acts: give the decider a readable name".to_owned();
        Err(StoreError::Misconfigured { problem, source: None })
    }

    /// Returns the key that signs the records.
    async fn key(&self) -> Result<DigestKey, StoreError> {
        if let Some(key) = &self.trust.key {
            return Ok(key.clone());
        }
        if self.dry_run {
            // A dry run signs nothing, and creates no key.
            return Ok(digest_key::find(self.store).await?.unwrap_or_else(DigestKey::generate));
        }
        digest_key::find_or_create(self.store).await
    }
}

fn stored(document: Option<&Document>) -> Vec<LegalHold> {
    if let Some(Document::Holds(holds)) = document { holds.clone() } else { Vec::new() }
}
