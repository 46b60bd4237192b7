//! The ledger, as the gate uses it: a call that may have an effect is entered before it begins, begins at most once for
//! each key, and has one record, whichever process ends it.

use std::ops::Deref;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tests::Shown as _;

use tests::world::{EventLog, HookAction, HookedStore, Processes, World};
use tool_runtime::call::CallId;
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::{Key, RecordFilter, Store, StoreError};
use tool_runtime::{
    Call, Cap, Event, Outcome, Reconciled, Run, RunOptions, ToolCall, ToolComponent, ToolError, ToolRunner, capability,
    tool,
};

/// An outside system that knows the keys of calls.
#[capability(effect = state_change)]
pub(crate) trait Keys {
    /// Has the effect that belongs to a key.
    ///
    /// # Errors
    ///
    /// If the key is refused.
    fn settle(&self, key: &str) -> Result<(), ToolError>;
    /// Refuses a key from now on.
    fn refuse(&self, key: &str);
}

/// Has an effect that can be looked up.
#[tool(name = "ledger__known", effect = state_change, redact = ["$"])]
struct Known {
    /// The case: the number selects what `reconcile` returns.
    number: u32,
}

impl ToolComponent for Known {
    type Capabilities = (Cap<dyn World>, Cap<dyn Keys>);
    type Output = u32;

    async fn run(self, (world, keys): Self::Capabilities, call: &Call<Self>) -> Result<u32, ToolError> {
        world.happen();
        world.door().pass().await;
        keys.settle(&call.idempotency_key())?;
        Ok(self.number)
    }

    async fn reconcile(self, (_, keys): Self::Capabilities, call: &Call<Self>) -> Result<Reconciled<u32>, ToolError> {
        assert_eq!(call.idempotency_key().len(), 64);
        match self.number {
            0 => Ok(Reconciled::Unknown),
            // The world refuses the key from now on.
            1 => {
                keys.refuse(&call.idempotency_key());
                Ok(Reconciled::Prevented)
            }
            2 => Err(ToolError::code("down")),
            3 => panic!("CANARY"),
            number => Ok(Reconciled::TookEffect(number)),
        }
    }
}

/// The effects of an outside system, by the keys of calls.
#[derive(Default)]
struct Kept {
    settled: AtomicU32,
    refused: Mutex<Vec<String>>,
}

impl Keys for Kept {
    fn settle(&self, key: &str) -> Result<(), ToolError> {
        if self.refused.lock().expect("no poison").iter().any(|refused| refused == key) {
            return Err(ToolError::code("refused"));
        }
        self.settled.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    fn refuse(&self, key: &str) {
        self.refused.lock().expect("no poison").push(key.to_owned());
    }
}

/// Several processes over one store, in one world, with an outside system.
struct Rig {
    shared: Processes,
    keys: Arc<Kept>,
}

impl Deref for Rig {
    type Target = Processes;

    fn deref(&self) -> &Processes {
        &self.shared
    }
}

impl Rig {
    fn new() -> Self {
        Self { shared: Processes::at("2026-01-01T00:00:00Z", 0), keys: Arc::default() }
    }

    fn process(&self, store: Arc<dyn Store>, rules: &str) -> ToolRunner {
        let policy = format!("allowed_tools = ['world__write', 'world__again', 'ledger__known']\n{rules}");
        self.start(store, &policy, self.capabilities().with(Arc::clone(&self.keys) as Arc<dyn Keys>))
    }

    fn run(&self) -> Run {
        self.process(Arc::clone(&self.store) as _, "").run(ada())
    }

    /// The outcomes of the records of all calls.
    async fn outcomes(&self) -> Vec<(String, Outcome)> {
        let records = self.closed().await;
        records.into_iter().map(|record| (record.tool_call_id.to_string(), record.outcome)).collect()
    }
}

fn ada() -> RunOptions {
    RunOptions::new().run_id("run-1").principal("ada")
}

fn slow_call(id: &str) -> ToolCall {
    ToolCall::text(id, "world__write", r#"{"number":7}"#)
}

fn again_call(id: &str) -> ToolCall {
    ToolCall::text(id, "world__again", r#"{"number":7}"#)
}

#[tokio::test]
async fn the_same_key_in_another_process_gets_the_stored_result() {
    let rig = Rig::new();
    rig.open(1);
    let first = rig.run().exec(slow_call("c")).await;
    assert_eq!((first.outcome(), first.to_model().as_str()), (Outcome::Ok, "7"));
    let second = rig.run().exec(slow_call("c")).await;
    assert_eq!((second.outcome(), second.to_model().as_str(), rig.effects()), (Outcome::Ok, "7", 1));
    assert_eq!(rig.outcomes().await, [("c".to_owned(), Outcome::Ok)]);
    // Another key: other arguments, another call, another run.
    rig.open(3);
    rig.run().exec(ToolCall::text("c", "world__write", r#"{"number":8}"#)).await;
    rig.run().exec(slow_call("d")).await;
    rig.process(Arc::clone(&rig.store) as _, "").run(ada().run_id("run-2")).exec(slow_call("c")).await;
    assert_eq!(rig.effects(), 4);
}

#[tokio::test]
async fn a_call_of_another_process_is_reported_as_running() {
    let rig = Rig::new();
    let running = rig.stuck(rig.run().exec(slow_call("c"))).await;
    let second = rig.run().exec(slow_call("c")).await;
    assert_eq!((second.outcome(), second.executed()), (Outcome::OutcomeUnknown, true));
    assert!(second.to_model().contains("still running in another process"), "{}", second.to_model());
    assert!(rig.outcomes().await.is_empty(), "its record is not ours to write");
    rig.open(1);
    running.await.expect("it ends");
    assert_eq!((rig.outcomes().await, rig.effects()), (vec![("c".to_owned(), Outcome::Ok)], 1));
}

#[tokio::test]
async fn a_call_whose_owner_is_gone_is_unknown_and_does_not_run_again() {
    let rig = Rig::new();
    // Killed: its future neither continues nor is dropped.
    std::mem::forget(rig.stuck(rig.run().exec(slow_call("c"))).await);
    rig.clock.advance(Duration::from_secs(29));
    assert!(rig.run().exec(slow_call("c")).await.to_model().contains("still running in another process"));
    rig.clock.advance(Duration::from_secs(1));
    let second = rig.run().exec(slow_call("c")).await;
    assert_eq!((second.outcome(), rig.effects()), (Outcome::OutcomeUnknown, 1));
    let records = rig.store.calls(&RecordFilter::default()).await.expect("records");
    assert_eq!((records.len(), records[0].cause(), records[0].executed), (1, Some("lost"), true));
    // If the call is made once more, its record answers.
    assert_eq!(rig.run().exec(slow_call("c")).await.outcome(), Outcome::OutcomeUnknown);
    assert_eq!((rig.outcomes().await.len(), rig.effects()), (1, 1));
}

#[tokio::test]
async fn an_idempotent_call_whose_owner_is_gone_runs_again() {
    let rig = Rig::new();
    let stale = rig.stuck(rig.run().exec(again_call("c"))).await;
    rig.clock.advance(Duration::from_secs(30));
    // Another process sweeps: the run may be continued, so its call stays open.
    (&*rig.store as &dyn Store).sweep().await.expect("it sweeps");
    let other = rig.run().exec(again_call("c"));
    let running = rig.stuck(other).await;
    rig.open(2);
    running.await.expect("it ends");
    stale.await.expect("it ends");
    assert_eq!((rig.outcomes().await, rig.effects()), (vec![("c".to_owned(), Outcome::Ok)], 2));
}

#[tokio::test]
async fn a_stopped_process_returns_the_recorded_outcome() {
    let rig = Rig::new();
    let run = rig.run();
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let call = run.exec(slow_call("c"));
    let stale = rig
        .stuck(async move {
            let result = call.await;
            sender.send((result.outcome(), result.to_model())).expect("somebody listens");
            result
        })
        .await;
    rig.clock.advance(Duration::from_secs(30));
    let looked = rig.run().recorded(&CallId::new("c")).await.expect("a store").expect("it began");
    assert_eq!(looked.outcome(), Outcome::OutcomeUnknown);
    rig.open(1);
    stale.await.expect("it ends");
    let (outcome, _) = receiver.await.expect("a result");
    assert_eq!(outcome, Outcome::OutcomeUnknown, "its record says so");
    assert_eq!(rig.outcomes().await, [("c".to_owned(), Outcome::OutcomeUnknown)]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_runs_long_keeps_its_lease() {
    let rig = Rig::new();
    rig.wait_for(Duration::from_secs(1000));
    let running = rig.stuck(rig.run().exec(slow_call("c"))).await;
    for _ in 0..10 {
        // Both clocks: the store's, and the one by which the lease is prolonged.
        rig.clock.advance(Duration::from_secs(10));
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
    assert!(rig.run().exec(slow_call("c")).await.to_model().contains("still running in another process"));
    rig.open(1);
    running.await.expect("it ends");
    assert_eq!(rig.outcomes().await, [("c".to_owned(), Outcome::Ok)]);
}

#[tokio::test]
async fn what_cannot_be_entered_does_not_run() {
    let rig = Rig::new();
    let failing = |method| match method {
        "update" => HookAction::Fail(StoreError::Unavailable("the disk is gone".into())),
        _ => HookAction::Pass,
    };
    let store: Arc<dyn Store> = Arc::new(HookedStore::new(Arc::clone(&rig.store) as _, failing));
    // No other process can have had a run whose id was made here.
    let result = rig.process(Arc::clone(&store), "").run(RunOptions::new()).exec(slow_call("c")).await;
    assert_eq!((result.outcome(), result.executed(), rig.effects()), (Outcome::Cancelled, false, 0));
    assert!(result.to_model().contains("did not run"), "{}", result.to_model());
    // Under an id that was given, one of them may have begun the call.
    let result = rig.process(store, "").run(ada()).exec(slow_call("c")).await;
    assert_eq!((result.outcome(), rig.effects()), (Outcome::OutcomeUnknown, 0));
}

/// A process that refuses a call before the ledger is asked.
struct Refusal {
    what: &'static str,
    rules: &'static str,
    options: RunOptions,
    is_cancelled: bool,
}

impl Refusal {
    fn run(&self, rig: &Rig, store: Arc<dyn Store>) -> Run {
        let run = rig.process(store, self.rules).run(self.options.clone());
        if self.is_cancelled {
            run.cancel();
        }
        run
    }
}

fn refusals() -> [Refusal; 3] {
    let label = "[labels.seen]\nfrom_run = true\ndeny_effects = ['state_change']";
    [
        Refusal { what: "cancelled", rules: "", options: ada(), is_cancelled: true },
        Refusal { what: "denied", rules: label, options: ada().label("seen"), is_cancelled: false },
        Refusal { what: "not offered", rules: "", options: ada().tools(["world__again"]), is_cancelled: false },
    ]
}

/// Another process took the call to its end, and this one refuses it: the call keeps its one record, and the recorded
/// result is the answer.
#[tokio::test]
async fn a_call_that_ended_elsewhere_gets_no_second_record() {
    for case in refusals() {
        let rig = Rig::new();
        rig.open(1);
        assert_eq!(rig.run().exec(slow_call("c")).await.outcome(), Outcome::Ok);
        let here = || case.run(&rig, Arc::clone(&rig.store) as _);
        for _ in 0..2 {
            let result = here().exec(slow_call("c")).await;
            assert_eq!((result.outcome(), result.to_model().as_str()), (Outcome::Ok, "7"), "{}", case.what);
        }
        drop(here().exec(slow_call("c")));
        settle().await;
        assert_eq!(rig.outcomes().await, [("c".to_owned(), Outcome::Ok)], "{}", case.what);
        // This record does not answer a call of another tool.
        let other = ToolCall::text("c", "ledger__known", r#"{"number":7}"#);
        assert!(!here().exec(other).await.executed(), "{}", case.what);
    }
}

/// A call that another process refused keeps its one record, too. Unreadable arguments with another text are another
/// call.
#[tokio::test]
async fn a_call_that_was_refused_elsewhere_is_refused_once() {
    let rig = Rig::new();
    let call = |arguments: &str| ToolCall::text("c", "world__write", arguments);
    for (arguments, outcome, records) in [
        ("{}", Outcome::ValidationError, 1),
        ("{}", Outcome::ValidationError, 1),
        (r#"{"number":"x"}"#, Outcome::ValidationError, 2),
        (r#"{"number":"#, Outcome::InvalidJson, 3),
        (r#"{"number":"#, Outcome::InvalidJson, 3),
    ] {
        assert_eq!(rig.run().exec(call(arguments)).await.outcome(), outcome, "{arguments}");
        assert_eq!(rig.outcomes().await.len(), records, "{arguments}");
    }
    // The valid call differs from all of them, so it runs.
    rig.open(1);
    assert_eq!(rig.run().exec(slow_call("c")).await.outcome(), Outcome::Ok);
}

/// Another process began the call, and this one drops it before the ledger is asked: no event reports it as cancelled.
#[tokio::test]
async fn dropping_a_call_of_another_process_does_not_cancel_it() {
    for case in refusals() {
        let rig = Rig::new();
        let running = rig.stuck(rig.run().exec(slow_call("c"))).await;
        let heard = EventLog::default();
        let options = ada().events(heard.sink());
        drop(rig.process(Arc::clone(&rig.store) as _, "").run(options).exec(slow_call("c")));
        drop(case.run(&rig, Arc::clone(&rig.store) as _).exec(slow_call("c")));
        settle().await;
        let told = heard.take().into_iter().filter_map(|event| match event {
            Event::ToolCallResult { outcome, .. } => Some(outcome),
            _ => None,
        });
        assert_eq!(told.collect::<Vec<_>>(), [Outcome::OutcomeUnknown], "{}", case.what);
        assert!(rig.outcomes().await.is_empty(), "its record is not ours to write");
        rig.open(1);
        running.await.expect("it ends");
        assert_eq!(rig.outcomes().await, [("c".to_owned(), Outcome::Ok)], "{}", case.what);
    }
    // If nothing began, the call was cancelled. If the ledger cannot be asked, the outcome is unknown.
    let rig = Rig::new();
    drop(rig.run().exec(slow_call("c")));
    settle().await;
    assert_eq!(rig.outcomes().await, [("c".to_owned(), Outcome::Cancelled)]);
    let call = rig.run().exec(slow_call("d"));
    std::thread::spawn(move || drop(call)).join().expect("it is dropped");
    assert_eq!(rig.outcomes().await[1], ("d".to_owned(), Outcome::OutcomeUnknown));
}

/// Waits until the spawned tasks have run.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

/// Another process began the call, and this one refuses it for its own reason: no report says that it did not run, and
/// it keeps its one record.
#[tokio::test]
async fn a_call_of_another_process_is_not_refused() {
    for case in refusals() {
        let what = case.what;
        let here = |rig: &Rig| case.run(rig, Arc::clone(&rig.store) as _);
        // If nothing began, the refusal counts.
        let alone = here(&Rig::new()).exec(slow_call("c")).await;
        assert!(!alone.executed() && alone.outcome() != Outcome::OutcomeUnknown, "{what}: {:?}", alone.outcome());
        for is_gone in [false, true] {
            let rig = Rig::new();
            std::mem::forget(rig.stuck(rig.run().exec(slow_call("c"))).await);
            if is_gone {
                rig.clock.advance(Duration::from_secs(30));
            }
            let result = here(&rig).exec(slow_call("c")).await;
            assert_eq!((result.outcome(), result.executed()), (Outcome::OutcomeUnknown, true), "{what} {is_gone}");
            // Another call is refused as it would be anywhere.
            let other = here(&rig).exec(ToolCall::text("d", "world__write", r#"{"number":1}"#)).await;
            assert_eq!(other.outcome(), alone.outcome(), "{what}");
            rig.clock.advance(Duration::from_secs(30));
            drop(rig.run().recorded(&CallId::new("c")).await.expect("a store"));
            let mut outcomes = rig.outcomes().await;
            outcomes.retain(|(id, _)| id == "c");
            assert_eq!(outcomes, [("c".to_owned(), Outcome::OutcomeUnknown)], "{what} {is_gone}: one record");
        }
        // The store cannot be asked.
        let rig = Rig::new();
        let down = |_| HookAction::Fail(StoreError::Unavailable("the disk is gone".into()));
        let store = Arc::new(HookedStore::new(Arc::clone(&rig.store) as _, down));
        let result = case.run(&rig, store).exec(slow_call("c")).await;
        assert_eq!(result.outcome(), Outcome::OutcomeUnknown, "{what}: the store is down");
    }
}

#[tokio::test]
async fn reconcile_settles_a_call() {
    let cases = [
        (0, Outcome::OutcomeUnknown, true),
        (1, Outcome::Cancelled, false),
        (2, Outcome::OutcomeUnknown, true),
        (3, Outcome::OutcomeUnknown, true),
        (4, Outcome::Ok, true),
    ];
    for (number, outcome, executed) in cases {
        let rig = Rig::new();
        let call = || ToolCall::text("c", "ledger__known", format!(r#"{{"number":{number}}}"#));
        std::mem::forget(rig.stuck(rig.run().exec(call())).await);
        rig.clock.advance(Duration::from_secs(30));
        // Another process sweeps, and the tool is asked all the same.
        (&*rig.store as &dyn Store).sweep().await.expect("it sweeps");
        let result = rig.run().exec(call()).await;
        assert_eq!((result.outcome(), result.executed(), rig.effects()), (outcome, executed, 1), "{number}");
        assert!(!result.to_model().contains("CANARY"));
        assert_eq!(rig.outcomes().await, [("c".to_owned(), outcome)], "one record: {number}");
        assert_eq!(rig.run().exec(call()).await.outcome(), outcome, "settled: {number}");
    }
}

/// The first attempt was only stopped, past its lease, and continues after another process has recorded its outcome.
#[tokio::test]
async fn a_prevented_call_stays_cancelled() {
    let rig = Rig::new();
    let call = || ToolCall::text("c", "ledger__known", r#"{"number":1}"#);
    let stale = rig.stuck(rig.run().exec(call())).await;
    rig.clock.advance(Duration::from_secs(30));
    let result = rig.run().exec(call()).await;
    assert_eq!((result.outcome(), result.executed()), (Outcome::Cancelled, false));
    // The model makes it again, as another call.
    let again = rig.stuck(rig.run().exec(ToolCall::text("d", "ledger__known", r#"{"number":1}"#))).await;
    rig.open(2);
    stale.await.expect("it ends");
    again.await.expect("it ends");
    assert_eq!(rig.keys.settled.load(Ordering::Acquire), 1, "the first attempt came too late");
    let outcomes = rig.outcomes().await;
    assert_eq!(outcomes, [("c".to_owned(), Outcome::Cancelled), ("d".to_owned(), Outcome::Ok)]);
    let records = rig.store.calls(&RecordFilter::default()).await.expect("records");
    assert_eq!((records[0].cause(), records[0].executed), (Some("prevented"), false));
}

/// If a run had other processes, only the ledger can show that a call did not begin in one of them.
#[tokio::test]
async fn a_restored_run_does_not_deny_what_it_cannot_look_up() {
    let rig = Rig::new();
    let saved = rig.run().snapshot().await.expect("a snapshot");
    std::mem::forget(rig.stuck(rig.run().exec(slow_call("c"))).await);
    let failing = |method| match method {
        "update" => HookAction::Fail(StoreError::Unavailable("the disk is gone".into())),
        _ => HookAction::Pass,
    };
    let store = Arc::new(HookedStore::new(Arc::clone(&rig.store) as _, failing));
    let run = rig.process(store, "").restore(saved, ada()).await.expect("a run");
    assert_eq!((run.exec(slow_call("c")).await.outcome(), rig.effects()), (Outcome::OutcomeUnknown, 1));
}

#[tokio::test]
async fn a_dropped_call_leaves_the_ledger() {
    let rig = Rig::new();
    let running = rig.stuck(rig.run().exec(slow_call("c"))).await;
    running.abort();
    assert!(running.await.is_err());
    assert_eq!(rig.outcomes().await, [("c".to_owned(), Outcome::OutcomeUnknown)]);
    assert_eq!(rig.run().exec(slow_call("c")).await.outcome(), Outcome::OutcomeUnknown, "not running: it has ended");
    assert_eq!((rig.outcomes().await.len(), rig.effects()), (1, 1));
}

#[tokio::test]
async fn an_approved_call_begins_once_and_is_never_lost() {
    let rig = Rig::new();
    let rules = "require_approval_for_tools = ['world__write']";
    let process = || rig.process(Arc::clone(&rig.store) as _, rules).run(ada());
    assert_eq!(process().exec(slow_call("c")).await.outcome(), Outcome::ApprovalRequired);
    let approved = process();
    let call =
        async move { approved.resume_shown("c", ApprovalDecision::Approve, &tests::grace()).await.expect("it waits") };
    std::mem::forget(rig.stuck(call).await);
    assert!(
        rig.store
            .pending(&Key::waiting("run-1", None, Some("ada"), &CallId::new("c")))
            .await
            .expect("a store")
            .is_none(),
        "decided and begun"
    );
    rig.clock.advance(Duration::from_secs(30));
    let error = process().resume_shown("c", ApprovalDecision::Approve, &tests::grace()).await.expect_err("decided");
    assert_eq!(error.code(), "not_pending");
    let result = process().recorded(&CallId::new("c")).await.expect("a store").expect("it began");
    assert_eq!((result.outcome(), rig.effects()), (Outcome::OutcomeUnknown, 1));
    let records = rig.store.records(&RecordFilter::default()).await.expect("records");
    let kinds: Vec<_> = records.iter().map(|sealed| sealed.record.as_decision().is_some()).collect();
    assert_eq!(kinds, [true, true, false], "the decision, the one that came twice, then the call");
}

#[tokio::test]
async fn other_people_learn_nothing_of_a_key() {
    let rig = Rig::new();
    rig.open(1);
    rig.run().exec(slow_call("c")).await;
    let theirs = rig.process(Arc::clone(&rig.store) as _, "").run(RunOptions::new().run_id("run-1").principal("eve"));
    assert!(theirs.recorded(&CallId::new("c")).await.expect("a store").is_none());
    rig.open(1);
    let result = theirs.exec(slow_call("c")).await;
    assert_eq!((result.outcome(), rig.effects()), (Outcome::Ok, 2), "their call is another one");
}
