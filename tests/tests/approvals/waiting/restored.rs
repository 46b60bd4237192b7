//! A run that is restored under another policy obeys both policies: no verdict, budget, limit or label permits more
//! than before.

use super::*;
use tests::Shown as _;

const ALL: &str = "allowed_tools = ['waiting__change', 'waiting__read', 'waiting__page', 'waiting__hang']\n";

/// The same run, in another process under other rules.
async fn restored(run: &Run, rules: &str) -> Run {
    let snapshot = moved(&run.snapshot().await.expect("a snapshot"));
    let elsewhere = runner(&format!("{ALL}{rules}"), &Arc::new(MemoryStore::new()));
    elsewhere.restore(snapshot, ada()).await.expect("a run")
}

async fn last_of(run: &Run, round: usize, calls: &[(&str, &str)]) -> Outcome {
    let mut outcome = Outcome::Ok;
    for (at, (name, arguments)) in calls.iter().enumerate() {
        let call = run.exec(ToolCall::text(&*format!("{round}-{at}"), *name, *arguments));
        outcome = call.await.outcome();
    }
    outcome
}

#[tokio::test]
async fn under_two_policies_the_strictest_of_each_counts() {
    let (one, two) = (("waiting__change", r#"{"to":1}"#), ("waiting__change", r#"{"to":2}"#));
    let (read, hang) = (("waiting__read", "{}"), ("waiting__hang", "{}"));
    let label = "[labels.seen]\nfrom_tools = ['waiting__read']\ndeny_effects = ['external_side_effect']";
    let thirteen = "[[tools.waiting__change.arguments]]\npointer = '/to'\nequals = 13\nthen = 'deny'";
    // Two policies, the calls under the second one, and how the last of them ends.
    #[allow(clippy::type_complexity, reason = "a table of cases")]
    let cases: &[(&str, &str, &[(&str, &str)], Outcome)] = &[
        ("require_approval_for_tools = ['waiting__change']", "", &[one], Outcome::ApprovalRequired),
        ("require_approval_for_effects = ['state_change']", "", &[one], Outcome::ApprovalRequired),
        ("tags.web = 'deny'", "tags.web = 'require_approval'", &[one], Outcome::PolicyDenied),
        ("roles.editor.denied_tools = ['waiting__change']", "", &[one], Outcome::PolicyDenied),
        (thirteen, "", &[("waiting__change", r#"{"to":13}"#)], Outcome::PolicyDenied),
        (label, "", &[read, hang], Outcome::PolicyDenied),
        ("budgets.run.calls = 1", "budgets.run.calls = 9", &[one, two], Outcome::BudgetExceeded),
        ("budgets.run.time_ms = 0", "", &[one], Outcome::BudgetExceeded),
        ("budgets.default.max_argument_bytes = 7", "", &[one], Outcome::LimitExceeded),
        ("limits.argument_bytes = 7", "limits.argument_bytes = 9000", &[one], Outcome::LimitExceeded),
        ("limits.argument_depth = 1", "", &[("waiting__change", r#"{"to":[[1]]}"#)], Outcome::LimitExceeded),
        ("limits.result_bytes = 2", "", &[("waiting__change", r#"{"to":200}"#)], Outcome::ResultTooLarge),
        ("budgets.default.max_runtime_ms = 5", "", &[hang], Outcome::OutcomeUnknown),
        ("limits.call_id_bytes = 2", "", &[one], Outcome::LimitExceeded),
        ("loop_guard = { warn_at = 0, stop_at = 2 }", "", &[read, read], Outcome::BudgetExceeded),
        ("", "loop_guard = { warn_at = 0, stop_at = 0 }", &[read, read, read], Outcome::BudgetExceeded),
        (
            "tools.waiting__read.effect = 'external_side_effect'\nrequire_approval_for_effects = ['external_side_effect']",
            "",
            &[read],
            Outcome::ApprovalRequired,
        ),
        (
            "",
            "repair = { allowed = ['fenced_json'], require_approval = false }",
            &[("waiting__change", "```json\n{\"to\":1}\n```")],
            Outcome::InvalidJson,
        ),
    ];
    for (rules, other, calls, expected) in cases {
        // Whichever policy came first, and however often the run moved since.
        for (first, then) in [(rules, other), (other, rules)] {
            let begun = runner(&format!("{ALL}{first}"), &Arc::new(MemoryStore::new())).run(ada());
            let once = restored(&begun, then).await;
            let twice = restored(&restored(&begun, then).await, then).await;
            let back = restored(&restored(&begun, then).await, first).await;
            for (round, run) in [once, twice, back].into_iter().enumerate() {
                let outcome = last_of(&run, round, calls).await;
                assert_eq!(outcome, *expected, "`{first}` then `{then}`, {round}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn labels_of_the_new_options_count_too() {
    let rules = "[labels.vip]\nfrom_run = true\ndeny_effects = ['external_side_effect']";
    let begun = runner(&format!("{ALL}{rules}"), &Arc::default()).run(ada());
    let snapshot = begun.snapshot().await.expect("a snapshot");
    for (options, expected) in [(ada(), None), (ada().label("vip"), Some(Outcome::PolicyDenied))] {
        let again = runner(&format!("{ALL}{rules}"), &Arc::default());
        let run = again.restore(moved(&snapshot), options).await.expect("a run");
        let call = run.exec(ToolCall::text("c", "waiting__hang", "{}"));
        let outcome = tokio::time::timeout(std::time::Duration::from_millis(50), call).await;
        assert_eq!(outcome.ok().map(|result| result.outcome()), expected);
    }
}

#[tokio::test]
async fn a_snapshot_with_a_call_of_other_people_is_refused() {
    let begun = suspended(&runner(POLICY, &Arc::new(MemoryStore::new())), ada()).await;
    let snapshot = begun.snapshot().await.expect("a snapshot");
    for (key, value) in [("principal", "eve"), ("tenant", "other"), ("run_id", "run-2")] {
        let mut document = serde_json::to_value(&snapshot).expect("a document");
        document["waiting"][0]["call"][key] = value.into();
        let forged: RunSnapshot = serde_json::from_value(document).expect("a snapshot");
        let error = runner(POLICY, &Arc::default()).restore(forged, ada()).await.expect_err("not theirs");
        assert_eq!(error.code(), "other_principal", "{key}");
    }
    assert!(runner(POLICY, &Arc::default()).restore(moved(&snapshot), ada()).await.is_ok());
}

/// Nobody could approve the calls of the run, so its model saw no tool that needs an approval.
#[tokio::test]
async fn what_a_run_could_not_see_stays_unseen() {
    let asks = format!("{ALL}require_approval_for_tools = ['waiting__change']");
    let catalog = ToolCatalog::collect().expect("a catalog");
    let alone = ToolRunner::builder(catalog, ToolPolicy::from_toml(&asks).expect("a policy")).approvals(false);
    let begun = alone.build().expect("a runner").run(ada());
    assert!(begun.catalog().get("waiting__change").is_none());
    let run = restored(&begun, "require_approval_for_tools = ['waiting__change']\nparallel = 2").await;
    assert!(run.catalog().get("waiting__change").is_none() && run.catalog().get("waiting__read").is_some());
    let call = run.exec(ToolCall::text("c", "waiting__change", r#"{"to":1}"#)).await;
    assert_eq!(call.outcome(), Outcome::PolicyDenied);
}

#[tokio::test]
async fn tokens_and_cost_stay_the_least_of_both() {
    for (one, other) in [("tokens", 10), ("input_tokens", 10), ("cost", 1)] {
        let begun = runner(&format!("{ALL}budgets.run.{one} = {other}"), &Arc::default()).run(ada());
        let run = restored(&begun, &format!("budgets.run.{one} = 1000")).await;
        assert!(run.exhausted().await.unwrap().is_none(), "{one}");
        run.account(tool_runtime::wire::Usage::new(10, 10), 1.0);
        assert!(run.exhausted().await.unwrap().is_some(), "{one}");
    }
}

#[tokio::test]
async fn what_a_narrowed_run_suspends_waits_for_a_run_that_is_as_narrow() {
    let rules = "require_approval_for_tools = ['waiting__change']";
    let begun = runner(&format!("{ALL}budgets.run.calls = 1"), &Arc::new(MemoryStore::new())).run(ada());
    let store = Arc::new(MemoryStore::new());
    let later = runner(&format!("{ALL}{rules}"), &store);
    let snapshot = begun.snapshot().await.expect("a snapshot");
    let run = later.restore(snapshot, ada()).await.expect("a run");
    let waits = run.exec(ToolCall::text("w", "waiting__change", r#"{"to":1}"#)).await;
    assert_eq!(waits.outcome(), Outcome::ApprovalRequired);
    // The same id under the runner's policy alone would have the wider budget.
    let fresh = later.run(ada()).resume_shown("w", ApprovalDecision::Approve, &grace()).await.expect("it waits");
    assert_eq!(fresh.outcome(), Outcome::ApprovalMismatch);
    let again = later.restore(moved(&run.snapshot().await.expect("a snapshot")), ada()).await.expect("a run");
    assert!(again.resume_shown("w", ApprovalDecision::Approve, &grace()).await.expect("it waits").is_ok());
}

#[tokio::test]
async fn what_a_principal_was_counts_as_long_as_the_run_lives() {
    let policy = format!("{POLICY}\n[attributes.status.suspended]\ndenied_tools = ['waiting__read']");
    let runner = runner(&policy, &Arc::new(MemoryStore::new()));
    let read = async |run: &Run, id: &str| run.exec(ToolCall::text(id, "waiting__read", "{}")).await.outcome();
    let run = runner.run(ada().attribute("status", "suspended").attribute("status", "suspended"));
    assert!(run.problems().is_empty(), "{:?}", run.problems());
    assert_eq!(read(&run, "1").await, Outcome::PolicyDenied);
    // The options lack the attribute now, but the run keeps it.
    let later = runner.restore(moved(&run.snapshot().await.expect("a snapshot")), ada()).await.expect("a run");
    assert_eq!(read(&later, "2").await, Outcome::PolicyDenied);
    assert!(later.catalog().get("waiting__read").is_none());
    let again = runner.restore(moved(&later.snapshot().await.expect("a snapshot")), ada()).await.expect("a run");
    assert_eq!(read(&again, "3").await, Outcome::PolicyDenied);
    assert_eq!(read(&runner.run(ada()), "4").await, Outcome::Ok);
    // A misspelt attribute decides nothing, which is reported.
    let misspelt = runner.run(ada().attribute("statsu", "suspended"));
    assert_eq!(
        misspelt.problems().iter().map(tool_runtime::error::ParseError::code).collect::<Vec<_>>(),
        ["unknown_attribute"]
    );
    assert!(misspelt.problems()[0].to_string().ends_with("did you mean `status`?"), "{}", misspelt.problems()[0]);
    // Records name the roles and attributes that decided.
    let store = runner.store();
    let records = store.calls(&RecordFilter::default()).await.expect("records");
    let standing = [(Arc::from("status"), Arc::from("suspended"))];
    assert_eq!(
        (records[0].roles.as_slice(), records[0].attributes.as_slice()),
        (&[Arc::from("editor")][..], &standing[..])
    );
}

#[tokio::test]
async fn a_run_is_held_to_a_bounded_number_of_policies() {
    let mut run = runner(ALL, &Arc::default()).run(ada());
    for parallel in 2..=17 {
        run = restored(&run, &format!("parallel = {parallel}")).await;
    }
    let snapshot = run.snapshot().await.expect("a snapshot");
    let one_more = runner(&format!("{ALL}parallel = 18"), &Arc::default());
    assert_eq!(one_more.restore(snapshot.clone(), ada()).await.expect_err("too many").code(), "too_many_policies");
    // One of the earlier policies adds nothing to their number.
    assert!(runner(&format!("{ALL}parallel = 5"), &Arc::default()).restore(snapshot, ada()).await.is_ok());
}
