//! [`UnfinishedCall`]: a call that began and has not ended.

use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

use crate::call::{CallId, ToolInvocationRecord};
use crate::store::pages::Search;
use crate::store::{Document, DocumentKind, Finding, Query, RecordFilter, Store, StoreError, StoredDocument};

/// A call that began and has no final record yet: it is running, or its process has died.
///
/// ```
/// use tool_runtime::store::{MemoryStore, RecordFilter, Store};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let store: &dyn Store = &MemoryStore::new();
/// for call in store.unfinished_calls(&RecordFilter::default()).await?.into_iter().flatten() {
///     let state = if call.is_abandoned { "lost its process" } else { "runs" };
///     println!("{} of {} {state} since {}", call.tool, call.run_id, call.since);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UnfinishedCall {
    /// The id of the call.
    pub call_id: CallId,
    /// The tool.
    pub tool: Arc<str>,
    /// The id of the run.
    pub run_id: Arc<str>,
    /// The principal that the run acts for.
    pub principal: Option<Arc<str>>,
    /// The tenant of the run.
    pub tenant: Option<Arc<str>>,
    /// When the call arrived.
    pub since: Timestamp,
    /// The id of the attempt that owns the call. It begins with the id of the runner in the attempt's process. Empty if
    /// the call was left open, so that another process can continue it.
    pub owner: Arc<str>,
    /// When the attempt's lease ends, unless it is renewed.
    pub until: Timestamp,
    /// Whether the lease has ended. A worker, a restore or a sweep then continues or closes the call.
    pub is_abandoned: bool,
}

impl dyn Store + '_ {
    /// Returns the calls that began and have not ended, oldest first. All conditions of the filter apply, except
    /// `after`; the filter's times are compared with the arrival of the call. Suspended calls have not begun, so they
    /// are not included. Documents that cannot be read are errors at the end of the list; the limit does not count
    /// them.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tool_runtime::store::{MemoryStore, RecordFilter, Store};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    /// let open = store.unfinished_calls(&RecordFilter::run("run-1")).await?;
    /// assert!(open.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The store cannot be reached.
    pub async fn unfinished_calls(
        &self,
        filter: &RecordFilter,
    ) -> Result<Vec<Result<UnfinishedCall, Finding>>, StoreError> {
        let now = self.now().await?;
        // Only calls that have not ended have a due time.
        let query = Query { scope: filter.run_id.clone(), due: Some(Timestamp::MAX), ..Query::new(DocumentKind::Call) };
        let (mut search, mut broken) = (Search::of(query), Vec::new());
        let (most, mut found) = (filter.limit.unwrap_or(usize::MAX), Vec::new());
        'pages: while let Some(page) = search.next_reporting(self, |finding| broken.push(Err(finding))).await? {
            let open = page.into_iter().filter_map(|StoredDocument { document, .. }| match document {
                Document::Call(entry) => Some(entry),
                _ => None,
            });
            for entry in open {
                let Some(record) = entry.open_record().filter(|record| filter.matches_call(record)) else { continue };
                if found.len() >= most {
                    break 'pages;
                }
                found.push(Ok(UnfinishedCall {
                    call_id: record.tool_call_id.clone(),
                    tool: Arc::clone(&record.name),
                    run_id: Arc::clone(&record.run_id),
                    principal: record.principal.clone(),
                    tenant: record.tenant.clone(),
                    since: record.started_at,
                    owner: Arc::clone(&entry.owner),
                    until: entry.until,
                    is_abandoned: entry.until <= now,
                }));
            }
        }
        found.append(&mut broken);
        Ok(found)
    }

    /// Returns the records of the calls that ended as `outcome_unknown` and were not settled, oldest first. All
    /// conditions of the filter apply, except `after`; the filter's times are compared with the end of the call. Calls
    /// of tools that may be repeated, of graphs and of client tools are not included.
    /// [`RunQueue::settle`](crate::agent::RunQueue::settle) settles a call. Documents that cannot be read are errors at
    /// the end of the list; the limit does not count them.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tool_runtime::store::{MemoryStore, RecordFilter, Store};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    /// assert!(store.unsettled_calls(&RecordFilter::default()).await?.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The store cannot be reached.
    pub async fn unsettled_calls(
        &self,
        filter: &RecordFilter,
    ) -> Result<Vec<Result<ToolInvocationRecord, Finding>>, StoreError> {
        let mut search = Search::of(unsettled(self.now().await?));
        let (mut found, mut broken) = (Vec::new(), Vec::new());
        while let Some(page) = search.next_reporting(self, |finding| broken.push(Err(finding))).await? {
            for StoredDocument { document, .. } in page {
                let Document::Effect(effect) = document else { continue };
                let wanted = effect.unknown.into_iter().filter(|unknown| filter.matches_call(&unknown.record));
                found.extend(wanted.map(|unknown| (unknown.call.since, *unknown.record)));
            }
        }
        found.sort_by_key(|(since, _)| *since);
        found.truncate(filter.limit.unwrap_or(usize::MAX));
        Ok(found.into_iter().map(|(_, record)| Ok(record)).chain(broken).collect())
    }
}

/// Returns the query for effects with an unsettled outcome, at the store's time. It also lists effect keys whose result
/// has expired. Earlier versions wrote the start of the unknown outcome as the due time, and this query finds such
/// documents as well.
pub(crate) fn unsettled(now: Timestamp) -> Query {
    Query { due: Some(now), ..Query::new(DocumentKind::Effect) }
}
