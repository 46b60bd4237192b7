//! One account behind several traits: the broker learns which of them a tool borrows.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::json;
use tool_runtime::capability::{ConnectionBroker, ConnectionError, ConnectionHandle, ConnectionRequest};
use tool_runtime::store::{MemoryStore, RecordFilter, Store as _};
use tool_runtime::{
    Call, Cap, Connection, Outcome, RunOptions, ToolCall, ToolCatalog, ToolComponent, ToolError, ToolPolicy,
    ToolRunner, capability, tool,
};

/// Reads mail.
#[capability(effect = read_only, kind = "mail")]
pub(crate) trait Inbox {
    /// Counts unread mail.
    fn unread(&self) -> usize;
}

/// Sends mail.
#[capability(effect = external_side_effect, kind = "mail")]
pub(crate) trait Outbox {
    /// Sends one.
    fn send(&self, to: &str) -> String;
}

/// Count unread mail.
#[tool(name = "mail__unread", effect = read_only, redact = ["$"])]
fn unread(inbox: &Connection<dyn Inbox>) -> Result<usize, ToolError> {
    Ok(inbox.unread())
}

/// Send a mail.
#[tool(name = "mail__send", effect = external_side_effect, redact = ["$"])]
struct Send {
    /// Who gets it.
    to: String,
}

impl ToolComponent for Send {
    type Capabilities = (Cap<Connection<dyn Outbox>>,);
    type Output = String;

    async fn run(self, (outbox,): Self::Capabilities, _: &Call<Self>) -> Result<String, ToolError> {
        Ok(outbox.send(&self.to))
    }
}

struct Mailbox(String);

impl Inbox for Mailbox {
    fn unread(&self) -> usize {
        3
    }
}

impl Outbox for Mailbox {
    fn send(&self, to: &str) -> String {
        format!("{} -> {to}", self.0)
    }
}

#[derive(Default)]
struct Mailboxes {
    asked: Mutex<Vec<(&'static str, &'static str)>>,
}

#[async_trait]
impl ConnectionBroker for Mailboxes {
    async fn resolve(&self, request: ConnectionRequest<'_>) -> Result<ConnectionHandle, ConnectionError> {
        self.asked.lock().expect("not poisoned").push((request.kind, request.trait_name()));
        let mailbox = Arc::new(Mailbox(request.id.as_str().to_owned()));
        assert_ne!(request.wants::<dyn Inbox>(), request.wants::<dyn Outbox>());
        if request.wants::<dyn Outbox>() {
            Ok(ConnectionHandle::new::<dyn Outbox>(mailbox))
        } else {
            Ok(ConnectionHandle::new::<dyn Inbox>(mailbox))
        }
    }
}

#[tokio::test]
async fn a_broker_knows_which_trait_of_an_account_is_wanted() {
    let broker = Arc::new(Mailboxes::default());
    let catalog = ToolCatalog::builder().tool::<unread>().tool::<Send>().build().expect("a catalog");
    let runner = ToolRunner::builder(catalog, ToolPolicy::allow(["mail__unread", "mail__send"]))
        .broker(Arc::clone(&broker))
        .build()
        .expect("a runner");
    let run = runner.run(RunOptions::new().connection("mail", "ada".into()));
    for (id, name, arguments, expected) in
        [("a", "mail__unread", json!({}), "3"), ("b", "mail__send", json!({"to": "bob"}), "ada -> bob")]
    {
        let result = run.exec(ToolCall::text(id, name, arguments.to_string())).await;
        assert_eq!((result.outcome(), result.to_model().as_str()), (Outcome::Ok, expected));
    }
    assert_eq!(*broker.asked.lock().expect("not poisoned"), [("mail", "Inbox"), ("mail", "Outbox")]);
}

/// Refuses every account. The id of the account selects the reason.
struct Refusing;

#[async_trait]
impl ConnectionBroker for Refusing {
    async fn resolve(&self, request: ConnectionRequest<'_>) -> Result<ConnectionHandle, ConnectionError> {
        Err(match request.id.as_str() {
            "foreign" => ConnectionError::Forbidden,
            "expired" => ConnectionError::Expired,
            _ => ConnectionError::Unknown,
        })
    }
}

#[tokio::test]
async fn a_foreign_account_reads_like_an_unknown_one() {
    let catalog = ToolCatalog::builder().tool::<unread>().build().expect("a catalog");
    let store = Arc::new(MemoryStore::new());
    let runner = ToolRunner::builder(catalog, ToolPolicy::allow(["mail__unread"]))
        .broker(Refusing)
        .store(Arc::clone(&store))
        .build()
        .expect("a runner");
    let mut seen = Vec::new();
    for id in ["unknown", "foreign", "expired"] {
        let run = runner.run(RunOptions::new().run_id(id).connection("mail", id.into()));
        let result = run.exec(ToolCall::text("a", "mail__unread", "{}")).await;
        assert_eq!(result.outcome(), Outcome::ConnectionUnavailable);
        let record = store.calls(&RecordFilter::run(id)).await.expect("records").remove(0);
        seen.push((result.to_model(), record.outcome, record.safe_message, record.executed));
    }
    assert!(seen.iter().all(|one| *one == seen[0]), "{seen:?}");
}

/// Reads the time.
#[capability(effect = read_only)]
trait Clock {
    /// Seconds since 1970.
    fn now(&self) -> i64;
}

/// The time.
#[tool(name = "core__now", effect = read_only, redact = ["$"])]
fn now(clock: &dyn Clock) -> Result<i64, ToolError> {
    Ok(clock.now())
}

#[test]
fn missing_bindings_are_named_with_their_remedy() {
    let catalog = ToolCatalog::builder().tool::<now>().tool::<unread>().build().expect("a catalog");
    let error = ToolRunner::builder(catalog, ToolPolicy::allow(["core__now", "mail__unread"]))
        .build()
        .expect_err("nothing is bound");
    assert_eq!(
        error.to_string(),
        "the capability `Clock` is not bound, and `core__now` needs it; write `Capabilities::with::<dyn Clock>(..)`\n\
         `Inbox` needs an account, `mail__unread` borrows it, and there is no broker; write `.broker(..)` with a `ConnectionBroker`"
    );
}
