//! `[records] required`: a call does not run if its records cannot be read, and a result without a record is withheld.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tests::world::{HookAction, HookedStore};
use tool_runtime::store::StoreError;

use super::*;

const REQUIRED: &str = "[records]\nrequired = true\n";

static RAN: AtomicUsize = AtomicUsize::new(0);

/// Changes something, and counts how often.
#[tool(name = "waiting__counted", effect = state_change, redact = ["$"])]
fn counted() -> Result<usize, ToolError> {
    Ok(RAN.fetch_add(1, Ordering::AcqRel) + 1)
}

/// A run that no other process can have had.
fn unnamed() -> RunOptions {
    RunOptions::new().principal("ada").tenant("acme").role("editor")
}

/// Makes one call over a store that fails where `hook` returns true. Returns the outcome, whether the call was
/// executed, whether it has a value, and the number of records that were reported as lost.
async fn call(
    options: RunOptions,
    tool: &str,
    rules: &str,
    hook: fn(&'static str, usize) -> bool,
) -> (Outcome, bool, bool, usize) {
    let calls = Mutex::new(0);
    let store = HookedStore::new(Arc::new(MemoryStore::new()), move |method| {
        let mut updates = calls.lock().expect("a lock");
        *updates += usize::from(method == "update");
        if hook(method, *updates) {
            HookAction::Fail(StoreError::Unavailable("the table is gone".into()))
        } else {
            HookAction::Pass
        }
    });
    let lost = Arc::new(Mutex::new(0));
    let reported = Arc::clone(&lost);
    let policy = format!("allowed_tools = [\"waiting__read\", \"waiting__counted\"]\n{rules}");
    let runner = ToolRunner::builder(
        ToolCatalog::collect().expect("a catalog"),
        ToolPolicy::from_toml(&policy).expect("a policy"),
    )
    .store(store)
    .failures(move |failure| *reported.lock().expect("a lock") += usize::from(failure.is_record_lost))
    .build()
    .expect("a runner");
    let result = runner.run(options).exec(ToolCall::text("c", tool, "{}")).await;
    let lost = *lost.lock().expect("a lock");
    (result.outcome(), result.executed(), result.value().is_some(), lost)
}

#[tokio::test]
async fn a_policy_can_want_a_record_of_each_call() {
    let never: fn(&'static str, usize) -> bool = |_, _| false;
    // Nothing can be read.
    let unread: fn(&'static str, usize) -> bool = |method, _| method == "records";
    // Reads work, and appends fail.
    let full: fn(&'static str, usize) -> bool = |method, _| method == "append";
    // The ledger is written, the record of the end is not.
    let ends: fn(&'static str, usize) -> bool = |method, updates| method == "update" && updates > 1;
    let begins: fn(&'static str, usize) -> bool = |method, _| method == "update";
    for (tool, hook, rules, expected, runs) in [
        ("waiting__read", never, REQUIRED, (Outcome::Ok, true, true, 0), 0),
        ("waiting__counted", never, REQUIRED, (Outcome::Ok, true, true, 0), 1),
        ("waiting__read", unread, "", (Outcome::Ok, true, true, 0), 0),
        ("waiting__read", unread, REQUIRED, (Outcome::Cancelled, false, false, 0), 0),
        // It does not run here. While the store cannot be read, another process may have run it.
        ("waiting__counted", unread, REQUIRED, (Outcome::OutcomeUnknown, true, false, 0), 0),
        ("waiting__read", full, "", (Outcome::Ok, true, true, 1), 0),
        ("waiting__read", full, REQUIRED, (Outcome::Cancelled, true, false, 1), 0),
        ("waiting__counted", ends, "", (Outcome::Ok, true, true, 1), 1),
        ("waiting__counted", ends, REQUIRED, (Outcome::OutcomeUnknown, true, false, 1), 1),
    ] {
        assert_eq!(call(ada(), tool, rules, hook).await, expected, "{tool} {rules}");
        assert_eq!(RAN.swap(0, Ordering::AcqRel), runs, "{tool} {rules}");
    }
    // Without the ledger, no effect begins, whatever the policy requires. Only the ledger shows whether another process
    // began it, unless the run belongs to this process alone.
    for (options, expected) in [(unnamed as fn() -> RunOptions, Outcome::Cancelled), (ada, Outcome::OutcomeUnknown)] {
        for rules in ["", REQUIRED] {
            let (outcome, executed, has_value, _) = call(options(), "waiting__counted", rules, begins).await;
            assert_eq!((outcome, executed, has_value), (expected, false, false), "{rules}");
            assert_eq!(RAN.load(Ordering::Acquire), 0, "{rules}");
        }
    }
    // If the run belongs to this process alone, the outcome is known without reading, too.
    let expected = (Outcome::Cancelled, false, false, 0);
    assert_eq!(call(unnamed(), "waiting__counted", REQUIRED, unread).await, expected);
    assert_eq!(RAN.load(Ordering::Acquire), 0);
}

/// A model that calls the tool gets no result of it either.
#[tokio::test]
async fn a_conversation_withholds_a_result_without_a_record() {
    let store = HookedStore::new(Arc::new(MemoryStore::new()), |method| match method {
        "append" => HookAction::Fail(StoreError::Unavailable("the disk is full".into())),
        _ => HookAction::Pass,
    });
    let policy = format!("allowed_tools = [\"waiting__read\"]\n{REQUIRED}");
    let catalog = ToolCatalog::collect().expect("a catalog");
    let runner = ToolRunner::builder(catalog, ToolPolicy::from_toml(&policy).expect("a policy")).store(store);
    let run = runner.build().expect("a runner").run(ada());
    let model =
        ScriptedModel::new([ScriptedTurn::call("c1", "waiting__read", "{}"), ScriptedTurn::text("Nothing was read.")]);
    let mut conversation = Agent::new(model).converse(run);
    conversation.send("Read it.").await;
    let history = serde_json::to_string(&conversation.history()).expect("JSON");
    assert!(history.contains("its result is withheld"), "{history}");
}
