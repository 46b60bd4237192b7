//! Waiting calls whose store cannot be read, and calls that ask one question after another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::json;
use tool_runtime::agent::CodeMode;
use tool_runtime::call::DecisionError;
use tool_runtime::mcp::serve::McpServer;
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::{
    AuditRecord, ChangeFn, DecisionRecord, Key, MemoryStore, Query, RecordFilter, SealedRecord, Store, StoreError,
    StoredDocument, WriteHandle,
};
use tool_runtime::{ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};

use crate::serve::held::{NOBODY, builder, letter, one_waiting, piped, post, recorded, send, sent, waiting, waits};
use crate::serve::rig::{admitted, request, text};

/// A store in which one run cannot be read for a while.
pub(crate) struct Unread {
    store: Arc<MemoryStore>,
    run: Arc<str>,
    is_down: Arc<AtomicBool>,
}

impl Unread {
    pub(crate) fn new(store: &Arc<MemoryStore>, run: &Arc<str>) -> Self {
        Self { store: Arc::clone(store), run: Arc::clone(run), is_down: Arc::new(AtomicBool::new(true)) }
    }
}

#[async_trait]
impl Store for Unread {
    fn append(&self, record: AuditRecord) -> WriteHandle {
        self.store.append(record)
    }

    fn update(&self, keys: Vec<Key>, change: ChangeFn) -> WriteHandle {
        self.store.update(keys, change)
    }

    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<StoredDocument>>, StoreError> {
        self.store.read(keys).await
    }

    async fn list(&self, query: &Query) -> Result<Vec<StoredDocument>, StoreError> {
        if self.is_down.load(Ordering::Acquire) && query.scope.as_ref() == Some(&self.run) {
            return Err(StoreError::Unavailable("one read fails".into()));
        }
        self.store.list(query).await
    }

    async fn records(&self, filter: &RecordFilter) -> Result<Vec<SealedRecord>, StoreError> {
        self.store.records(filter).await
    }

    async fn flush(&self) -> Result<(), StoreError> {
        self.store.flush().await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.store.now().await
    }

    async fn changed(&self) {
        self.store.changed().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_cannot_be_read_is_not_forgotten() {
    let store = Arc::<MemoryStore>::default();
    let first = builder(Arc::clone(&store), "").build().unwrap();
    waits(&letter(&piped(&first, NOBODY).await, "unread").await.unwrap());
    first.close(Duration::ZERO).await;
    let call = one_waiting(&*store).await;
    post(&store, &call, ApprovalDecision::Approve).await;
    let is_down = Arc::new(AtomicBool::new(true));
    let unread = Unread { store: Arc::clone(&store), run: Arc::clone(&call.run_id), is_down: Arc::clone(&is_down) };
    let second = builder(unread, "").build().unwrap();
    let client = piped(&second, NOBODY).await;
    letter(&client, "unread").await.expect_err("the store cannot be read");
    assert_eq!(one_waiting(&*store).await.call_id, call.call_id, "it is not made a second time");
    is_down.store(false, Ordering::Release);
    let done = letter(&client, "unread").await.unwrap();
    assert_eq!((text(&done), sent("unread"), waiting(&*store).await.len()), ("sent at 1", 1, 0));
    assert_eq!(recorded(&*store).await, [json!(["letters__send", "ok"])]);
}

/// Sends a parcel.
#[tool(name = "parcels__send", effect = external_side_effect, redact = ["$"])]
fn parcel() -> Result<u8, ToolError> {
    Ok(1)
}

/// The client is asked about the first call of its script only. Somebody else approves that one meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_counts_for_the_question_that_was_shown() {
    let policy = "allowed_tools = ['letters__send', 'parcels__send']\nallowed_graphs = ['writer']\n\
                  [approvals.tools.letters__send]\nown_calls = true\n[mcp]\nhold = '1d'\n";
    let writer = CodeMode::new("writer", "1").tools(["letters__send", "parcels__send"]).effects();
    let catalog = ToolCatalog::builder().tool::<send>().tool::<parcel>().dynamic(writer).build().unwrap();
    let store = Arc::<MemoryStore>::default();
    let policy = ToolPolicy::from_toml(policy).unwrap();
    let runner = ToolRunner::builder(catalog, policy).approvals(true).store(Arc::clone(&store)).build().unwrap();
    let served = McpServer::builder(runner, admitted).ask_clients(true).build().unwrap();
    let client = piped(&served, Some(json!({"approve": true}))).await;
    let outer =
        async |store: &MemoryStore| waiting(store).await.into_iter().find(|call| call.tool.as_str() == "graph__writer");
    let before = Arc::clone(&store);
    *client.service().before.lock().unwrap() = Some(Box::pin(async move {
        let first = outer(&before).await.expect("the script waits");
        post(&before, &first, ApprovalDecision::Approve).await;
        // The script waits with its next call, about which its client is not asked.
        loop {
            match outer(&before).await {
                Some(next) if next.question() != first.question() => break,
                _ => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    }));
    let script = json!({"script": "letters__send(#{ text: \"scripted\" }); parcels__send()"});
    let asking = tokio::spawn(async move { client.call_tool(request("graph__writer", script)).await });
    let of_ada =
        |decision: &&DecisionRecord| decision.decider.as_ref().is_some_and(|decider| decider.principal() == "ada");
    let told = loop {
        let records = store.records(&RecordFilter::default()).await.unwrap();
        if let Some(decision) = records.iter().filter_map(|sealed| sealed.record.as_decision()).find(of_ada) {
            break decision.mismatch();
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    // The server may take the answer before it has read the next question.
    assert!(matches!(told, Some(DecisionError::Question | DecisionError::NotPending)), "{told:?}");
    post(&store, &outer(&store).await.expect("it waits"), ApprovalDecision::Approve).await;
    let done = asking.await.unwrap().unwrap();
    assert_eq!((done.is_error, sent("scripted")), (Some(false), 1), "{done:?}");
}
