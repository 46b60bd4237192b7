//! Digests of arguments in records: equal for equal arguments of one store, and useless for guessing without its key.

use tests::Shown as _;
use tool_runtime::call::{ArgumentDigest, DigestKey};
use tool_runtime::store::{Chain, DecisionRecord, Key, Transaction, Verification};
use tool_runtime::testing::ManualClock;
use tool_runtime::tool::Hash;
use tool_runtime_sql::{SqlOptions, SqlStore};

use super::*;

/// Opens a safe.
#[tool(name = "waiting__safe", effect = state_change, redact = ["$"])]
fn open_safe(
    /// Why.
    note: String,
    /// The code of the safe.
    #[arg(sensitive)]
    pin: String,
) -> Result<bool, ToolError> {
    let _ = (note, pin);
    Ok(true)
}

/// Opens a vault that never answers.
#[tool(name = "waiting__vault", effect = state_change, timeout = "1s", redact = ["$"])]
async fn open_vault(
    /// The code of the vault.
    #[arg(sensitive)]
    pin: String,
) -> Result<bool, ToolError> {
    let _ = pin;
    std::future::pending().await
}

const ASKS: &str = r#"
    allowed_tools = ["waiting__safe"]
    require_approval_for_tools = ["waiting__safe"]
"#;

const FROZEN: &str = r#"{"note":"n","pin":"4711"}"#;
const CUT: &str = r#"{"pin":"4711""#;

/// SHA-256 of [`FROZEN`] and of [`CUT`].
const GUESSES: [&str; 2] = [
    "79e5c799802fa0f9a36760a1d141406c51cb35ca8df71938efa262677c367497",
    "4911338abfd456af4220124995810578540c0e65135bf316c1d08f1239d32d92",
];

struct Office {
    store: Arc<dyn Store>,
    run: Run,
}

impl Office {
    fn over(store: &Arc<dyn Store>, run_id: &str, key: Option<DigestKey>) -> Self {
        let catalog = ToolCatalog::collect().expect("a catalog");
        let builder = ToolRunner::builder(catalog, ToolPolicy::from_toml(ASKS).expect("a policy"));
        let builder = builder.approvals(true).store(Arc::clone(store));
        let builder = match key {
            Some(key) => builder.digest_key(key),
            None => builder,
        };
        let run = builder.build().expect("a runner").run(ada().run_id(run_id));
        Self { store: Arc::clone(store), run }
    }

    /// Makes a call, approves it, and returns the record of the decision.
    async fn decided(&self, id: &str) -> DecisionRecord {
        let result = self.run.exec(ToolCall::text(id, "waiting__safe", FROZEN)).await;
        assert_eq!(result.outcome(), Outcome::ApprovalRequired);
        let result = self.run.resume_shown(id, ApprovalDecision::Approve, &grace()).await.expect("it waits");
        assert_eq!(result.outcome(), Outcome::Ok);
        let records = self.store.records(&RecordFilter::run(self.run.id())).await.expect("records");
        let mut decisions = records.iter().filter_map(|sealed| sealed.record.as_decision());
        decisions.next_back().expect("a decision").clone()
    }

    /// Makes a call with unreadable arguments, and returns their digest.
    async fn unread(&self, id: &str) -> ArgumentDigest {
        let result = self.run.exec(ToolCall::text(id, "waiting__safe", CUT)).await;
        assert_eq!(result.outcome(), Outcome::InvalidJson);
        let records = self.store.calls(&RecordFilter::call(self.run.id(), CallId::new(id))).await.expect("records");
        records[0].unread_arguments().expect("they are not read").1
    }
}

#[tokio::test]
async fn a_sensitive_argument_cannot_be_guessed_from_records() {
    let folder = tempfile::tempdir().expect("a folder");
    let sqlite = SqlStore::sqlite(folder.path().join("digests.db"), SqlOptions::new()).await.expect("a store");
    for store in [Arc::new(MemoryStore::new()) as Arc<dyn Store>, Arc::new(sqlite)] {
        let office = Office::over(&store, "run-1", None);
        let first = office.decided("a").await;
        let unread = office.unread("cut").await;
        let records = store.records(&RecordFilter::default()).await.expect("records");
        let text = serde_json::to_string(&records).expect("JSON");
        assert!(
            text.contains(&first.argument_digest.expect("a digest").to_string()) && text.contains(&unread.to_string())
        );
        for guess in GUESSES {
            assert!(!text.contains(guess), "a plain hash in {text}");
        }
        // The same store, in another process: the same arguments have the same digest.
        let again = Office::over(&store, "run-2", None);
        assert_eq!(again.unread("cut").await, unread);
        assert_eq!(again.decided("a").await.argument_digest, first.argument_digest);
        // Another store.
        let other: Arc<dyn Store> = Arc::new(MemoryStore::new());
        assert_ne!(Office::over(&other, "run-1", None).decided("a").await.argument_digest, first.argument_digest);
    }
}

#[tokio::test]
async fn an_application_keeps_the_key_apart() {
    let key = || DigestKey::new([42; 32]);
    let (one, two) = (Arc::new(MemoryStore::new()) as Arc<dyn Store>, Arc::new(MemoryStore::new()) as Arc<dyn Store>);
    let first = Office::over(&one, "run-1", Some(key())).decided("a").await.argument_digest;
    assert_eq!(first.and_then(|digest| digest.key_id()), Some(key().id()));
    assert_eq!(Office::over(&two, "run-1", Some(key())).decided("a").await.argument_digest, first);
    for store in [one, two] {
        assert!(store.read(&[Key::digest_key()]).await.expect("a store")[0].is_none(), "the store has none");
    }
}

#[tokio::test]
async fn without_its_key_a_record_stays_verifiable() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let first = Office::over(&store, "run-1", None).decided("a").await.argument_digest.expect("a digest");
    let kept = store.read(&[Key::digest_key()]).await.expect("a store").remove(0).expect("a store keeps its key");
    let text = tests::stored::json_of(&kept)["digest_key"].as_str().expect("a text").to_owned();
    let bytes = text.parse::<Hash>().expect("32 bytes").as_ref().try_into().expect("32 bytes");
    assert_eq!(Some(DigestKey::new(bytes).id()), first.key_id());
    assert!(!format!("{kept:?}").contains(&text), "{kept:?}");
    let lose = |transaction: &mut Transaction| transaction.remove(&Key::digest_key());
    store.update(vec![Key::digest_key()], Box::new(lose)).await.expect("it is lost");
    let second = Office::over(&store, "run-2", None).decided("a").await.argument_digest.expect("a digest");
    assert_ne!(first.key_id(), second.key_id(), "what does not compare says so");
    Chain::verify(&store.records(&RecordFilter::default()).await.expect("records")).expect("whole");
    let verified = Verification::of_store(&*store, &[], |_| {}).await.expect("a store");
    let keys = [first, second].map(|digest| digest.key_id().expect("a key"));
    assert!(verified.findings.is_empty());
    assert_eq!(verified.digest_keys, keys.into(), "the keys whose digests do not compare");
}

/// The approver of a call with an unknown twin, and the readers of its question, do not learn sensitive arguments: the
/// question of a call with other ones is the same.
#[tokio::test(start_paused = true)]
async fn a_sensitive_argument_cannot_be_guessed_from_the_question_of_a_twin() {
    let mut questions = Vec::new();
    for pin in ["4711", "4712"] {
        let clock = Arc::new(ManualClock::at("2030-01-01T00:00:00Z".parse().expect("a time")));
        let store = Arc::new(MemoryStore::with_clock(Arc::clone(&clock)));
        let policy = ToolPolicy::from_toml("allowed_tools = ['waiting__vault']");
        let catalog = ToolCatalog::builder().tool::<open_vault>().build().expect("a catalog");
        let builder = ToolRunner::builder(catalog, policy.expect("a policy")).approvals(true).clock(clock);
        let run = builder.store(store).build().expect("a runner").run(ada());
        let call = |id: &str| ToolCall::text(id, "waiting__vault", format!(r#"{{"pin":"{pin}"}}"#));
        assert_eq!(run.exec(call("first")).await.outcome(), Outcome::OutcomeUnknown);
        let twin = run.exec(call("twin")).await;
        assert_eq!(twin.outcome(), Outcome::ApprovalRequired);
        questions.push(twin.question().expect("it waits").to_string());
    }
    assert_eq!(questions[0], questions[1]);
}

/// Two processes that need a key at the same time get the same one.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_store_has_one_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let sqlite = SqlStore::sqlite(folder.path().join("one.db"), SqlOptions::new()).await.expect("a store");
    for store in [Arc::new(MemoryStore::with_limits(64, 1)) as Arc<dyn Store>, Arc::new(sqlite)] {
        let tasks: Vec<_> = (0..8)
            .map(|number| {
                let office = Office::over(&store, &format!("run-{number}"), None);
                tokio::spawn(async move { office.unread("cut").await })
            })
            .collect();
        let mut digests = Vec::new();
        for task in tasks {
            digests.push(task.await.expect("no task fails"));
        }
        digests.dedup();
        assert_eq!(digests.len(), 1, "{digests:?}");
    }
}
