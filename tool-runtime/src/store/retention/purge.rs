//! Purges: removes whole runs whose records are all old enough, each in one transaction.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::call::{DigestKey, Outcome};
use crate::store::ledger::after;
use crate::store::pages::Search;
use crate::store::retention::guards::{
    BATCH, Party, before, hold_keys, is_held, is_in_progress, party_of, refuse_held,
};
use crate::store::retention::report::RetentionReport;
use crate::store::retention::{Retention, redacted};
use crate::store::retention_record::{Act, RetentionRecord};
use crate::store::transact;
use crate::store::transaction::RETENTION_RUN;
use crate::store::verify::{Trust, Verifier};
use crate::store::{
    Chain, Document, DocumentKind, EffectHolder, Finding, Key, Query, RecordFilter, Store, StoreError, StoredRun,
    Transaction,
};

/// How many records are read at a time.
const PAGE: usize = 500;

/// The maximum number of different principals and tenants in the records of a purged run. A run has one of each, unless
/// several callers chose the same id.
const MOST_PARTIES: usize = 64;

/// How far the clock of a process may be behind that of the store.
const LAG: Duration = Duration::from_secs(60 * 60);

/// The reason why a run is kept.
enum Kept {
    /// The run is not old enough, was purged before or does not exist.
    Recent,
    /// A reason that the report names.
    Because(&'static str),
}

/// The parameters and reads that the purges of all runs share.
struct Purge {
    kept_for: Duration,
    key: DigestKey,
    /// Read for the first run with an unknown outcome, and again for a run whose records are newer than the previous
    /// read.
    unsettled: Option<Unsettled>,
}

/// The unsettled outcomes of a store.
struct Unsettled {
    /// When they were read.
    at: Timestamp,
    runs: BTreeSet<Arc<str>>,
    /// The first document that cannot be read.
    broken: Option<Finding>,
}

impl Unsettled {
    async fn read(store: &dyn Store) -> Result<Self, StoreError> {
        let (at, mut runs, mut broken) = (store.now().await?, BTreeSet::new(), None);
        for read in store.unsettled_calls(&RecordFilter::default()).await? {
            match read {
                Ok(record) => drop(runs.insert(record.run_id)),
                Err(finding) => broken = broken.or(Some(finding)),
            }
        }
        Ok(Self { at, runs, broken })
    }
}

/// The records of a run.
struct Read {
    parties: BTreeSet<Party>,
    end: Chain,
    /// The place of the first record.
    first: u64,
    records: u64,
    newest: Option<Timestamp>,
    has_unknown: bool,
    /// Whether the only record is that of an earlier purge.
    is_purged: bool,
}

impl Retention<'_> {
    /// Removes the runs whose records are all older than `kept_for`, by the store's time: their records, their calls in
    /// the ledger, their conversation and their messages. The record of the removal stays. A mark stays, too, so that
    /// no call begins in a run with this id ([`StoreError::RunPurged`]). Effect keys stay, so that an effect of `once`
    /// does not happen again.
    ///
    /// A run is kept while one of its calls is open or waits, the outcome of a call is unsettled, a process has the
    /// run, the run is due now or later, has unreceived messages or was held back, its conversation was written within
    /// `kept_for`, its chain does not verify, its records belong to more than 64 principals or tenants, or a [legal
    /// hold](crate::store::LegalHold) covers it. The report names the kept runs that are old enough. A conversation
    /// without a time of its last write is treated as written at the first purge, other than a dry run, that finds it.
    ///
    /// If a document cannot be read, its run is kept, as `broken`. Each run is one transaction, and the runs are read a
    /// page at a time. Memory use is therefore bounded, and the next purge continues an interrupted one.
    ///
    /// # Errors
    /// The decider has no readable name. The store cannot be reached, or its documents cannot be read. Runs that were
    /// purged before the error stay purged.
    pub async fn purge(&self, kept_for: Duration) -> Result<RetentionReport, StoreError> {
        self.named()?;
        let mut purge = Purge { kept_for, key: self.key().await?, unsettled: None };
        let mut report = RetentionReport::default();
        if let Some(run_id) = &self.run {
            self.purge_into(&mut report, run_id, &mut purge).await?;
            return Ok(report);
        }
        let until = before(self.store.now().await?, kept_for);
        let mut filter = RecordFilter { until: Some(until), limit: Some(PAGE), ..RecordFilter::default() };
        while let Some(page) = filter.next_page(self.store).await? {
            // Each run is handled once, at its first record. A purged run no longer has this record.
            for read in page {
                match read {
                    Ok(sealed) if sealed.sequence == 0 => {
                        self.purge_into(&mut report, sealed.record.run_id(), &mut purge).await?;
                    }
                    Err(finding) if finding.record().is_some_and(|(_, sequence)| sequence == 0) => {
                        report.keep_broken(&finding);
                    }
                    Ok(_) | Err(_) => {}
                }
            }
        }
        // Runs without records are conversations in which no tool was called.
        let mut search = Search::of(Query { limit: BATCH, ..Query::new(DocumentKind::Run) });
        while let Some(page) = search.next_reporting(self.store, |found| report.keep_broken(&found)).await? {
            for run in page.iter().filter_map(|listed| listed.as_run()) {
                let filter = RecordFilter { limit: Some(1), ..RecordFilter::run(Arc::clone(&run.run_id)) };
                if filter.clone().next_page(self.store).await?.is_none() {
                    self.purge_into(&mut report, &run.run_id, &mut purge).await?;
                }
            }
        }
        if self.results {
            self.purge_results(&mut report, until).await?;
        }
        Ok(report)
    }

    async fn purge_into(
        &self,
        report: &mut RetentionReport,
        run_id: &Arc<str>,
        purge: &mut Purge,
    ) -> Result<(), StoreError> {
        if **run_id == *RETENTION_RUN {
            return Ok(());
        }
        match self.purge_run(run_id, purge).await {
            Ok(Ok(records)) => {
                report.runs += 1;
                report.records += records;
            }
            Ok(Err(Kept::Recent)) => {}
            Ok(Err(Kept::Because(why))) => report.keep(run_id, why),
            // An unreadable document prevents only the removal of its own run.
            Err(StoreError::Corrupt(_)) => report.keep(run_id, "broken"),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Purges a run. Returns how many records it had, or the reason why it is kept.
    async fn purge_run(&self, run_id: &Arc<str>, purge: &mut Purge) -> Result<Result<u64, Kept>, StoreError> {
        let (kept_for, key) = (purge.kept_for, purge.key.clone());
        let now = self.store.now().await?;
        let until = before(now, kept_for);
        // The cheap checks come first, because a run can have a million records.
        let mut young = RecordFilter { since: Some(until), limit: Some(1), ..RecordFilter::run(Arc::clone(run_id)) };
        if young.next_page(self.store).await?.is_some_and(|page| page.iter().any(Result::is_ok)) {
            return Ok(Err(Kept::Recent));
        }
        let stored = self.store.read(&[Key::run(Arc::clone(run_id))]).await?.pop().flatten();
        let run = stored.as_ref().and_then(|stored| stored.as_run());
        if run.is_some_and(|run| is_in_progress(run, now)) || self.has_open_calls(run_id).await? {
            return Ok(Err(Kept::Because("in_progress")));
        }
        let party_of_run = run.map(party_of);
        let holds = self.store.read(&hold_keys(Some(run_id), &party_of_run)).await?;
        if holds.iter().flatten().any(|held| is_held(Some(&held.document))) {
            return Ok(Err(Kept::Because("legal_hold")));
        }
        let Some(read) = self.read_run(run_id, &key).await? else { return Ok(Err(Kept::Because("broken"))) };
        if read.is_purged || read.newest.is_some_and(|newest| newest >= until) {
            return Ok(Err(Kept::Recent));
        }
        if read.parties.len() > MOST_PARTIES {
            return Ok(Err(Kept::Because("many_parties")));
        }
        if read.has_unknown {
            let unsettled = match &mut purge.unsettled {
                // The clock of the process that wrote the record may be behind the store's.
                Some(unsettled) if read.newest.is_none_or(|newest| after(newest, LAG) < unsettled.at) => unsettled,
                stale => stale.insert(Unsettled::read(self.store).await?),
            };
            if unsettled.runs.contains(run_id) {
                return Ok(Err(Kept::Because("unsettled")));
            }
            // A document that cannot be read may contain the outcome.
            if let Some(finding) = &unsettled.broken {
                return Err(finding.clone().into());
            }
        }
        let mut parties = read.parties.clone();
        parties.extend(party_of_run);
        let holds = hold_keys(Some(run_id), &parties);
        let keys = holds.iter().cloned().chain([Key::run(Arc::clone(run_id))]).collect();
        let (run_id, by, dry_run) = (Arc::clone(run_id), self.by.clone(), self.dry_run);
        let change = move |transaction: &mut Transaction| {
            refuse_held(transaction, &holds)?;
            if let Some(why) = keeps(transaction, &run_id, kept_for, &parties, dry_run)? {
                return Ok(Err(why));
            }
            let place = Key::run(Arc::clone(&run_id));
            if read.records == 0 {
                // A mark would refuse the repeated call of a client, or a run that begins under this id, forever.
                match transaction.get(&place) {
                    None => return Ok(Err(Kept::Recent)),
                    Some(Document::Run(run)) if run.is_name() => {
                        if !dry_run {
                            transaction.remove(&place)?;
                        }
                        return Ok(Err(Kept::Recent));
                    }
                    Some(_) => {}
                }
            }
            if dry_run {
                return Ok(Ok(read.records));
            }
            let now = transaction.now();
            let (end, head) = (read.end.next(), read.end.head());
            let act = Act::Purged { first: read.first, end, head, records: read.records };
            transaction.set(&place, Document::Purged { at: now })?;
            transaction.close(Arc::clone(&run_id), Some(read.end))?;
            transaction.append(RetentionRecord::signed(Arc::clone(&run_id), &by, now, act, &key)?)?;
            Ok(Ok(read.records))
        };
        match transact(self.store, keys, change).await {
            Err(StoreError::OnHold) => Ok(Err(Kept::Because("legal_hold"))),
            // A call arrived, or a record was added, after the records were read.
            Err(StoreError::Fenced) => Ok(Err(Kept::Because("in_progress"))),
            purged => purged,
        }
    }

    /// Reads and verifies the records of a run. `None` if its chain does not verify, because a removal would hide the
    /// defect.
    async fn read_run(&self, run_id: &Arc<str>, key: &DigestKey) -> Result<Option<Read>, StoreError> {
        let mut verifier = Verifier::trusting(false, Trust { key: Some(key.clone()), ..self.trust.clone() });
        let mut read = Read {
            parties: BTreeSet::new(),
            end: Chain::new(),
            first: 0,
            records: 0,
            newest: None,
            has_unknown: false,
            is_purged: false,
        };
        let mut filter = RecordFilter { limit: Some(PAGE), ..RecordFilter::run(Arc::clone(run_id)) };
        while let Some(page) = filter.next_page(self.store).await? {
            for sealed in page {
                let Ok(sealed) = sealed else { return Ok(None) };
                verifier.follow(&sealed);
                let record = &sealed.record;
                if read.records == 0 {
                    read.first = sealed.sequence;
                }
                let is_summary = record.as_retention().is_some_and(|record| record.purged().is_some());
                read.is_purged = read.records == 0 && is_summary;
                read.records += 1;
                read.newest = read.newest.max(Some(record.at()));
                read.has_unknown |= record.as_call().is_some_and(|call| call.outcome == Outcome::OutcomeUnknown);
                read.end = Chain::after(sealed.sequence, sealed.hash);
                if read.parties.len() <= MOST_PARTIES {
                    read.parties.insert((record.principal().cloned(), record.tenant().cloned()));
                }
            }
        }
        Ok(verifier.finish().findings.is_empty().then_some(read))
    }

    /// Whether a call of the run waits, or has begun and not ended.
    async fn has_open_calls(&self, run_id: &Arc<str>) -> Result<bool, StoreError> {
        let scope = Some(Arc::clone(run_id));
        let one = |kind| Query { scope: scope.clone(), due: Some(Timestamp::MAX), limit: 1, ..Query::new(kind) };
        for kind in [DocumentKind::Call, DocumentKind::Waiting] {
            if !self.store.list(&one(kind)).await?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Removes the results of effect keys whose calls ended before this time.
    async fn purge_results(&self, report: &mut RetentionReport, until: Timestamp) -> Result<(), StoreError> {
        let mut search = Search::of(Query { limit: BATCH, ..Query::new(DocumentKind::Effect) });
        while let Some(page) = search.next_reporting(self.store, |found| report.keep_broken(&found)).await? {
            for listed in page {
                let Document::Effect(effect) = listed.document else { continue };
                let Some(record) = effect.held.and_then(|held| held.record) else { continue };
                if record.ended_at.is_none_or(|ended| ended >= until) || redacted::has_no_result(&record) {
                    continue;
                }
                let party = (record.principal.clone(), record.tenant.clone());
                let holds = hold_keys(Some(&record.run_id), [&party]);
                let place = listed.key.clone();
                let keys = holds.iter().cloned().chain([place.clone()]).collect();
                let dry_run = self.dry_run;
                let change = move |transaction: &mut Transaction| {
                    refuse_held(transaction, &holds)?;
                    forget_result(transaction, &place, until, dry_run)
                };
                match transact(self.store, keys, change).await {
                    Ok(is_forgotten) => report.documents += u64::from(is_forgotten),
                    Err(StoreError::OnHold) => report.keep(&record.run_id, "legal_hold"),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }
}

/// Returns the reason to keep a run that its document gives. `None` if there is no reason.
fn keeps(
    transaction: &mut Transaction,
    run_id: &Arc<str>,
    kept_for: Duration,
    parties: &BTreeSet<Party>,
    dry_run: bool,
) -> Result<Option<Kept>, StoreError> {
    let (now, key) = (transaction.now(), Key::run(Arc::clone(run_id)));
    let Some(Document::Run(run)) = transaction.get(&key) else { return Ok(None) };
    // The holds of a party are locked only if the party was read before.
    if is_in_progress(run, now) || !parties.contains(&party_of(run)) {
        return Ok(Some(Kept::Because("in_progress")));
    }
    match run.changed {
        Some(changed) if changed < before(now, kept_for) => Ok(None),
        Some(_) => Ok(Some(Kept::Recent)),
        None if dry_run => Ok(Some(Kept::Recent)),
        None => {
            let run = StoredRun { changed: Some(now), ..(**run).clone() };
            transaction.set(&key, Document::Run(Box::new(run)))?;
            Ok(Some(Kept::Recent))
        }
    }
}

fn forget_result(
    transaction: &mut Transaction,
    place: &Key,
    until: Timestamp,
    dry_run: bool,
) -> Result<bool, StoreError> {
    let Some(Document::Effect(effect)) = transaction.get(place) else { return Ok(false) };
    let mut effect = effect.clone();
    let Some(EffectHolder { record: Some(record), .. }) = effect.held.as_deref_mut() else { return Ok(false) };
    if record.ended_at.is_none_or(|ended| ended >= until) || redacted::has_no_result(record) {
        return Ok(false);
    }
    **record = redacted::result(record);
    if !dry_run {
        transaction.set(place, Document::Effect(effect))?;
    }
    Ok(true)
}
