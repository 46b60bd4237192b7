//! Tests the broker through the gate: fresh and revoked tokens, tokens of other principals, and files and records
//! without tokens.

use std::sync::atomic::{AtomicU32, Ordering};

use tool_runtime::store::{MemoryStore, RecordFilter, Store as _};
use tool_runtime::{Outcome, RunOptions, ToolCall, ToolCatalog, ToolExecResult, ToolPolicy, ToolRunner};

use super::*;
use crate::adapters::vault;

/// An authority that returns a preset result and counts its calls.
struct Told {
    service: Arc<CalendarService>,
    asked: AtomicU32,
    fails: Mutex<Option<fn() -> RefreshError>>,
}

#[async_trait]
impl Authority for Told {
    async fn refresh(&self, refresh: &str) -> Result<Tokens, RefreshError> {
        self.asked.fetch_add(1, Ordering::AcqRel);
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        let fails = *self.fails.lock().unwrap();
        match fails {
            Some(error) => Err(error()),
            None => self.service.refresh(refresh).await,
        }
    }
}

struct Hands(Mutex<Timestamp>);

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }
}

struct Rig {
    folder: tempfile::TempDir,
    database: Arc<Database>,
    clock: Arc<Hands>,
    told: Arc<Told>,
    first: Tokens,
    store: MemoryStore,
    failures: Arc<Mutex<Vec<String>>>,
    runner: ToolRunner,
}

impl Rig {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let database = Arc::new(Database::open(&folder.path().join("toolbox.db")).unwrap());
        let clock = Arc::new(Hands(Mutex::new("2026-11-22T12:00:00Z".parse().unwrap())));
        let key = |name| vault::key(&folder.path().join(name)).unwrap();
        let service = Arc::new(CalendarService::new(key("service.key"), Arc::clone(&clock) as _));
        let vault = Vault::new(Arc::clone(&database), key("vault.key"));
        let first = service.issue("calendar-of-ada").unwrap();
        let place = AccountKey { tenant: "north".into(), principal: "ada".into(), id: "calendar-of-ada".into() };
        vault.connect(&place, &first).unwrap();
        let told = Arc::new(Told { service: Arc::clone(&service), asked: AtomicU32::new(0), fails: Mutex::default() });
        let broker =
            CalendarBroker::new(Arc::clone(&database), service, vault, Arc::clone(&told) as _, Arc::clone(&clock) as _);
        let catalog = ToolCatalog::builder().tool::<office_tools::calendar::list_events>().build().unwrap();
        let (store, failures) = (MemoryStore::new(), Arc::<Mutex<Vec<_>>>::default());
        let told_of = Arc::clone(&failures);
        let runner = ToolRunner::builder(catalog, ToolPolicy::allow(["calendar__list_events"]))
            .broker(broker)
            .store(Arc::new(store.clone()))
            .failures(move |failure| told_of.lock().unwrap().push(failure.text.to_owned()))
            .build()
            .unwrap();
        Self { folder, database, clock, told, first, store, failures, runner }
    }

    async fn list(&self, options: RunOptions) -> ToolExecResult {
        let arguments = r#"{"from":"2026-11-23","to":"2026-11-23"}"#;
        self.runner.run(options).exec(ToolCall::text("c", "calendar__list_events", arguments)).await
    }

    async fn outcome(&self) -> Outcome {
        self.list(ada("calendar-of-ada")).await.outcome()
    }

    fn advance(&self, minutes: i64) {
        let mut now = self.clock.0.lock().unwrap();
        *now = now.saturating_add(SignedDuration::from_mins(minutes)).unwrap();
    }

    fn fail(&self, fails: Option<fn() -> RefreshError>) {
        *self.told.fails.lock().unwrap() = fails;
    }

    fn asked(&self) -> u32 {
        self.told.asked.load(Ordering::Acquire)
    }

    async fn change(&self, sql: &'static str) {
        self.database.run(move |connection| connection.execute(sql, [])).await.unwrap();
    }
}

fn ada(id: &str) -> RunOptions {
    RunOptions::new().tenant("north").principal("ada").connection("calendar", id.into())
}

#[tokio::test]
async fn a_hundred_calls_refresh_once() {
    let rig = Arc::new(Rig::new());
    assert_eq!((rig.outcome().await, rig.asked()), (Outcome::Ok, 0));
    rig.advance(14);
    let call = || {
        let rig = Arc::clone(&rig);
        tokio::spawn(async move { rig.outcome().await })
    };
    let calls: Vec<_> = (0..100).map(|_| call()).collect();
    for call in calls {
        assert_eq!(call.await.unwrap(), Outcome::Ok);
    }
    assert_eq!(rig.asked(), 1);
    rig.advance(13);
    assert_eq!((rig.outcome().await, rig.asked()), (Outcome::Ok, 1), "the new token lasts as long");
}

#[tokio::test]
async fn a_refresh_that_fails_leaves_the_old_token_until_it_ends() {
    let rig = Rig::new();
    rig.fail(Some(|| RefreshError::Failed("down".into())));
    rig.advance(14);
    for _ in 0..5 {
        assert_eq!(rig.outcome().await, Outcome::Ok);
    }
    assert_eq!(rig.asked(), 1, "nobody tries again immediately");
    rig.advance(1);
    assert_eq!(rig.outcome().await, Outcome::ConnectionFailed);
    rig.fail(Some(|| RefreshError::Refused));
    assert_eq!(rig.outcome().await, Outcome::ConnectionUnavailable);
    rig.fail(None);
    assert_eq!(rig.outcome().await, Outcome::Ok);
}

#[tokio::test]
async fn a_call_that_is_given_up_does_not_cut_off_the_refresh() {
    let rig = Rig::new();
    rig.advance(14);
    let refreshing = async {
        while rig.asked() == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        () = refreshing => {}
        outcome = rig.outcome() => panic!("{outcome:?} before the refresh was asked for"),
    }
    rig.fail(Some(|| RefreshError::Refused));
    assert_eq!((rig.outcome().await, rig.asked()), (Outcome::Ok, 1), "it waited for the first");
}

#[tokio::test]
async fn a_revoked_connection_is_gone_with_the_next_call() {
    let rig = Rig::new();
    assert_eq!(rig.outcome().await, Outcome::Ok);
    rig.change("UPDATE connections SET sealed = NULL").await;
    assert_eq!(rig.outcome().await, Outcome::ConnectionUnavailable);
    // Revokes the connection during a refresh.
    let rig = Arc::new(Rig::new());
    rig.advance(14);
    let other = Arc::clone(&rig);
    let call = tokio::spawn(async move { other.outcome().await });
    while rig.asked() == 0 {
        tokio::task::yield_now().await;
    }
    rig.change("UPDATE connections SET sealed = NULL").await;
    assert_eq!(call.await.unwrap(), Outcome::ConnectionUnavailable, "it is not written back");
    assert_eq!(rig.outcome().await, Outcome::ConnectionUnavailable);
}

#[tokio::test]
async fn an_account_of_others_is_one_that_is_not_there() {
    let rig = Rig::new();
    let unknown = rig.list(ada("nobody's")).await;
    let (foreign, nobody) = (ada("calendar-of-ada").tenant("south"), RunOptions::new());
    for options in
        [foreign, ada("calendar-of-ada").principal("eve"), nobody.connection("calendar", "calendar-of-ada".into())]
    {
        let result = rig.list(options).await;
        assert_eq!((result.to_model(), result.detail()), (unknown.to_model(), unknown.detail()));
        assert_eq!(result.outcome(), Outcome::ConnectionUnavailable);
    }
    // Sealed tokens that are moved to another row cannot be opened.
    rig.change("UPDATE connections SET principal = 'eve'").await;
    assert_eq!(rig.list(ada("calendar-of-ada").principal("eve")).await.outcome(), Outcome::ConnectionFailed);
}

#[tokio::test]
async fn tokens_are_nowhere_in_the_clear() {
    let rig = Rig::new();
    rig.advance(14);
    let delivered = rig.list(ada("calendar-of-ada")).await;
    assert_eq!(delivered.outcome(), Outcome::Ok);
    rig.advance(20);
    rig.fail(Some(|| RefreshError::Refused));
    let refused = rig.list(ada("calendar-of-ada")).await;
    let mut all = format!("{delivered:?}{refused:?}{:?}{}", rig.failures.lock().unwrap(), refused.to_model());
    let records = rig.store.records(&RecordFilter::default()).await.unwrap();
    records.iter().for_each(|record| all.push_str(&serde_json::to_string(record).unwrap()));
    let mut files = all.into_bytes();
    for entry in std::fs::read_dir(rig.folder.path()).unwrap() {
        files.extend(std::fs::read(entry.unwrap().path()).unwrap());
    }
    let is_in = |text: &str| files.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(is_in("calendar__list_events") && is_in("Team meeting"), "the files and the records were read");
    for token in [&rig.first.access, &rig.first.refresh] {
        assert!(!is_in(token) && !is_in(&token[..32]));
    }
}
