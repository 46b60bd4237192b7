//! Each failure is logged once, without its text, and reaches the sink once, with its causes.

use std::sync::Mutex;

use tests::world::{HookAction, HookedStore};
use tool_runtime::agent::StepError;
use tool_runtime::capability::{ConnectionBroker, ConnectionError, ConnectionHandle, ConnectionId, ConnectionRequest};
use tool_runtime::runner::Failure;
use tool_runtime::store::{MemoryStore, StoreError};
use tool_runtime::wire::ui::Protocol;
use tool_runtime::{Connection, capability};

use super::*;

/// An error with a cause, both of which can hold values.
#[derive(Debug)]
struct Outer(std::io::Error);

impl std::fmt::Display for Outer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{CANARY}-outer")
    }
}

impl std::error::Error for Outer {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

fn chained() -> Box<dyn std::error::Error + Send + Sync> {
    Box::new(Outer(std::io::Error::other(format!("{CANARY}-inner"))))
}

/// The text of the chain.
const CHAIN: &str = "CANARY-7c31-outer: CANARY-7c31-inner";

/// Fails with a chain.
#[tool(name = "failures__chain", effect = read_only, redact = ["$"])]
fn chain() -> Result<bool, ToolError> {
    Err(ToolError::internal(chained()))
}

/// Someone's mail.
#[capability(effect = read_only, kind = "failing_mail")]
pub(crate) trait Mail {
    /// How many.
    fn count(&self) -> u32;
}

/// Counts mail.
#[tool(name = "failures__mail", effect = read_only, redact = ["$"])]
fn mail(mail: &Connection<dyn Mail>) -> Result<u32, ToolError> {
    Ok(mail.count())
}

struct Broker;

#[async_trait]
impl ConnectionBroker for Broker {
    async fn resolve(&self, _: ConnectionRequest<'_>) -> Result<ConnectionHandle, ConnectionError> {
        Err(ConnectionError::Failed(chained()))
    }
}

struct Model;

#[async_trait]
impl ModelClient for Model {
    fn name(&self) -> &'static str {
        "failing"
    }

    async fn complete(&self, _: ModelRequest<'_>, _: &mut DisplayFn<'_>) -> Result<Decoded, ModelError> {
        Err(ModelError::connect(format!("{CANARY}-detail")).with_source(chained()))
    }
}

/// When a store fails.
#[derive(Clone, Copy, PartialEq)]
enum Fails {
    Never,
    /// Before the record is kept.
    AtOnce,
    /// While somebody waits for the receipt.
    Later,
    /// On every operation except keeping a record.
    Otherwise,
}

/// A store that fails like this.
fn failing(fails: Fails) -> HookedStore {
    HookedStore::new(Arc::new(MemoryStore::new()), move |method| match (fails, method == "append") {
        (Fails::AtOnce, true) | (Fails::Otherwise, false) => HookAction::Fail(StoreError::Unavailable(chained())),
        (Fails::Later, true) => HookAction::Silence,
        _ => HookAction::Pass,
    })
}

/// The failures that the sink received: code, tool, call, type of the error, text.
type Told = Arc<Mutex<Vec<(String, Option<String>, Option<String>, Option<&'static str>, String)>>>;

struct Rig {
    tree: Tree,
    told: Told,
    store: Arc<HookedStore>,
    runner: ToolRunner,
}

impl Rig {
    fn new(fails: Fails) -> Self {
        let (told, store) = (Told::default(), Arc::new(failing(fails)));
        let sink = Arc::clone(&told);
        let catalog =
            ToolCatalog::builder().tool::<wait>().tool::<change>().tool::<chain>().tool::<mail>().tool::<sign_in>();
        let policy = "
            allowed_tools = ['telemetry__wait', 'telemetry__change', 'failures__chain', 'failures__mail', 'telemetry__sign_in']
            require_approval_for_tools = ['telemetry__sign_in']
        ";
        let runner = ToolRunner::builder(
            catalog.build().expect("a catalog"),
            ToolPolicy::from_toml(policy).unwrap_or_else(|error| panic!("{error}")),
        )
        .approvals(true)
        .broker(Broker)
        .store(Arc::clone(&store))
        .failures(move |failure: &Failure<'_>| {
            let (tool, call) = (failure.tool.map(str::to_owned), failure.call_id.map(ToString::to_string));
            let line = (failure.code.to_owned(), tool, call, failure.error_type, failure.text.to_owned());
            assert_eq!(failure.run_id, Some("r-1"));
            assert_eq!((failure.session_id, failure.conversation_id), (Some("s-1"), Some("c-1")));
            sink.lock().expect("no poison").push(line);
        })
        .build()
        .unwrap_or_else(|error| panic!("{error}"));
        Self { tree: Tree::default(), told, store, runner }
    }

    fn run(&self) -> tool_runtime::Run {
        self.runner.run(options().connection("failing_mail", ConnectionId::new("ada")))
    }

    /// There was one failure: this one.
    #[track_caller]
    fn once(&self, code: &str, tool: Option<&str>, text: &str) {
        let told = self.told.lock().expect("no poison");
        assert_eq!(told.len(), 1, "{told:#?}");
        assert_eq!((told[0].0.as_str(), told[0].1.as_deref()), (code, tool));
        assert!(told[0].4.contains(text), "{} in {}", text, told[0].4);
        let logged: Vec<_> =
            self.tree.events("code").into_iter().filter(|event| event.fields["code"] == code).collect();
        assert_eq!(logged.len(), 1, "{logged:#?}");
        has(&logged[0].fields, &[("run", "r-1"), ("session", "s-1"), ("conversation", "c-1")]);
        assert_eq!(logged[0].fields.get("tool").map(String::as_str), tool);
        assert_eq!(logged[0].fields.get("call"), told[0].2.as_ref());
        assert_eq!(logged[0].fields.get("error.type").map(String::as_str), told[0].3);
        assert!(!self.tree.text().contains(CANARY), "{}", self.tree.text());
    }
}

#[tokio::test]
async fn of_a_tool() {
    let rig = Rig::new(Fails::Never);
    let _guard = rig.tree.listen();
    rig.run().exec(ToolCall::text("c", "failures__chain", "{}")).await;
    rig.once("execution_error", Some("failures__chain"), CHAIN);
    let told = rig.told.lock().expect("no poison");
    assert!(told[0].3.is_some_and(|name| name.contains("Error")), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn of_a_tool_that_is_dropped() {
    let rig = Rig::new(Fails::Never);
    let _guard = rig.tree.listen();
    let call = rig.run().exec(ToolCall::text("c", "telemetry__change", "{}"));
    assert!(tokio::time::timeout(Duration::from_millis(10), call).await.is_err());
    rig.once("outcome_unknown", Some("telemetry__change"), "");
}

#[tokio::test]
async fn of_a_broker() {
    let rig = Rig::new(Fails::Never);
    let _guard = rig.tree.listen();
    rig.run().exec(ToolCall::text("c", "failures__mail", "{}")).await;
    rig.once("connection_failed", Some("failures__mail"), CHAIN);
}

#[tokio::test]
async fn of_a_model() {
    let rig = Rig::new(Fails::Never);
    let _guard = rig.tree.listen();
    Agent::new(Model).converse(rig.run()).send("Hello.").await;
    rig.once("model_unreachable", None, &format!("{CANARY}-detail: {CHAIN}"));
}

/// A constructor of an error from its detail.
type Make = fn(String) -> ModelError;

/// A model whose error has values in its detail and in its causes.
struct Erring(Make);

#[async_trait]
impl ModelClient for Erring {
    fn name(&self) -> &'static str {
        "erring"
    }

    async fn complete(&self, _: ModelRequest<'_>, _: &mut DisplayFn<'_>) -> Result<Decoded, ModelError> {
        Err(self.0(format!("{CANARY}-detail")).with_wait(Duration::ZERO).with_source(chained()))
    }
}

/// Neither the texts of an error nor anything that shows one contains a value; operators get its detail and causes.
#[tokio::test]
async fn of_every_error_of_a_model() {
    let errors: [(Make, &str); 11] = [
        (ModelError::encode, "model_request_invalid"),
        (ModelError::connect, "model_unreachable"),
        (ModelError::timeout, "model_timeout"),
        (|detail| ModelError::refused(0, detail), "model_refused"),
        (|detail| ModelError::refused(401, detail), "model_unauthorised"),
        (|detail| ModelError::refused(429, detail), "model_overloaded"),
        (|detail| ModelError::refused(500, detail), "model_refused"),
        (|detail| ModelError::refused(u16::MAX, detail), "model_refused"),
        (ModelError::redirected, "model_redirect"),
        (ModelError::too_large, "model_answer_too_large"),
        (ModelError::protocol, "model_protocol"),
    ];
    for (make, code) in errors {
        let error = make(format!("{CANARY}-detail")).with_wait(Duration::MAX).with_source(chained());
        assert_eq!((error.code(), error.detail()), (code, &*format!("{CANARY}-detail")));
        let rig = Rig::new(Fails::Never);
        let _guard = rig.tree.listen();
        let mut conversation = Agent::new(Erring(make)).converse(rig.run());
        let mut stream = conversation.ui_stream(Protocol::UiMessageStream, "m");
        let ended = conversation.send("Hello.").await;
        let mut shown = vec![format!("{error} {error:?} {ended:?} {conversation:?}")];
        while let Some(bytes) = stream.chunk().await {
            shown.push(String::from_utf8(bytes.to_vec()).expect("text"));
        }
        let saved = conversation.save().await.expect("it is saved");
        shown.push(serde_json::to_string(&saved).expect("JSON"));
        let step = StepError::Model(error);
        shown.push(format!("{step} {step:?} {}", step.code()));
        let shown = shown.join("\n");
        assert!(!shown.contains("CANARY"), "{code}: {shown}");
        assert!(shown.contains(code), "{code}: {shown}");
        rig.once(code, None, &format!("{CANARY}-detail: {CHAIN}"));
    }
}

#[tokio::test(start_paused = true)]
async fn of_a_store() {
    let wait = || ToolCall::text("c", "telemetry__wait", r#"{"ms":1}"#);
    let rig = Rig::new(Fails::AtOnce);
    let guard = rig.tree.listen();
    assert!(rig.run().exec(wait()).await.is_ok(), "the result is not lost with its record");
    rig.once("store_unavailable", Some("telemetry__wait"), CHAIN);
    drop(guard);

    let rig = Rig::new(Fails::Later);
    let guard = rig.tree.listen();
    let mut call = Box::pin(rig.run().exec(wait()));
    assert!(tokio::time::timeout(Duration::from_millis(20), &mut call).await.is_err());
    rig.store.settle(|| StoreError::Unavailable(chained()));
    assert!(call.await.is_ok());
    rig.once("store_unavailable", Some("telemetry__wait"), CHAIN);
    drop(guard);

    let rig = Rig::new(Fails::Otherwise);
    let guard = rig.tree.listen();
    rig.run().exec(ToolCall::text("c", "telemetry__sign_in", r#"{"login":"ada","password":"x"}"#)).await;
    // Four failures: the grants and the key of digests could not be read, and the waiting call and its record could not
    // be kept.
    let told: Vec<_> =
        rig.told.lock().expect("no poison").iter().map(|told| (told.0.clone(), told.1.clone())).collect();
    let code = || "store_unavailable".to_owned();
    let tool = || Some("telemetry__sign_in".to_owned());
    assert_eq!(told, [(code(), None), (code(), None), (code(), tool()), (code(), tool())]);
    assert!(!rig.tree.text().contains(CANARY), "{}", rig.tree.text());
    drop(guard);

    for read in ["recorded", "resume", "snapshot"] {
        let rig = Rig::new(Fails::Otherwise);
        let _guard = rig.tree.listen();
        let run = rig.run();
        let failed = match read {
            "recorded" => run.recorded(&"c".into()).await.is_err(),
            "resume" => run.resume(&tests::never("c"), ApprovalDecision::Approve, &grace()).await.is_err(),
            _ => run.snapshot().await.is_err(),
        };
        assert!(failed, "{read}");
        rig.once("store_unavailable", None, CHAIN);
    }
}

#[tokio::test(start_paused = true)]
async fn of_a_store_whose_caller_is_gone() {
    // Dropped while the tool runs, and while the receipt is awaited.
    for ms in [60_000, 1] {
        let rig = Rig::new(Fails::Later);
        let _guard = rig.tree.listen();
        let call = rig.run().exec(ToolCall::text("c", "telemetry__wait", json!({ "ms": ms }).to_string()));
        assert!(tokio::time::timeout(Duration::from_millis(20), call).await.is_err());
        rig.store.settle(|| StoreError::Unavailable(chained()));
        while rig.told.lock().expect("no poison").is_empty() {
            tokio::task::yield_now().await;
        }
        rig.once("store_unavailable", Some("telemetry__wait"), CHAIN);
    }
}

#[test]
fn of_a_store_outside_of_a_runtime() {
    let rig = Rig::new(Fails::AtOnce);
    let _guard = rig.tree.listen();
    drop(rig.run().exec(ToolCall::text("c", "telemetry__wait", r#"{"ms":1}"#)));
    // The run's id is given, so another process may have begun the call, and here the ledger cannot be asked.
    let unknown = rig.told.lock().expect("no poison").remove(0);
    assert_eq!((unknown.0.as_str(), unknown.2.as_deref()), ("outcome_unknown", Some("c")));
    rig.once("store_unavailable", Some("telemetry__wait"), CHAIN);
}

#[tokio::test]
async fn without_a_sink_the_log_says_what_failed_and_no_value() {
    let tree = Tree::default();
    let _guard = tree.listen();
    let run = builder().build().expect("a runner").run(options());
    run.exec(ToolCall::text("c", "telemetry__fail", "{}")).await;
    let logged = tree.events("code");
    assert_eq!(logged.len(), 1, "{logged:#?}");
    has(
        &logged[0].fields,
        &[
            ("message", "a tool call failed"),
            ("code", "execution_error"),
            ("tool", "telemetry__fail"),
            ("call", "c"),
            ("run", "r-1"),
            ("error.type", "std::io::error::Error"),
        ],
    );
    assert!(!tree.text().contains(CANARY));
}
