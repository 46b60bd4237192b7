//! Decisions and answers that do not fit: the call still waits, the violations are reported and recorded, and the call
//! is decided once.

use std::sync::atomic::{AtomicBool, Ordering};
use tests::Shown as _;

use serde_json::Value;
use tests::stored::{document, json_of};
use tests::world::{HookAction, HookedStore};
use tool_runtime::store::{Key, StoreError};

use super::*;

/// Opens a door that only the client can open.
#[tool(name = "waiting__open", effect = state_change, execution = client, client_result = bool, prepare = ["$"],
    redact = ["$"])]
struct Open {}

impl ToolComponent for Open {
    type Capabilities = ();
    type Output = bool;

    async fn run(self, (): (), _: &Call<Self>) -> Result<bool, ToolError> {
        Ok(true)
    }
}

fn edited(text: &str) -> ApprovalDecision {
    ApprovalDecision::ApproveEdited(text.into())
}

#[tokio::test]
async fn what_does_not_fit_is_told_and_can_be_corrected() {
    let respond = |text: &str| ApprovalDecision::Respond(text.into());
    for (unfit, pointer, why) in [
        (edited(r#"{"to":"three"}"#), Some("/to"), "validation_error"),
        (edited(r#"{"to":3,"at":1}"#), Some(""), "validation_error"),
        (edited("{"), None, "invalid_json"),
        (edited(""), Some(""), "validation_error"),
        (edited(&format!(r#"{{"to":{}3}}"#, " ".repeat(9000))), None, "limit_exceeded"),
        (edited(r#"{"to":13}"#), None, "policy_denied"),
        (respond("[]"), Some(""), "output_invalid"),
        (respond("three"), None, "output_invalid"),
    ] {
        let store = Arc::new(MemoryStore::new());
        let run = suspended(&runner(POLICY, &store), ada()).await;
        let given = format!("{unfit:?} {why}");
        let result = run.resume_shown("person", unfit, &grace()).await.expect("it waits");
        assert_eq!((result.outcome(), result.executed()), (Outcome::ApprovalMismatch, false), "{given}");
        let error = result.error().expect("a refusal");
        assert_eq!(error.errors.first().map(|violation| violation.pointer.as_str()), pointer, "{given}");
        assert!(error.safe_message.contains("still waits"), "{given}: {}", error.safe_message);
        assert!(result.detail().expect("a reason").contains(why), "{given}: {:?}", result.detail());
        // The refused decision has a separate record, and the record of the call stays open.
        let filter = RecordFilter::run("run-1");
        let records = store.records(&filter).await.expect("records");
        let [sealed] = &records[..] else { panic!("one record: {records:?}") };
        let decision = sealed.record.as_decision().expect("a decision");
        assert_eq!(decision.call_id.as_str(), "person", "{given}");
        assert!(decision.refused().is_some(), "{given}");
        assert_eq!(decision.violations().first().map(|violation| violation.pointer.as_str()), pointer, "{given}");
        assert_eq!(record(&store, "person").await.ended_at, None, "{given}");
        // Corrected, it runs, once.
        let done = run.resume_shown("person", edited(r#"{"to":4}"#), &grace()).await.expect("it still waits");
        assert_eq!(
            (done.value().map(tool_runtime::call::JsonText::get), done.executed()),
            (Some("4"), true),
            "{given}"
        );
        assert_eq!(
            run.resume_shown("person", ApprovalDecision::Approve, &grace()).await.expect_err("decided").code(),
            "not_pending"
        );
    }
}

#[tokio::test]
async fn of_many_decisions_at_once_one_runs() {
    let store = Arc::new(MemoryStore::new());
    let runner = runner(POLICY, &store);
    suspended(&runner, ada()).await;
    let mut decisions = tokio::task::JoinSet::new();
    for number in 0..40_u32 {
        // Every second one does not fit.
        let decision = if number % 2 == 0 { edited(r#"{"to":5}"#) } else { edited(r#"{"to":-5}"#) };
        let run = runner.run(ada());
        decisions
            .spawn(async move { run.resume_shown("person", decision, &grace()).await.map(|result| result.outcome()) });
    }
    let decided = decisions.join_all().await;
    assert_eq!(decided.iter().filter(|outcome| matches!(outcome, Ok(Outcome::Ok))).count(), 1, "{decided:?}");
    assert!(decided.iter().all(|outcome| matches!(outcome, Ok(Outcome::Ok | Outcome::ApprovalMismatch) | Err(_))));
}

/// Changes a waiting call, as anybody with write access to the store could.
fn swap(store: &MemoryStore, run_id: &str, id: &str, change: impl Fn(&mut Value) + Send + 'static) {
    let key = Key::waiting(run_id, Some("acme"), Some("ada"), &CallId::new(id));
    let named = vec![key.clone()];
    let receipt = store.update(
        named,
        Box::new(move |transaction| {
            let Some(waiting) = transaction.document(&key) else { return Err(StoreError::Lost) };
            let mut json = json_of(&waiting);
            change(&mut json["waiting"]["call"]);
            transaction.put(document(key.clone(), &json))
        }),
    );
    drop(receipt);
}

#[tokio::test]
async fn a_call_that_takes_the_id_of_another_is_not_decided_for_it() {
    let theirs = {
        let store = Arc::new(MemoryStore::new());
        let run = runner(POLICY, &store).run(ada());
        run.exec(ToolCall::text("person", "waiting__change", r#"{"to":9}"#)).await;
        store
            .pending(&Key::waiting("run-1", Some("acme"), Some("ada"), &CallId::new("person")))
            .await
            .expect("a store")
            .expect("it waits")
    };
    for decision in decisions() {
        let memory = Arc::new(MemoryStore::new());
        suspended(&runner(POLICY, &memory), ada()).await;
        let catalog = ToolCatalog::collect().expect("a catalog");
        let policy = ToolPolicy::from_toml(POLICY).expect("a policy");
        // Between the look and the claim, the call is finished and another call takes its id.
        let (swapped, theirs) = (Arc::clone(&memory), theirs.clone());
        let once = AtomicBool::new(true);
        let store = HookedStore::new(Arc::clone(&memory) as _, move |method| {
            if method == "update" && once.swap(false, Ordering::AcqRel) {
                let theirs = theirs.clone();
                swap(&swapped, "run-1", "person", move |call| *call = serde_json::to_value(&theirs).expect("JSON"));
            }
            HookAction::Pass
        });
        let swapped = ToolRunner::builder(catalog, policy).approvals(true).store(store).build().expect("a runner");
        let given = format!("{decision:?}");
        let error = swapped.run(ada()).resume_shown("person", decision, &grace()).await.expect_err("another call");
        assert_eq!(error.code(), "not_pending", "{given}");
        // It waits for its own decision.
        let result = swapped.run(ada()).resume_shown("person", ApprovalDecision::Approve, &grace()).await;
        assert_eq!(result.expect("it waits").to_model(), "9", "{given}");
    }
}

#[tokio::test]
async fn a_stored_call_that_was_changed_does_not_run() {
    let zeros = "0".repeat(64);
    for (key, value) in [("arguments", r#"{"to":9}"#), ("argument_digest", zeros.as_str())] {
        let store = Arc::new(MemoryStore::new());
        let run = suspended(&runner(POLICY, &store), ada()).await;
        let value = value.to_owned();
        swap(&store, "run-1", "person", move |call| call[key] = value.clone().into());
        for decision in decisions().into_iter().take(3) {
            let given = format!("{key} {decision:?}");
            let result = run.resume_shown("person", decision, &grace()).await.expect("it waits");
            assert_eq!((result.outcome(), result.executed()), (Outcome::ApprovalMismatch, false), "{given}");
            assert_eq!(result.detail(), Some("the stored arguments changed"), "{given}");
        }
        let denied = run.resume_shown("person", ApprovalDecision::Deny(None), &grace()).await.expect("it waits");
        assert_eq!(denied.outcome(), Outcome::ApprovalDenied, "{key}");
    }
}

#[tokio::test]
async fn arguments_that_read_as_others_are_not_those_that_were_approved() {
    let store = Arc::new(MemoryStore::new());
    let run = suspended(&runner(POLICY, &store), ada()).await;
    // The arguments are not canonical, so they are read as another text than the one under the digest.
    let text = r#"{ "to": 9 }"#;
    let digest = "904fcea8e56de135b0be71a3ad60dbaed7f91b1968100ea46fc0bd971108605b";
    swap(&store, "run-1", "person", move |call| {
        (call["arguments"], call["argument_digest"]) = (text.into(), digest.into());
    });
    let result = run.resume_shown("person", ApprovalDecision::Approve, &grace()).await.expect("it waits");
    assert_eq!((result.outcome(), result.executed()), (Outcome::ApprovalMismatch, false));
    assert_eq!(result.detail(), Some("the stored arguments now hydrate to different values"));
}

#[tokio::test]
async fn what_a_client_was_asked_to_do_may_have_happened() {
    let store = Arc::new(MemoryStore::new());
    let run = runner(POLICY, &store).run(ada());
    for id in ["answered", "abandoned"] {
        assert_eq!(run.exec(ToolCall::text(id, "waiting__open", "{}")).await.outcome(), Outcome::ClientRequired);
        // It is prepared here, and executed by nobody yet.
        assert!(!record(&store, id).await.executed && !run.may_have_begun(&CallId::new(id)), "{id}");
    }
    let unfit = run.client_result("answered", "\"yes\"").await.expect("it waits");
    assert_eq!(unfit.outcome(), Outcome::ApprovalMismatch);
    assert_eq!(unfit.error().expect("a refusal").errors[0].keyword, "type");
    assert!(run.client_result("answered", "true").await.expect("it still waits").is_ok());
    let abandoned = run.abandon("abandoned").await.expect("it waits");
    assert_eq!((abandoned.outcome(), abandoned.executed()), (Outcome::OutcomeUnknown, true));
}
