//! Canaries: values that must stay inside are given to every place that could leak them, and everything that leaves is
//! searched for them.

#![allow(clippy::expect_used, clippy::panic, reason = "a test says what it expects")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use tests::Shown as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tests::grace;
use tests::spans::Traced;
use tool_runtime::registration::{DynamicHandler, DynamicTool};
use tool_runtime::runner::{ApprovalDecision, SealingKeys};
use tool_runtime::store::{MemoryStore, RecordFilter, Store};
use tool_runtime::{
    Call, Event, Run, RunOptions, Secret, ToolCall, ToolCatalog, ToolComponent, ToolContext, ToolEffect, ToolError,
    ToolPolicy, ToolRunner, tool,
};
use tool_runtime_sql::{SqlOptions, SqlStore};

/// Begins everything that must stay inside.
const CANARY: &str = "CANARY";
/// Begins everything that may leave.
const SHOWN: &str = "SHOWN";

#[derive(Serialize, JsonSchema)]
struct Account {
    name: String,
    token: String,
    owner: Person,
    members: Vec<Person>,
    by_role: BTreeMap<String, Person>,
    tags: Vec<String>,
    note: Option<String>,
    contact: Contact,
}

#[derive(Clone, Serialize, JsonSchema)]
struct Person {
    login: String,
    password: String,
}

#[derive(Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[allow(dead_code, reason = "the other branch is there so that paths of both are checked")]
enum Contact {
    Mail { address: String, key: String },
    Phone { number: String },
}

/// Looks up an account.
#[tool(
    name = "canary__account",
    effect = read_only,
    redact = ["name", "owner.login", "members.login", "by_role.*.login", "contact.address", "contact.kind"]
)]
fn account() -> Result<Account, ToolError> {
    let person = || Person { login: format!("{SHOWN}-login"), password: format!("{CANARY}-password") };
    Ok(Account {
        name: format!("{SHOWN}-name"),
        token: format!("{CANARY}-token"),
        owner: person(),
        members: vec![person(), person()],
        by_role: BTreeMap::from([("admin".to_owned(), person())]),
        tags: vec![format!("{CANARY}-tag")],
        note: Some(format!("{CANARY}-note")),
        contact: Contact::Mail { address: format!("{SHOWN}-address"), key: format!("{CANARY}-key") },
    })
}

/// Signs in.
#[tool(name = "canary__sign_in", effect = state_change, redact = ["$"])]
fn sign_in(
    context: &ToolContext,
    /// Who.
    login: String,
    /// The password.
    #[arg(sensitive)]
    password: String,
    /// More of them.
    #[arg(sensitive)]
    answers: Option<Vec<String>>,
) -> Result<usize, ToolError> {
    context.event(tracing::Level::INFO, "signed_in", &[("login", &login)]);
    Ok(Secret::new(password).expose().len() + answers.map_or(0, |answers| answers.len()))
}

/// An argument that its type refuses.
#[derive(Clone, Deserialize, Serialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
struct Picky(String);

impl TryFrom<String> for Picky {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.starts_with(SHOWN) { Ok(Self(text)) } else { Err(format!("{CANARY}: {text} is wrong")) }
    }
}

impl From<Picky> for String {
    fn from(picky: Picky) -> Self {
        picky.0
    }
}

/// Takes what its type is particular about.
#[tool(name = "canary__picky", effect = read_only, redact = ["$"])]
fn picky(
    /// Begins in a certain way.
    what: Picky,
) -> Result<usize, ToolError> {
    Ok(what.0.len())
}

/// Fails in its own way.
#[tool(name = "canary__fail", effect = read_only, redact = ["$"])]
fn fail(
    /// How.
    #[schemars(range(min = 0, max = 4))]
    how: u8,
) -> Result<f64, ToolError> {
    match how {
        0 => Err(ToolError::internal(std::io::Error::other(format!("{CANARY}-io")))),
        1 => Err(ToolError::code("gone").with_source(format!("{CANARY}-source"))),
        2 => Err(ToolError::safe(format!("{SHOWN}-sentence")).with_source(format!("{CANARY}-cause"))),
        3 => panic!("{CANARY}-panic"),
        _ => Ok(f64::NAN),
    }
}

/// Tells where somebody is.
#[tool(name = "canary__client", effect = read_only, execution = client, client_result = Person, prepare = ["login"],
    redact = ["login"])]
struct Client {
    /// Whom to look for.
    login: String,
}

impl ToolComponent for Client {
    type Capabilities = ();
    type Output = Person;

    async fn run(self, (): (), _: &Call<Self>) -> Result<Person, ToolError> {
        Ok(Person { login: self.login, password: format!("{CANARY}-prepared") })
    }
}

struct Dynamic;

#[async_trait::async_trait]
impl DynamicHandler for Dynamic {
    async fn call(&self, arguments: &Value, _: &ToolContext) -> Result<Value, ToolError> {
        match arguments["how"].as_str() {
            Some("leak") => Ok(json!({"open": format!("{SHOWN}-open"), "closed": format!("{CANARY}-closed")})),
            Some("invalid") => Ok(json!({"open": 7, "closed": format!("{CANARY}-invalid")})),
            _ => Err(ToolError::internal(format!("{CANARY}-dynamic"))),
        }
    }
}

fn catalog() -> ToolCatalog {
    let arguments = json!({
        "type": "object",
        "properties": {"how": {"type": "string"}, "key": {"type": "string"}},
        "required": ["how"],
        "additionalProperties": false,
    });
    let output = json!({
        "type": "object",
        "properties": {"open": {"type": "string"}, "closed": {"type": "string"}},
    });
    let dynamic =
        DynamicTool::new("canary__dynamic", "Does as told.", arguments, ToolEffect::ReadOnly, Arc::new(Dynamic))
            .output_schema(output)
            .redact(["open"])
            .sensitive("key");
    ToolCatalog::builder().collect().crates(["canary"]).dynamic(dynamic).build().expect("a catalog")
}

/// Everything that left, with the place where it left.
#[derive(Default)]
struct Seen(Mutex<Vec<(&'static str, String)>>);

impl Seen {
    fn add(&self, place: &'static str, text: impl Into<String>) {
        self.0.lock().expect("no poison").push((place, text.into()));
    }

    /// The sink for the options of a run.
    fn sink(self: &Arc<Self>) -> impl Fn(Event) + Send + Sync + use<> {
        let seen = Arc::clone(self);
        move |event| {
            seen.add("event", serde_json::to_string(&event).expect("an event"));
            seen.add("event, for debugging", format!("{event:?}"));
        }
    }
}

/// Calls that must not leak, each with its arguments.
fn calls() -> Vec<(&'static str, String)> {
    let secret = |text: &str| format!("{CANARY}-{text}");
    let mut calls = vec![
        ("canary__account", "{}".to_owned()),
        // Arguments that could be read are in the record, unless the tool marks one of them as sensitive.
        ("canary__account", json!({"extra": format!("{SHOWN}-extra")}).to_string()),
        ("canary__sign_in", json!({"login": "ada", "password": secret("password")}).to_string()),
        (
            "canary__sign_in",
            json!({"login": "ada", "password": secret("1"), "answers": [secret("2"), secret("3")]}).to_string(),
        ),
        ("canary__sign_in", json!({"login": "ada", "password": [secret("wrong type")]}).to_string()),
        ("canary__sign_in", json!({"login": "ada", "passwort": secret("wrong name")}).to_string()),
        ("canary__picky", json!({"what": "not what it should be"}).to_string()),
        ("canary__client", json!({"login": format!("{SHOWN}-login")}).to_string()),
        ("canary__dynamic", json!({"how": "leak", "key": secret("key")}).to_string()),
        ("canary__dynamic", json!({"how": "invalid"}).to_string()),
        ("canary__dynamic", json!({"how": "fail"}).to_string()),
        ("canary__unknown", json!({"text": secret("unknown")}).to_string()),
        ("canary__account", format!("{{\"a\": \"{}", secret("cut"))),
        ("canary__account", secret("no JSON")),
        ("canary__account", format!("[\"{}\"]", secret("array"))),
        ("canary__account", format!("{{\"{0}\":1,\"{0}\":2}}", secret("key twice"))),
        ("canary__account", json!({"long": secret(&"x".repeat(10_000))}).to_string()),
    ];
    calls.extend((0..5).map(|how| ("canary__fail", json!({"how": how}).to_string())));
    calls
}

async fn go(run: &Run, seen: &Seen) {
    for (at, (name, arguments)) in calls().into_iter().enumerate() {
        let call = ToolCall::text(format!("call_{at}").as_str(), name, arguments);
        seen.add("call, for debugging", format!("{call:?}"));
        let hydrated = run.hydrate([call.clone()]).pop().expect("a result");
        seen.add("hydration, for debugging", format!("{hydrated:?}"));
        if let Err(error) = &hydrated.hydrated {
            seen.add("hydration error", format!("{error} {error:?}"));
        }
        let result = run.exec(call).await;
        seen.add("model", result.to_model());
        seen.add("result", serde_json::to_string(&result).expect("a result"));
        seen.add("result, for debugging", format!("{result:?}"));
    }
    // A client's answer is not trusted either, and is projected in the same way.
    let at = calls().iter().position(|(name, _)| *name == "canary__client").expect("a client tool");
    let answer = json!({"login": format!("{SHOWN}-answer"), "password": format!("{CANARY}-answer")}).to_string();
    let result = run.client_result(&format!("call_{at}"), &answer).await.expect("it waits");
    seen.add("client's result", result.to_model());
    let call = ToolCall::text("again", "canary__client", json!({"login": "x"}).to_string());
    run.exec(call).await;
    let answer = json!({"password": format!("{CANARY}-invalid")}).to_string();
    let result = run.client_result("again", &answer).await.expect("it waits");
    seen.add("client's invalid result", result.to_model());
    let decision = ApprovalDecision::Respond(format!("\"{CANARY}-decision\""));
    seen.add("decision, for debugging", format!("{decision:?}"));
    seen.add("error", format!("{:?}", run.resume_shown("never", decision, &grace()).await.map(|_| ())));
    seen.add("summary", format!("{:?}", run.summary()));
}

#[test]
fn sensitive_values_appear_in_no_output() {
    // The default hook prints payloads; README tells applications to set one like this.
    std::panic::set_hook(Box::new(|info| eprintln!("panic at {:?}", info.location())));
    let (seen, traced, store) = (Arc::new(Seen::default()), Traced::default(), Arc::new(MemoryStore::new()));
    tracing::subscriber::with_default(traced.subscriber(), || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(async {
            let catalog = catalog();
            let policy = ToolPolicy::allow(catalog.specs().map(|spec| spec.name.to_string()));
            let runner = ToolRunner::builder(catalog, policy).store(Arc::clone(&store)).build().expect("a runner");
            let run = runner.run(RunOptions::new().session("s").conversation("c").events(seen.sink()));
            Box::pin(go(&run, &seen)).await;
            let records = store.records(&RecordFilter::default()).await.expect("records");
            assert!(records.iter().any(|sealed| sealed.record.as_decision().is_some()), "decisions are recorded");
            for sealed in records {
                // The output of `audit export`.
                seen.add("record", serde_json::to_string(&sealed).expect("a record"));
                seen.add("record, for debugging", format!("{sealed:?}"));
            }
        });
    });
    let _ = std::panic::take_hook();
    seen.add("traces", traced.text());
    let seen = seen.0.lock().expect("no poison");
    let leaks: Vec<_> = seen.iter().filter(|(_, text)| text.contains(CANARY)).collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
    // The listed values did come through, so the search looked at the right texts.
    for place in ["model", "result", "event", "record", "client's result"] {
        assert!(seen.iter().any(|(of, text)| *of == place && text.contains(SHOWN)), "nothing was shown to {place}");
    }
    for text in ["execute_tool", "gen_ai.tool.name", "signed_in", "a tool call failed", "a tool call was refused"] {
        assert!(traced.text().contains(text), "{text} was not traced");
    }
}

/// Everything that a store's files hold, the log of SQLite included.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path());
    entries.map(|path| (path.display().to_string(), std::fs::read(&path).expect("a file"))).collect()
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// A waiting call is kept with its arguments, so that it can run. Other arguments and parts of tokens are not kept.
#[test]
fn values_stay_out_of_files_and_tokens() {
    let folder = tempfile::tempdir().expect("a folder");
    let (seen, traced) = (Arc::new(Seen::default()), Traced::default());
    let password = format!("{CANARY}-password");
    let key = [0xA7; 32];
    tracing::subscriber::with_default(traced.subscriber(), || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let path = folder.path().join("store.db");
            let store = Arc::new(SqlStore::sqlite(&path, SqlOptions::new()).await.expect("a store"));
            let runner = |rules: &str| {
                let catalog = catalog();
                let names: Vec<_> = catalog.specs().map(|spec| format!("{:?}", spec.name.as_str())).collect();
                let policy = format!("allowed_tools = [{}]\n{rules}", names.join(", "));
                let policy = ToolPolicy::from_toml(&policy).expect("a policy");
                let builder = ToolRunner::builder(catalog, policy).approvals(true).store(Arc::clone(&store));
                builder.build().expect("a runner")
            };
            // Every call, every failure, every answer.
            let run = runner("").run(RunOptions::new().run_id("all").events(seen.sink()));
            Box::pin(go(&run, &seen)).await;
            store.flush().await.expect("it is written");
            for (file, bytes) in files(folder.path()) {
                assert!(!holds(&bytes, CANARY), "{file}");
            }
            // A call that waits, sealed and opened by another service, wrongly and rightly.
            let asks = runner("require_approval_for_tools = ['canary__sign_in']");
            let run = asks.run(RunOptions::new().run_id("asks").principal("ada").events(seen.sink()));
            let arguments = json!({"login": "ada", "password": password}).to_string();
            let waits = run.exec(ToolCall::text("c", "canary__sign_in", arguments)).await;
            assert_eq!(waits.outcome().code(), "approval_required");
            seen.add("result that waits", format!("{waits:?} {}", waits.to_model()));
            let keys = SealingKeys::new("k1", key);
            seen.add("keys, for debugging", format!("{keys:?}"));
            let token = run.seal("c", &keys).await.expect("it waits");
            seen.add("token", token.clone());
            let ada = || RunOptions::new().principal("ada").events(seen.sink());
            let last = if token.ends_with('A') { "B" } else { "A" };
            let forged = format!("{}{last}", &token[..token.len() - 1]);
            let others = SealingKeys::new("k2", key);
            for (token, keys, options) in [
                (&forged, &keys, ada()),
                (&token, &others, ada()),
                (&token, &keys, RunOptions::new().principal("eve")),
                (&token, &keys, ada().attribute("region", "north")),
            ] {
                let error = asks.open_token(token, keys, options).await.map(|_| ()).expect_err("it does not fit");
                seen.add("token refused", format!("{error:?} {error}"));
            }
            let (run, call) = asks.open_token(&token, &keys, ada()).await.expect("it opens");
            let snapshot = run.snapshot().await.expect("a snapshot");
            seen.add("snapshot, for debugging", format!("{snapshot:?}"));
            for pending in snapshot.waiting() {
                seen.add("pending call, for debugging", format!("{pending:?}"));
                seen.add("shown arguments", pending.shown_arguments.get());
            }
            let edited = json!({"login": "ada", "password": [password]}).to_string();
            let decision = ApprovalDecision::ApproveEdited(edited);
            let refused = run.resume(&call, decision, &grace()).await.expect("it waits");
            seen.add("decision refused", format!("{refused:?} {:?}", refused.detail()));
            let done = run.resume(&call, ApprovalDecision::Approve, &grace()).await.expect("it waits");
            assert!(done.is_ok(), "{done:?}");
            seen.add("decided", done.to_model());
            let used = asks.open_token(&token, &keys, ada()).await.map(|_| ()).err();
            seen.add("token used", format!("{used:?}"));
            for sealed in store.records(&RecordFilter::default()).await.expect("records") {
                seen.add("record", serde_json::to_string(&sealed).expect("a record"));
            }
            // The application keeps the keys and the tokens.
            store.flush().await.expect("it is written");
            for (file, bytes) in files(folder.path()) {
                assert!(!holds(&bytes, &token), "{file}");
                assert!(!bytes.windows(key.len()).any(|window| window == key), "{file}");
            }
        });
    });
    // The waiting calls are decided, so that no part of them is left in the pages of the database.
    let database = rusqlite::Connection::open(folder.path().join("store.db")).expect("a database");
    let waits: u32 = database
        .query_row("SELECT count(*) FROM tool_runtime_documents WHERE instr(body, 'CANARY') > 0", [], |row| row.get(0))
        .expect("documents");
    assert_eq!(waits, 0);
    database.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("it is written");
    drop(database);
    for (file, bytes) in files(folder.path()) {
        assert!(!holds(&bytes, CANARY), "{file}");
    }
    seen.add("traces", traced.text());
    let seen = seen.0.lock().expect("no poison");
    let leaks: Vec<_> = seen.iter().filter(|(_, text)| text.contains(CANARY)).collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
    let token = &seen.iter().find(|(place, _)| *place == "token").expect("a token").1;
    let leaks: Vec<_> = seen.iter().filter(|(place, text)| *place != "token" && text.contains(&token[30..])).collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
}

#[test]
fn nothing_reaches_the_terminal() {
    let program = std::env::current_exe().expect("this test");
    let output = Command::new(program)
        .args(["--exact", "sensitive_values_appear_in_no_output", "--nocapture"])
        .output()
        .expect("a run");
    assert!(output.status.success());
    for stream in [&output.stdout, &output.stderr] {
        assert!(!String::from_utf8_lossy(stream).contains(CANARY));
    }
}

#[tokio::test]
async fn operators_can_read_the_reason() {
    let harness = tool_runtime::testing::harness(catalog());
    let result = harness.exec(ToolCall::text("call", "canary__fail", r#"{"how":0}"#)).await;
    assert_eq!(result.detail(), Some("CANARY-io"));
}
