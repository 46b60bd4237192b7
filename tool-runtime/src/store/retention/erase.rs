//! Erasure: removes the values of a principal from the records and documents of its runs, in place.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use crate::call::{DigestKey, Outcome, ToolInvocationRecord};
use crate::store::kept::{self, Erasure};
use crate::store::pages::Search;
use crate::store::retention::Retention;
use crate::store::retention::guards::{BATCH, Party, hold_keys, is_in_progress, party_of, refuse_held, subject_of};
use crate::store::retention::redacted::{self, Without, without};
use crate::store::retention::report::RetentionReport;
use crate::store::retention_record::{Act, RetentionRecord};
use crate::store::transact;
use crate::store::{
    Chain, Document, DocumentKind, Finding, Key, Query, RecordFilter, SealedRecord, StoreError, StoredDocument,
    Transaction, unsettled,
};

/// The maximum number of records that one transaction erases. It bounds the length of the transaction and of the record
/// of the erasure.
const PAGE: usize = 200;

/// The number of records that are read at a time to find the first record of a party.
const FIRST: usize = 8;

/// The data that the erasure of each run needs.
struct Task<'t> {
    party: &'t Party,
    key: DigestKey,
    /// Whether a document with unsettled outcomes cannot be read. Each unknown outcome is then treated as unsettled.
    outcomes_are_hidden: bool,
}

/// The open calls and unsettled outcomes of a party.
struct Open {
    is_any: bool,
    outcomes_are_hidden: bool,
}

impl Retention<'_> {
    /// Erases the data of a principal of a tenant, in place. In the records of the principal's runs, it erases the
    /// arguments, results, messages and roles, and the names and reasons of deciders. It also erases the calls of these
    /// runs in the ledger, their conversations and messages, the principal's grants and notices, and the results that
    /// effect keys keep. After that, nothing begins or is recorded in these runs ([`StoreError::RunPurged`]). A run of
    /// an MCP server ends, too.
    ///
    /// The ids of runs and calls, the tools, outcomes, times and tenants, and rules that name no caller stay. Decisions
    /// of the principal on calls of others stay, too. The chains still verify: the hash of an erased record matches its
    /// remaining members, and a signed record of the run lists it. Records that an earlier version sealed in one part
    /// stay. The report names their runs as `not_erasable`, and only a [purge](Self::purge) removes them.
    ///
    /// If other principals use a run with the same id, the run stays open for them, with its calls in the ledger,
    /// unless the stored conversation of the run belongs to the erased principal. Nothing is erased while a call of the
    /// principal is open or waits, an outcome is unsettled, or one of the principal's runs is in progress: a process
    /// has it, or it is due now or later, has unreceived messages or was held back. The report names these runs, and
    /// the runs of calls that began meanwhile, as kept. Each page of records is one transaction. The next erasure
    /// continues an interrupted one.
    ///
    /// A record or a document that cannot be read stays, because its principal cannot be read either. The report names
    /// its run as `broken`. All other data is erased. Restore the unreadable document from a backup, and erase again
    /// until the report names no kept run.
    ///
    /// # Errors
    /// [`StoreError::OnHold`] if a [legal hold](crate::store::LegalHold) covers the principal or the tenant. A run with
    /// its own hold is kept and reported. The decider has no readable name, or the store cannot be reached.
    pub async fn erase(&self, principal: &str, tenant: Option<&str>) -> Result<RetentionReport, StoreError> {
        self.named()?;
        let party: Party = (Some(principal.into()), tenant.map(Arc::from));
        let holds = hold_keys(None, [&party]);
        let named = holds.clone();
        self.store.update(holds, Box::new(move |transaction| refuse_held(transaction, &named))).await?;
        let mut report = RetentionReport::default();
        let open = self.keep_open(&mut report, &party).await?;
        if open.is_any {
            return Ok(report);
        }
        let task = Task { party: &party, key: self.key().await?, outcomes_are_hidden: open.outcomes_are_hidden };
        let mut filter = RecordFilter {
            principal: party.0.clone(),
            tenant: party.1.clone(),
            limit: Some(PAGE),
            ..RecordFilter::default()
        };
        while let Some(page) = filter.next_page(self.store).await? {
            let mut runs = BTreeMap::new();
            for read in page {
                match read {
                    Ok(sealed) if is_record_of(&sealed, &party) => {
                        runs.entry(Arc::clone(sealed.record.run_id())).or_insert(sealed.position);
                    }
                    Ok(_) => {}
                    // The columns of the record name the principal, but its values cannot be removed.
                    Err(finding) => report.keep_broken(&finding),
                }
            }
            for (run_id, position) in runs {
                // Each run is handled once, at the first record of the party. In a run that is kept, this record stays.
                if self.first_of(&run_id, &party).await? == Some(position) {
                    self.erase_into(&mut report, &run_id, &task).await?;
                }
            }
        }
        let mut search = Search::of(Query { limit: BATCH, ..Query::new(DocumentKind::Run) });
        while let Some(page) = search.next_reporting(self.store, |found| report.keep_broken(&found)).await? {
            let runs = page.iter().filter_map(|listed| listed.as_run());
            for run in runs.filter(|run| party_of(run) == party) {
                // A run with such a record was handled above.
                if self.first_of(&run.run_id, &party).await?.is_some() {
                    continue;
                }
                if run.is_name() {
                    self.erase_name(&mut report, &run.run_id, &party).await?;
                } else {
                    self.erase_into(&mut report, &run.run_id, &task).await?;
                }
            }
        }
        for kind in [DocumentKind::Call, DocumentKind::Grant, DocumentKind::Effect, DocumentKind::Notice] {
            self.erase_documents(&mut report, Query::new(kind), &party).await?;
        }
        // Also report runs that began meanwhile, and calls in runs that other parties use.
        self.keep_open(&mut report, &party).await?;
        Ok(report)
    }

    /// Returns the position of the first record of a party in a run, without erased records.
    async fn first_of(&self, run_id: &Arc<str>, party: &Party) -> Result<Option<u64>, StoreError> {
        let (principal, tenant) = party.clone();
        let mut filter =
            RecordFilter { principal, tenant, limit: Some(FIRST), ..RecordFilter::run(Arc::clone(run_id)) };
        while let Some(page) = filter.next_page(self.store).await? {
            if let Some(sealed) = page.into_iter().flatten().find(|sealed| is_record_of(sealed, party)) {
                return Ok(Some(sealed.position));
            }
        }
        Ok(None)
    }

    /// Reports as kept the runs of a party that are in progress or have unsettled outcomes, and the runs of documents
    /// that cannot be read.
    async fn keep_open(&self, report: &mut RetentionReport, party: &Party) -> Result<Open, StoreError> {
        let now = self.store.now().await?;
        let (mut found, mut outcomes_are_hidden) = (BTreeSet::new(), false);
        for kind in [DocumentKind::Call, DocumentKind::Waiting, DocumentKind::Effect] {
            // Open calls and unsettled outcomes have a due time.
            let mut search = Search::of(match kind {
                DocumentKind::Effect => unsettled(now),
                kind => Query { due: Some(Timestamp::MAX), ..Query::new(kind) },
            });
            let mut broken = |finding: Finding| {
                report.keep_broken(&finding);
                outcomes_are_hidden |= kind == DocumentKind::Effect;
            };
            while let Some(page) = search.next_reporting(self.store, &mut broken).await? {
                let open = page.iter().flat_map(|listed| open_in(&listed.document));
                let own = open.filter(|(record, _)| redacted::is_of(record, party));
                found.extend(own.map(|(record, why)| (Arc::clone(&record.run_id), why)));
            }
        }
        let mut search = Search::of(Query { limit: BATCH, ..Query::new(DocumentKind::Run) });
        while let Some(page) = search.next_reporting(self.store, |finding| report.keep_broken(&finding)).await? {
            let runs = page.iter().filter_map(|listed| listed.as_run());
            let open = runs.filter(|run| party_of(run) == *party && is_in_progress(run, now));
            found.extend(open.map(|run| (Arc::clone(&run.run_id), "in_progress")));
        }
        found.iter().for_each(|(run_id, why)| report.keep(run_id, why));
        Ok(Open { is_any: !found.is_empty(), outcomes_are_hidden })
    }

    /// Removes the document by which a server recognizes a repeated call of a client. The document is not a run, so no
    /// mark replaces it.
    async fn erase_name(
        &self,
        report: &mut RetentionReport,
        run_id: &Arc<str>,
        party: &Party,
    ) -> Result<(), StoreError> {
        let (place, of) = (Key::run_head(Arc::clone(run_id)), party.clone());
        let removed =
            self.change(Some(run_id), party, vec![place.clone()], move |transaction| match transaction.get(&place) {
                Some(Document::Run(run)) if party_of(run) == of => transaction.remove(&place).map(|()| true),
                _ => Ok(false),
            });
        match removed.await {
            Ok(is_removed) => report.documents += u64::from(is_removed),
            Err(StoreError::OnHold) => report.keep(run_id, "legal_hold"),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    async fn erase_into(
        &self,
        report: &mut RetentionReport,
        run_id: &Arc<str>,
        task: &Task<'_>,
    ) -> Result<(), StoreError> {
        match self.erase_run(run_id, task).await {
            Ok((records, kept)) => {
                report.runs += u64::from(records > 0 || kept.is_none());
                report.records += records;
                kept.into_iter().for_each(|why| report.keep(run_id, why));
            }
            Err(StoreError::OnHold) => report.keep(run_id, "legal_hold"),
            // An unreadable document prevents only the erasure of its own run.
            Err(StoreError::Corrupt(_)) => report.keep(run_id, "broken"),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Erases the data of a run. Returns how many records were erased, and the reason if the run is kept.
    async fn erase_run(&self, run_id: &Arc<str>, task: &Task<'_>) -> Result<(u64, Option<&'static str>), StoreError> {
        let party = task.party;
        // Check for a hold before the run is read.
        self.change(Some(run_id), party, Vec::new(), |_| Ok(())).await?;
        if task.outcomes_are_hidden && self.has_unknown(run_id, party).await? {
            return Ok((0, Some("broken")));
        }
        // First close the run, so that nothing begins in it. Then erase its data.
        let is_alone = self.is_alone(run_id, party).await?;
        let (place, of) = (Key::run_head(Arc::clone(run_id)), party.clone());
        let closed = self.change(Some(run_id), party, vec![place.clone()], move |transaction| {
            let now = transaction.now();
            match transaction.get(&place) {
                Some(Document::Run(run)) if party_of(run) == of => {
                    if is_in_progress(run, now) {
                        return Ok(false);
                    }
                }
                None if is_alone => {}
                // The run of another party under the same id, or a run that is closed already.
                _ => return Ok(true),
            }
            transaction.set(&place, Document::Purged { at: now })?;
            // The calls of the run are removed from the ledger, because their ids are digests of values. Its messages
            // are removed, because no worker takes them. A call that has begun since the check of the party prevents
            // the erasure.
            transaction.close(Arc::clone(place.scope()), None)?;
            Ok(true)
        });
        match closed.await {
            Ok(true) => {}
            Ok(false) | Err(StoreError::Fenced) => return Ok((0, Some("in_progress"))),
            Err(error) => return Err(error),
        }
        let (mut erased, mut kept) = (0, None);
        let mut filter = RecordFilter { limit: Some(PAGE), ..RecordFilter::run(Arc::clone(run_id)) };
        while let Some(page) = filter.next_page(self.store).await? {
            // If a record was changed, its erasure would hide the change.
            let records = page.into_iter().collect::<Result<Vec<_>, _>>();
            let Some(records) = records.ok().filter(|records| Chain::verify(records).is_ok()) else {
                return Ok((erased, Some("broken")));
            };
            let (count, is_whole) = self.erase_records(run_id, task, &records).await?;
            erased += count;
            if !is_whole {
                kept = Some("not_erasable");
            }
        }
        Ok((erased, kept))
    }

    /// Whether a call of a party in the run ended with an unknown outcome.
    async fn has_unknown(&self, run_id: &Arc<str>, party: &Party) -> Result<bool, StoreError> {
        let ((principal, tenant), code) = (party.clone(), Some(Outcome::OutcomeUnknown.code().into()));
        let limit = Some(1);
        let mut filter = RecordFilter { code, principal, tenant, limit, ..RecordFilter::run(Arc::clone(run_id)) };
        Ok(filter.next_page(self.store).await?.is_some())
    }

    /// Whether all records of a run belong to one party, so that no other party uses the run.
    async fn is_alone(&self, run_id: &Arc<str>, party: &Party) -> Result<bool, StoreError> {
        let mut filter = RecordFilter { limit: Some(PAGE), ..RecordFilter::run(Arc::clone(run_id)) };
        while let Some(page) = filter.next_page(self.store).await? {
            for sealed in page.into_iter().flatten() {
                let is_other = !sealed.record.is_erased() && sealed.record.as_retention().is_none();
                if is_other && !is_record_of(&sealed, party) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Erases the records of a page, in one transaction with the record of the erasure. Returns how many were erased,
    /// and whether all records of the party in the page can be erased.
    async fn erase_records(
        &self,
        run_id: &Arc<str>,
        task: &Task<'_>,
        records: &[SealedRecord],
    ) -> Result<(u64, bool), StoreError> {
        let (mut changes, mut is_whole) = (Vec::new(), true);
        for sealed in records.iter().filter(|sealed| is_record_of(sealed, task.party)) {
            match kept::erased(&sealed.record).map_err(|error| StoreError::Corrupt(Box::new(error)))? {
                Erasure::To(record) => changes.push(SealedRecord { record, ..sealed.clone() }),
                Erasure::Impossible => is_whole = false,
                Erasure::Nothing => {}
            }
        }
        let count = changes.len() as u64;
        if count == 0 {
            return Ok((0, is_whole));
        }
        let list: Vec<_> = changes.iter().map(|sealed| sealed.sequence).collect();
        let (run, by, key) = (Arc::clone(run_id), self.by.clone(), task.key.clone());
        let keys = vec![Key::run(Arc::clone(run_id))];
        self.change(Some(run_id), task.party, keys, move |transaction| {
            changes.iter().cloned().try_for_each(|change| transaction.erase(change))?;
            let (now, act) = (transaction.now(), Act::Erased(list.clone()));
            transaction.append(RetentionRecord::signed(Arc::clone(&run), &by, now, act, &key)?)
        })
        .await?;
        Ok((count, is_whole))
    }

    /// Erases the data of a party in the documents that a query lists.
    async fn erase_documents(
        &self,
        report: &mut RetentionReport,
        query: Query,
        party: &Party,
    ) -> Result<(), StoreError> {
        let mut search = Search::of(Query { limit: BATCH, ..query });
        while let Some(page) = search.next_reporting(self.store, |found| report.keep_broken(&found)).await? {
            for StoredDocument { key, document, .. } in page {
                if without(&document, party).is_none() {
                    continue;
                }
                let run_id = subject_of(&document).map(|(run_id, _)| run_id);
                let (place, of) = (key.clone(), party.clone());
                let erase = move |transaction: &mut Transaction| {
                    let Some(kept) = transaction.get(&place).and_then(|found| without(found, &of)) else {
                        return Ok(false);
                    };
                    match kept {
                        Without::Changed(document) => transaction.set(&place, document)?,
                        Without::Nothing => transaction.remove(&place)?,
                    }
                    Ok(true)
                };
                match self.change(run_id.as_ref(), party, vec![key], erase).await {
                    Ok(is_changed) => report.documents += u64::from(is_changed),
                    Err(StoreError::OnHold) => {
                        run_id.iter().for_each(|run_id| report.keep(run_id, "legal_hold"));
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Runs a change, unless a legal hold covers the run or the party.
    async fn change<T: Send + 'static>(
        &self,
        run_id: Option<&Arc<str>>,
        party: &Party,
        keys: Vec<Key>,
        mut change: impl FnMut(&mut Transaction) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let holds = hold_keys(run_id, [party]);
        let keys = keys.into_iter().chain(holds.iter().cloned()).collect();
        let change = move |transaction: &mut Transaction| {
            refuse_held(transaction, &holds)?;
            change(transaction)
        };
        transact(self.store, keys, change).await
    }
}

/// Returns the calls of a document that are open, waiting or unsettled, each with the reason why its run is kept.
fn open_in(document: &Document) -> Vec<(&ToolInvocationRecord, &'static str)> {
    match document {
        Document::Call(entry) => entry.open_record().into_iter().map(|record| (record, "in_progress")).collect(),
        Document::Waiting(waiting) => vec![(&waiting.record, "in_progress")],
        Document::Effect(effect) => effect.unknown.iter().map(|unknown| (&*unknown.record, "unsettled")).collect(),
        _ => Vec::new(),
    }
}

fn is_record_of(sealed: &SealedRecord, (principal, tenant): &Party) -> bool {
    !sealed.record.is_erased()
        && sealed.record.as_retention().is_none()
        && (sealed.record.principal(), sealed.record.tenant()) == (principal.as_ref(), tenant.as_ref())
}
