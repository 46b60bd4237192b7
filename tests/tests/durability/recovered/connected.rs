//! Calls that borrow a connection of their run, and whose process died: a sweep has no connections, and a broker can fail
//! for a moment.

use tool_runtime::capability::{ConnectionBroker, ConnectionError, ConnectionHandle, ConnectionId, ConnectionRequest};
use tool_runtime::{Connection, ToolCall};

use super::*;

/// An account at the system outside.
#[capability(effect = state_change, kind = "account")]
trait Account {
    /// The system.
    fn outside(&self) -> Arc<There>;
}

struct Ours(Arc<There>);

impl Account for Ours {
    fn outside(&self) -> Arc<There> {
        Arc::clone(&self.0)
    }
}

/// Pays from the account of the user, and can find out whether it did.
#[tool(name = "recovered__linked", effect = state_change, redact = ["$"])]
struct Linked {
    /// The purpose of the payment.
    what: String,
}

impl ToolComponent for Linked {
    type Capabilities = (Cap<Connection<dyn Account>>,);
    type Output = String;

    async fn run(self, (account,): Self::Capabilities, call: &Call<Self>) -> Result<String, ToolError> {
        act(&*account.outside(), &call.idempotency_key()).await
    }

    async fn reconcile(
        self,
        (account,): Self::Capabilities,
        call: &Call<Self>,
    ) -> Result<Reconciled<String>, ToolError> {
        let found = account.outside().has(&call.idempotency_key());
        Ok(if found { Reconciled::TookEffect(format!("found {}", self.what)) } else { Reconciled::Unknown })
    }
}

/// Opens accounts, unless it is down.
struct Broker {
    there: Arc<There>,
    is_down: Mutex<bool>,
}

#[async_trait]
impl ConnectionBroker for Broker {
    async fn resolve(&self, _: ConnectionRequest<'_>) -> Result<ConnectionHandle, ConnectionError> {
        if *of(&self.is_down) {
            return Err(ConnectionError::Failed("it is down".into()));
        }
        Ok(ConnectionHandle::new::<dyn Account>(Arc::new(Ours(Arc::clone(&self.there)))))
    }
}

fn runner(rig: &Rig, broker: &Arc<Broker>) -> ToolRunner {
    let catalog = ToolCatalog::builder().tool::<Linked>().build().expect("a catalog");
    let policy = ToolPolicy::from_toml("allowed_tools = ['recovered__linked']").expect("a policy");
    ToolRunner::builder(catalog, policy)
        .broker(Arc::clone(broker))
        .lease(LEASE)
        .clock(Arc::clone(&rig.clock))
        .store(Arc::clone(&rig.store))
        .build()
        .unwrap_or_else(|error| panic!("{error}"))
}

fn linked() -> RunOptions {
    ada().connection("account", ConnectionId::new("ada's"))
}

fn call() -> ToolCall {
    ToolCall::text("c", "recovered__linked", ARGUMENTS)
}

fn died() -> (Rig, Arc<Broker>) {
    let rig = Rig::new("linked", Dies::After);
    let broker = Arc::new(Broker { there: Arc::clone(&rig.there), is_down: Mutex::default() });
    let run = runner(&rig, &broker).run(linked());
    rig.dies(async move { drop(run.exec(call()).await) });
    (rig, broker)
}

async fn is_open(rig: &Rig) -> bool {
    !rig.dyn_store().unfinished_calls(&RecordFilter::default()).await.expect("a store").is_empty()
}

/// A sweep leaves the call to the owner of its run, which has the connection.
#[test]
fn a_sweep_leaves_a_call_that_borrows_a_connection() {
    let (rig, broker) = died();
    rig.later(async {
        runner(&rig, &broker).sweep().await.expect("swept");
        assert!(is_open(&rig).await);
        let ended = runner(&rig, &broker).run(linked()).recover(&"c".into()).await.expect("a store");
        assert_eq!(ended.expect("it is reconciled").outcome(), Outcome::Ok);
    });
    assert_eq!(rig.ended(), (Outcome::Ok, None, Some(r#""found rent""#.to_owned())));
    assert_eq!(rig.effects(), [1]);
}

/// Its owner is gone for good: a week later the call is closed.
#[test]
fn a_sweep_closes_a_call_that_borrows_a_connection_a_week_later() {
    let (rig, broker) = died();
    rig.clock.advance(7 * 24 * 60 * 60 * Duration::from_secs(1));
    rig.later(async { runner(&rig, &broker).sweep().await.expect("swept") });
    assert_eq!(rig.ended(), (Outcome::OutcomeUnknown, Some("lost"), None));
}

/// The broker is down at the first attempt to continue, by each way to continue.
#[test]
fn a_call_whose_connection_fails_is_tried_again() {
    for execs in [false, true] {
        let (rig, broker) = died();
        rig.later(async {
            let restored = async || {
                let saved = runner(&rig, &broker).run(linked()).snapshot().await.expect("a snapshot");
                runner(&rig, &broker).restore(saved, linked()).await.expect("restored")
            };
            *of(&broker.is_down) = true;
            if execs {
                assert_eq!(restored().await.exec(call()).await.outcome(), Outcome::OutcomeUnknown);
            } else {
                let unknown = restored().await.recover(&"c".into()).await.expect("a store");
                assert!(unknown.is_none(), "{unknown:?}");
            }
            assert!(is_open(&rig).await, "{execs}");
            *of(&broker.is_down) = false;
            let ended = restored().await.recover(&"c".into()).await.expect("a store");
            assert_eq!(ended.expect("it is reconciled").outcome(), Outcome::Ok, "{execs}");
        });
        assert_eq!(rig.ended(), (Outcome::Ok, None, Some(r#""found rent""#.to_owned())), "{execs}");
        assert_eq!(rig.effects(), [1], "{execs}");
    }
}
