//! A process that dies after any write, while a graph waits twice: another process continues from the last document
//! that the first one wrote, or from the one before.

use super::*;
use tests::world::{HookAction, HookedStore};
use tokio::sync::Notify;
use tool_runtime::agent::{Input, SavedConversation, Step};
use tool_runtime::call::Decider;
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::{AuditRecord, Key, Transaction};
use tool_runtime::testing::ManualClock;

const RULES: &str = "require_approval_for_tools = ['notes__delete', 'notes__page']";

fn asks(_: &str, answered: usize) -> ScriptedTurn {
    if answered > 0 {
        return ScriptedTurn::text("Cleaned up.");
    }
    call("p1", "graph__researcher", r#"{"task":"Clean up."}"#)
}

/// Two notes, one after the other.
fn deletes(_: &str, answered: usize) -> ScriptedTurn {
    match answered {
        0 => call("c1", "notes__list", "{}"),
        1 => call("c2", "notes__delete", r#"{"note_id":7}"#),
        2 => call("c3", "notes__delete", r#"{"note_id":8}"#),
        _ => ScriptedTurn::text(REPORT),
    }
}

/// Two pages in one turn, and one after them.
fn reads(_: &str, answered: usize) -> ScriptedTurn {
    match answered {
        0 => call("c2", "notes__page", "{}").and_call("c3", "notes__page", "{}"),
        1 => call("c4", "notes__page", "{}"),
        _ => ScriptedTurn::text(REPORT),
    }
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// It has effects: after a crash, its outcome is unknown.
    Effects,
    /// It has effects, and can be worked on again.
    Idempotent,
    Reads,
}

struct Setting {
    rig: Rig,
    clock: Arc<ManualClock>,
    store: Arc<MemoryStore>,
    kind: Kind,
}

impl Setting {
    fn new(kind: Kind) -> Self {
        let clock = Arc::new(ManualClock::at("2026-01-01T00:00:00Z".parse().expect("a time")));
        let store = Arc::new(MemoryStore::with_clock(Arc::clone(&clock)));
        Self { rig: Rig { store: Arc::clone(&store), ..Rig::new() }, clock, store, kind }
    }

    fn runner(&self, store: Arc<dyn Store>) -> ToolRunner {
        let graph = match self.kind {
            Kind::Reads => Graph::new("researcher", "1", Agent::new(Follows(reads))).tools(READS),
            Kind::Effects | Kind::Idempotent => {
                Graph::new("researcher", "1", Agent::new(Follows(deletes))).tools(TOOLS)
            }
        };
        let graph = graph.description("Researches.");
        let graph = if matches!(self.kind, Kind::Idempotent) { graph.idempotent() } else { graph };
        let catalog = ToolCatalog::builder().namespaces(["notes"]).dynamic(graph).build().expect("a catalog");
        let policy = ToolPolicy::from_toml(&format!("{RULES}\n{POLICY}")).expect("a policy");
        ToolRunner::builder(catalog, policy)
            .capabilities(self.rig.capabilities())
            .approvals(true)
            .clock(Arc::clone(&self.clock))
            .store(store)
            .build()
            .expect("a runner")
    }
}

/// Takes steps to the end, keeps the document after each, and approves whatever waits.
async fn drive(conversation: &mut Conversation, documents: &Mutex<Vec<String>>) -> TurnOutcome {
    let bob = Decider::new("bob").tenant("acme");
    for _ in 0..40 {
        match conversation.step().await {
            Step::Waits(calls) => {
                let approve = |input: Input, question| input.decide(question, ApprovalDecision::Approve, &bob);
                let approved = calls.iter().map(|call| &call.question).fold(Input::new(), approve);
                conversation.accept(approved).await.expect("they wait");
            }
            Step::Ended(ended) => return ended,
            _ => {}
        }
        let saved = conversation.save().await.expect("a document");
        documents.lock().expect("a lock").push(serde_json::to_string(&saved).expect("JSON"));
    }
    panic!("no end");
}

/// Runs until the process has made `cut` writes and dies. Returns its documents. `None` if it finished.
async fn die_after(world: &Setting, cut: usize) -> Option<Vec<String>> {
    let (writes, dead) = (Arc::new(Mutex::new(0)), Arc::new(Notify::new()));
    let died = Arc::clone(&dead);
    let store = HookedStore::new(Arc::clone(&world.store) as Arc<dyn Store>, move |method| {
        let mut writes = writes.lock().expect("a lock");
        *writes += usize::from(matches!(method, "append" | "update"));
        match *writes {
            now if now < cut => HookAction::Pass,
            now if now == cut && matches!(method, "append" | "update") => {
                died.notify_one();
                HookAction::Silence
            }
            _ => HookAction::After(Box::pin(std::future::pending())),
        }
    });
    let runner = world.runner(Arc::new(store));
    let mut conversation = Agent::new(Follows(asks)).converse(runner.run(world.rig.options()));
    let documents = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&documents);
    let mut process = Box::pin(async move {
        conversation.accept(Input::from("Clean up.")).await.expect("a message");
        drive(&mut conversation, &kept).await
    });
    let ended = tokio::select! {
        biased;
        () = dead.notified() => false,
        ended = &mut process => {
            assert!(matches!(ended, TurnOutcome::Answered { .. }), "{ended:?}");
            true
        }
    };
    // No destructor runs.
    std::mem::forget(process);
    let documents = documents.lock().expect("a lock").clone();
    (!ended).then_some(documents)
}

/// Another process continues, long after.
async fn continued(world: &Setting, document: Option<&String>) -> TurnOutcome {
    world.clock.advance(Duration::from_hours(1));
    let runner = world.runner(Arc::clone(&world.store) as Arc<dyn Store>);
    let parent = Agent::new(Follows(asks));
    let documents = Mutex::default();
    let mut conversation = match document {
        Some(document) => {
            let saved: SavedConversation = serde_json::from_str(document).expect("a document");
            parent.restore(&runner, world.rig.options(), saved).await.expect("restored")
        }
        None => {
            let mut conversation = parent.converse(runner.run(world.rig.options()));
            conversation.accept(Input::from("Clean up.")).await.expect("a message");
            conversation
        }
    };
    drive(&mut conversation, &documents).await
}

async fn left(world: &Setting, space: DocumentKind) -> usize {
    let mut query = Query::new(space);
    query.due = (space == DocumentKind::Call).then_some(jiff::Timestamp::MAX);
    world.store.list(&query).await.expect("a list").len()
}

async fn check(world: &Setting, why: &str) {
    let effects = world.rig.world.0.lock().expect("a lock").clone();
    for note in [7, 8] {
        assert!(effects.iter().filter(|effect| **effect == note).count() <= 1, "{why}: twice {effects:?}");
    }
    let sealed = world.store.records(&RecordFilter::default()).await.expect("records");
    let mut ended = std::collections::BTreeMap::<_, Vec<_>>::new();
    let mut approved = std::collections::BTreeMap::<_, usize>::new();
    for sealed in &sealed {
        match &sealed.record {
            AuditRecord::Call(record) => {
                ended.entry(record.tool_call_id.to_string()).or_default().push(record.outcome);
            }
            AuditRecord::Decision(record) if record.refused().is_none() && record.decider.is_some() => {
                *approved.entry(record.call_id.to_string()).or_default() += 1;
            }
            _ => {}
        }
    }
    for (id, outcomes) in &ended {
        // A tool that only reads may be called again after a crash.
        assert!(outcomes.len() == 1 || id == "c1", "{why}: {id} {outcomes:?}");
    }
    for (id, decisions) in approved.iter().filter(|(id, _)| *id != "p1") {
        assert_eq!(*decisions, 1, "{why}: {id} was decided again");
    }
    assert_eq!(
        (left(world, DocumentKind::Waiting).await, left(world, DocumentKind::Call).await),
        (0, 0),
        "{why}: {ended:?}"
    );
    // A deletion that is reported as done took place.
    for (id, note) in [("c2", 7), ("c3", 8)] {
        let done = effects.contains(&note);
        match ended.get(id).and_then(|outcomes| outcomes.first()) {
            Some(Outcome::Ok) => assert!(done || matches!(world.kind, Kind::Reads), "{why}: {id}"),
            Some(Outcome::OutcomeUnknown) => {}
            other => assert!(!done, "{why}: {id} {other:?} {effects:?}"),
        }
    }
    let graph = &ended["p1"];
    assert!(matches!(graph[0], Outcome::Ok | Outcome::OutcomeUnknown), "{why}: {graph:?}");
}

/// No process continues the run: once the leases are over, and the time to decide is, sweeps end every call, with one
/// record for each.
#[tokio::test]
async fn sweeps_end_every_call_of_a_process_that_died_anywhere() {
    for kind in [Kind::Effects, Kind::Idempotent, Kind::Reads] {
        let mut cut = 1;
        loop {
            let world = Setting::new(kind);
            if die_after(&world, cut).await.is_none() {
                break;
            }
            let runner = world.runner(Arc::clone(&world.store) as Arc<dyn Store>);
            // A graph that works again in a sweep waits again.
            for _ in 0..3 {
                world.clock.advance(Duration::from_hours(48));
                runner.sweep().await.expect("swept");
            }
            let open = (left(&world, DocumentKind::Waiting).await, left(&world, DocumentKind::Call).await);
            assert_eq!(open, (0, 0), "{kind:?}, write {cut}");
            let sealed = world.store.records(&RecordFilter::default()).await.expect("records");
            // A tool that only reads may be called again after a crash.
            let calls =
                sealed.iter().filter_map(|sealed| sealed.record.as_call()).filter(|call| *call.name != *"notes__list");
            let mut ids: Vec<_> = calls.map(|record| (record.run_id.clone(), record.tool_call_id.clone())).collect();
            let all = ids.len();
            ids.sort();
            ids.dedup();
            assert_eq!(ids.len(), all, "{kind:?}, write {cut}: one record for each call");
            cut += 1;
        }
        assert!(cut > 6, "{kind:?}: {cut} writes");
    }
}

/// A tool that no process has any more does not let its calls wait forever.
#[tokio::test]
async fn a_waiting_call_of_a_tool_that_is_gone_ends_a_week_later() {
    let world = Setting::new(Kind::Effects);
    let run = world.runner(Arc::clone(&world.store) as Arc<dyn Store>).run(world.rig.options());
    let page = ToolCall::text("d1", "notes__page", "{}");
    assert_eq!(run.exec(page).await.outcome(), Outcome::ApprovalRequired);
    let catalog = ToolCatalog::builder().build().expect("a catalog");
    let without = ToolRunner::builder(catalog, ToolPolicy::deny_all())
        .clock(Arc::clone(&world.clock))
        .store(Arc::clone(&world.store))
        .build()
        .expect("a runner");
    for (days, waits) in [(2, 1), (7, 0)] {
        world.clock.advance(Duration::from_hours(24 * days));
        without.sweep().await.expect("swept");
        assert_eq!(left(&world, DocumentKind::Waiting).await, waits, "after {days} days");
    }
    let outcomes: Vec<_> = world.rig.records().await.into_iter().map(|record| record.outcome).collect();
    assert_eq!((outcomes, world.rig.effects()), (vec![Outcome::ApprovalExpired], 0));
}

/// Removes the key of the digests, from which the id of a graph's run is made.
async fn lose_the_key(world: &Setting) {
    let lose = |transaction: &mut Transaction| transaction.remove(&Key::digest_key());
    world.store.update(vec![Key::digest_key()], Box::new(lose)).await.expect("it is lost");
}

#[tokio::test]
async fn no_call_runs_twice_and_none_is_lost() {
    for (kind, is_lost) in
        [(Kind::Effects, false), (Kind::Idempotent, false), (Kind::Reads, false), (Kind::Idempotent, true)]
    {
        for before in [0, 1] {
            let mut cut = 1;
            loop {
                let world = Setting::new(kind);
                let Some(documents) = die_after(&world, cut).await else { break };
                if is_lost {
                    lose_the_key(&world).await;
                }
                let document = documents.len().checked_sub(1 + before).and_then(|at| documents.get(at));
                let why =
                    format!("{kind:?}, lost {is_lost}, write {cut}, {before} before, {} documents", documents.len());
                let ended = continued(&world, document).await;
                assert!(matches!(ended, TurnOutcome::Answered { .. }), "{why}: {ended:?}");
                check(&world, &why).await;
                cut += 1;
            }
            assert!(cut > 6, "{kind:?}: {cut} writes");
        }
    }
}
