//! A process that dies after any write, while a script waits twice: another process continues from the last snapshot.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tests::Shown as _;

use tests::world::{HookAction, HookedStore};
use tokio::sync::Notify;
use tool_runtime::agent::CodeMode;
use tool_runtime::call::Decider;
use tool_runtime::runner::{ApprovalDecision, RunSnapshot};
use tool_runtime::store::{AuditRecord, DocumentKind, MemoryStore, Query, RecordFilter, Store};
use tool_runtime::testing::ManualClock;
use tool_runtime::{Capabilities, Outcome, Run, ToolCatalog, ToolPolicy, ToolRunner};

use crate::code_mode::waits::{SCRIPT, with_effects};
use crate::code_mode::{POLICY, Rig, World, call, code, options};

/// Each call of it waits.
const READS: &str = "notes__list(); notes__say(#{ text: \"a\" }); notes__list()";

struct Setting {
    rig: Rig,
    clock: Arc<ManualClock>,
    has_effects: bool,
}

impl Setting {
    fn new(has_effects: bool) -> Self {
        let clock = Arc::new(ManualClock::at("2026-01-01T00:00:00Z".parse().expect("a time")));
        let store = Arc::new(MemoryStore::with_clock(Arc::clone(&clock)));
        Self { rig: Rig { store, ..Rig::new() }, clock, has_effects }
    }

    fn script(&self) -> &'static str {
        if self.has_effects { SCRIPT } else { READS }
    }

    fn runner(&self, store: Arc<dyn Store>) -> ToolRunner {
        let tool: CodeMode = if self.has_effects { with_effects() } else { code() };
        let catalog = ToolCatalog::builder().collect().dynamic(tool).build().expect("a catalog");
        let rules = if self.has_effects { "" } else { "require_approval_for_tools = ['notes__list', 'notes__say']" };
        let policy = ToolPolicy::from_toml(&format!("{rules}\n{POLICY}")).expect("a policy");
        ToolRunner::builder(catalog, policy)
            .capabilities(Capabilities::new().with(Arc::clone(&self.rig.world) as Arc<dyn World>))
            .approvals(true)
            .clock(Arc::clone(&self.clock))
            .store(store)
            .build()
            .expect("a runner")
    }

    async fn left(&self, space: DocumentKind) -> usize {
        let mut query = Query::new(space);
        query.due = (space == DocumentKind::Call).then_some(jiff::Timestamp::MAX);
        self.rig.store.list(&query).await.expect("a list").len()
    }
}

/// Runs the script, or continues it, and approves whatever waits. Returns how it ended, if this process saw that.
async fn drive(run: &Run, script: &str, begun: bool, snapshots: &Mutex<Option<String>>) -> Option<Outcome> {
    let grace = Decider::new("grace").tenant("acme");
    let mut outcome = if begun { Outcome::ApprovalRequired } else { run.exec(call(script)).await.outcome() };
    while outcome == Outcome::ApprovalRequired {
        let snapshot = serde_json::to_string(&run.snapshot().await.expect("a snapshot")).expect("JSON");
        *snapshots.lock().expect("a lock") = Some(snapshot);
        outcome = match run.resume_shown("c1", ApprovalDecision::Approve, &grace).await {
            Ok(result) => result.outcome(),
            // The process that died had applied the decision: the call has ended, or this process takes it over.
            Err(_) => run.recover(&"c1".into()).await.expect("a store")?.outcome(),
        };
    }
    Some(outcome)
}

/// Runs until the process has made `cut` writes and dies. Returns its last snapshot, or how the script ended.
async fn die_after(world: &Setting, cut: usize) -> Result<Option<String>, Option<Outcome>> {
    let (writes, dead) = (Mutex::new(0), Arc::new(Notify::new()));
    let died = Arc::clone(&dead);
    let store = HookedStore::new(Arc::clone(&world.rig.store) as Arc<dyn Store>, move |method| {
        let mut writes = writes.lock().expect("a lock");
        let is_write = matches!(method, "append" | "update");
        *writes += usize::from(is_write);
        match *writes {
            now if now < cut => HookAction::Pass,
            now if now == cut && is_write => {
                died.notify_one();
                HookAction::Silence
            }
            _ => HookAction::After(Box::pin(std::future::pending())),
        }
    });
    let run = world.runner(Arc::new(store)).run(options());
    let snapshots = Arc::new(Mutex::new(None));
    let (kept, script) = (Arc::clone(&snapshots), world.script());
    let mut process = Box::pin(async move { drive(&run, script, false, &kept).await });
    let ended = tokio::select! {
        biased;
        () = dead.notified() => None,
        ended = &mut process => Some(ended),
    };
    // No destructor runs.
    std::mem::forget(process);
    let snapshot = snapshots.lock().expect("a lock").clone();
    ended.map_or(Ok(snapshot), Err)
}

async fn check(world: &Setting, ended: Option<Outcome>, why: &str) {
    let sealed = world.rig.store.records(&RecordFilter::default()).await.expect("records");
    let (mut ends, mut decisions) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::<_, usize>::new());
    for sealed in &sealed {
        match &sealed.record {
            AuditRecord::Call(record) => {
                ends.entry((record.run_id.clone(), record.tool_call_id.clone())).or_default().push(record.outcome);
            }
            AuditRecord::Decision(record) if record.refused().is_none() && record.decider.is_some() => {
                *decisions.entry((record.run_id.clone(), record.call_id.clone())).or_default() += 1;
            }
            _ => {}
        }
    }
    for ((run, id), outcomes) in ends.iter().filter(|((run, _), _)| **run != *"parent") {
        let decided = decisions.get(&(run.clone(), id.clone())).copied().unwrap_or_default();
        assert!(decided <= 1, "{why}: {id} was decided again");
        // A call that only reads and did not wait may run again after a crash.
        assert!(outcomes.len() == 1 || decided == 0, "{why}: {run} {id} {outcomes:?}");
    }
    assert!(world.rig.effects() <= 2, "{why}: {} effects", world.rig.effects());
    assert_eq!(
        (world.left(DocumentKind::Waiting).await, world.left(DocumentKind::Call).await),
        (0, 0),
        "{why}: {ends:?}"
    );
    let script = &ends[&("parent".into(), "c1".into())];
    assert_eq!(script.len(), 1, "{why}: {script:?}");
    assert!(ended.is_none_or(|ended| ended == script[0]), "{why}: {ended:?} {script:?}");
    match script[0] {
        Outcome::Ok => assert_eq!(world.rig.effects(), if world.has_effects { 2 } else { 0 }, "{why}"),
        // After a crash within it, its outcome is unknown.
        outcome => assert_eq!(outcome, Outcome::OutcomeUnknown, "{why}"),
    }
}

#[tokio::test]
async fn no_effect_happens_twice_and_no_call_is_lost() {
    for has_effects in [true, false] {
        let mut cut = 1;
        loop {
            let world = Setting::new(has_effects);
            let why = format!("effects: {has_effects}, after {cut} writes");
            let snapshot = match die_after(&world, cut).await {
                Ok(snapshot) => snapshot,
                Err(ended) => {
                    check(&world, ended, &why).await;
                    break;
                }
            };
            world.clock.advance(Duration::from_hours(1));
            let runner = world.runner(Arc::clone(&world.rig.store) as Arc<dyn Store>);
            let run = match &snapshot {
                Some(snapshot) => {
                    let snapshot: RunSnapshot = serde_json::from_str(snapshot).expect("a snapshot");
                    runner.restore(snapshot, options()).await.expect("a run")
                }
                None => runner.run(options()),
            };
            let ended = drive(&run, world.script(), snapshot.is_some(), &Mutex::default()).await;
            check(&world, ended, &why).await;
            cut += 1;
        }
        assert!(cut > 8, "{cut} writes");
    }
}
