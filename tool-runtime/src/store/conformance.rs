//! The guarantees of a store, as test cases for any implementation: `testing::conformance`.

#![allow(clippy::expect_used, clippy::panic, reason = "a failed expectation describes itself")]

mod accounts;
mod anchors;
mod calls;
mod documents;
mod grants;
mod ledger;
mod notices;
mod queue;
mod records;
mod retention;
mod runs;
mod sizes;
mod sweeping;

#[cfg(test)]
pub(in crate::store) use ledger::{intent, key};

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use jiff::Timestamp;

use crate::call::{
    CallId, Caller, DigestKey, JsonText, LeftOut, Outcome, RecordedArguments, Suspension, ToolInvocationRecord,
};
use crate::store::transact;
use crate::store::{
    Document, FrozenArguments, Key, PendingCall, Query, Store, StoreError, StoredDocument, StoredRun, Transaction,
    Waiting,
};
use crate::tool::{Hash, ToolName};

/// Runs every case, each with a new store from `empty`, which must have no contents. A bounded store must hold at least
/// 10,000 documents.
///
/// ```
/// use std::sync::Arc;
/// use tool_runtime::store::{MemoryStore, Store};
/// use tool_runtime::testing::conformance;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(
/// conformance::check(|| async { Arc::new(MemoryStore::with_limits(10_000, 10_000)) as Arc<dyn Store> })
/// # );
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Panics
/// The store breaks a guarantee. The line after the panic's message names the guarantee.
pub async fn check<F: Future<Output = Arc<dyn Store>>>(empty: impl Fn() -> F) {
    for (name, case) in CASES {
        let named = Named(name);
        case(empty().await).await;
        std::mem::forget(named);
    }
}

/// Prints the name of the case if it is dropped during a panic.
struct Named(&'static str);

impl Drop for Named {
    #[expect(clippy::print_stderr, reason = "a test prints why it fails")]
    fn drop(&mut self) {
        eprintln!("the store breaks this guarantee: {}", self.0);
    }
}

type Case = fn(Arc<dyn Store>) -> Pin<Box<dyn Future<Output = ()> + Send>>;

macro_rules! cases {
    ($($file:ident: $($case:ident),+;)+) => {
        /// All cases with their names.
        pub(super) const CASES: &[(&str, Case)] =
            &[$($((stringify!($case), |store| Box::pin($file::$case(store)))),+),+];
    };
}

cases! {
    records: records_are_chained_by_run, records_are_read_in_pages, records_are_found_by_their_members,
        records_of_a_run_keep_their_order;
    documents: a_change_is_whole_or_nothing, a_change_touches_its_keys_only,
        changes_under_one_lock_follow_each_other, a_change_happens_although_its_handle_is_dropped,
        documents_are_listed_in_order, due_documents_are_listed, waiting_tasks_are_woken,
        the_time_is_that_of_transactions;
    calls: calls_that_wait_are_found, documents_read_as_they_were_written;
    runs: runs_are_kept, a_run_has_one_worker, posts_are_taken_once;
    queue: due_runs_are_listed_by_age, lanes_are_listed_in_pages, a_short_page_is_the_last, runs_are_counted,
        the_leased_runs_of_a_tenant_are_limited, a_run_keeps_its_version;
    grants: grants_are_kept, the_uses_of_a_grant_are_limited;
    accounts: accounts_are_kept, accounts_together_never_pass_a_limit;
    anchors: anchors_hold_new_records, anchors_are_made_by_several;
    ledger: a_call_begins_once, a_call_whose_owner_is_gone_is_taken_over, an_abandoned_call_is_closed_once;
    notices: notices_that_a_change_adds_are_kept, a_notice_has_one_sender_at_a_time;
    sweeping: expired_documents_are_swept, what_a_legal_hold_covers_is_not_swept;
    retention: a_purged_run_leaves_its_record, a_purge_whose_condition_fails_writes_nothing,
        an_erased_record_keeps_its_place, a_closed_run_takes_no_records, a_hold_and_a_purge_are_decided_in_order,
        a_worker_of_a_purged_run_writes_nothing;
    sizes: long_keys_are_told_apart, large_bodies_are_kept, many_documents_are_listed_in_pages;
}

fn raw(text: &str) -> JsonText {
    JsonText::known(text)
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).expect("a time of the year 2023")
}

impl ToolInvocationRecord {
    /// Returns the record of a call that ended, for tests of stores. Calls of one run differ only in their ids.
    ///
    /// # Panics
    /// Never, because its parts are valid.
    #[must_use]
    pub fn example(run: &str, call: &str) -> Self {
        Self {
            tool_call_id: CallId::new(call),
            name: "core__add".into(),
            definition_hash: Some(Hash([7; 32])),
            arguments: RecordedArguments::Masked(raw(r#"{"b":2,"a":18446744073709551615}"#)),
            changes: Vec::new(),
            result: Some(raw("[1.5,\"x\u{1f980}\\u0000\"]")),
            left_out: LeftOut::default(),
            media: Vec::new(),
            outcome: Outcome::Ok,
            cause: None,
            tool_code: None,
            safe_message: None,
            executed: true,
            started_at: at(0),
            ended_at: Some(at(1)),
            run_id: run.into(),
            session_id: None,
            conversation_id: None,
            principal: Some("ada".into()),
            roles: Vec::new(),
            attributes: Vec::new(),
            tenant: None,
            violations: Vec::new(),
            effect_key: None,
            caller: Caller::Direct,
            decision: None,
            validator: None,
            repair: None,
            intervention: None,
            void_grant: None,
            seal: None,
        }
    }
}

pub(crate) fn record(run: &str, call: &str) -> ToolInvocationRecord {
    ToolInvocationRecord::example(run, call)
}

impl StoredDocument {
    /// Returns a document of kind [`Run`](crate::store::DocumentKind::Run) with this text and due time, for tests of
    /// stores.
    #[must_use]
    pub fn example(run: &str, text: &str, due: Option<Timestamp>) -> Self {
        let run = StoredRun { due, ..StoredRun::new(run, text) };
        Self::new(Key::run(Arc::clone(&run.run_id)), Document::Run(Box::new(run)))
    }
}

pub(super) fn waiting(run: &str, call: &str, expires: i64) -> Waiting {
    let call = PendingCall {
        version: PendingCall::VERSION,
        call_id: CallId::new(call),
        tool: ToolName::parse("core__add").expect("a name"),
        definition_hash: Hash([7; 32]),
        arguments: FrozenArguments::new(r#"{"pin":"1234"}"#),
        argument_digest: Hash([8; 32]),
        record_digest: Some(DigestKey::new([8; 32]).digest(Hash([8; 32]))),
        shown_arguments: raw(r#"{"pin":"[sensitive]"}"#),
        summary: Some("Adds “2”.".to_owned()),
        names: Vec::new(),
        changes: Vec::new(),
        principal: Some("ada".into()),
        roles: Vec::new(),
        attributes: Vec::new(),
        tools: None,
        tenant: None,
        policy_revision: Hash([9; 32]),
        rule: Some("require_approval_for_effects".to_owned()),
        labels: vec!["untrusted".into()],
        gained: Vec::new(),
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
        graph: None,
        unknown: Vec::new(),
        required: 1,
        approvals: Vec::new(),
        replaced: None,
        world: None,
    };
    let open = record(run, call.call_id.as_str());
    let record = ToolInvocationRecord { ended_at: None, outcome: Outcome::ApprovalRequired, ..open };
    Waiting { call, record, idempotency_key: Some(Hash([7; 32])), notices: None }
}

fn run(id: &str, document: &str) -> Document {
    Document::Run(Box::new(StoredRun::new(id, document)))
}

fn text(document: Option<&Document>) -> Option<&str> {
    match document {
        Some(Document::Run(run)) => Some(&run.document),
        _ => None,
    }
}

async fn read(store: &dyn Store, key: &Key) -> Option<Document> {
    store.read(std::slice::from_ref(key)).await.expect("it reads").pop().flatten().map(|stored| stored.document)
}

/// Returns the documents of all pages. Only an empty page is the end.
async fn listed(store: &dyn Store, mut query: Query) -> Vec<StoredDocument> {
    let mut all = Vec::new();
    while let Some(page) = query.next_page(store).await.expect("it lists") {
        assert!(page.len() <= query.limit, "a page is no longer than its limit");
        all.extend(page);
    }
    all
}

async fn update(
    store: &dyn Store,
    keys: &[Key],
    change: impl FnMut(&mut Transaction) -> Result<(), StoreError> + Send + 'static,
) -> Result<(), StoreError> {
    store.update(keys.to_vec(), Box::new(change)).await
}

/// Runs a change and returns its value.
async fn ask<T: Send + 'static>(
    store: &dyn Store,
    keys: impl Into<Vec<Key>>,
    change: impl FnMut(&mut Transaction) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    transact(store, keys.into(), change).await
}

/// Runs one operation in several tasks, and returns the value of each task.
async fn several<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    store: &Arc<dyn Store>,
    tasks: usize,
    work: impl Fn(Arc<dyn Store>, usize) -> F,
) -> Vec<T> {
    let tasks: Vec<_> = (0..tasks).map(|task| tokio::spawn(work(Arc::clone(store), task))).collect();
    let mut returned = Vec::new();
    for task in tasks {
        returned.push(task.await.expect("no task fails"));
    }
    returned
}
