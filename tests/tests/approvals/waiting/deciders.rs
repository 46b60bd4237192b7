//! The rules for deciding on a waiting call, the records of refused deciders, and a code for each thing that changed
//! while a call waited.

use std::time::Duration;
use tests::DecideShown as _;
use tests::Shown as _;

use tests::grace as outsider;
use tool_runtime::call::{ArgumentChange, DecisionError};
use tool_runtime::runner::ResumeError;
use tool_runtime::store::{Clock as _, DecisionKind, DecisionRecord, Key};
use tool_runtime::testing::ManualClock;

use super::*;

async fn decisions_of(store: &MemoryStore) -> Vec<DecisionRecord> {
    let records = store.records(&RecordFilter::run("run-1")).await.expect("records");
    records.into_iter().filter_map(|sealed| sealed.record.as_decision().cloned()).collect()
}

#[tokio::test]
async fn whoever_may_not_decide_is_recorded_and_the_call_waits() {
    let roles = "[approvals]\nroles = [\"approver\"]\n";
    let manager = "[approvals]\nown_calls = true\nroles = [\"approver\"]\n[approvals.tools.waiting__change]\nroles = [\"manager\"]\n";
    let effect = "[approvals.effects.state_change]\nroles = [\"manager\"]\n";
    let own = || Decider::new("ada").tenant("acme");
    let cases = [
        ("", own(), DecisionError::OwnCall),
        ("", outsider(), DecisionError::DeciderTenant),
        ("", Decider::new("grace").tenant("other"), DecisionError::DeciderTenant),
        ("", Decider::new("").tenant("acme"), DecisionError::DeciderName),
        ("", Decider::new(" ").tenant("acme"), DecisionError::DeciderName),
        ("", Decider::new("grace\0").tenant("acme"), DecisionError::DeciderName),
        ("", Decider::new("ada\u{200b}").tenant("acme"), DecisionError::DeciderName),
        (roles, own().role("approver"), DecisionError::OwnCall),
        (roles, grace(), DecisionError::DeciderRole),
        (roles, grace().role("auditor"), DecisionError::DeciderRole),
        (manager, own().role("approver"), DecisionError::DeciderRole),
        (effect, grace().role("approver"), DecisionError::DeciderRole),
    ];
    for (rules, decider, expected) in cases {
        for decision in decisions() {
            let given = format!("{rules} {decider:?} {decision:?}");
            let store = Arc::new(MemoryStore::new());
            let run = suspended(&runner(&format!("{POLICY}\n{rules}"), &store), ada()).await;
            let error =
                run.resume_shown("person", decision, &decider.clone().because("Because.")).await.expect_err(&given);
            match (&error, expected) {
                // To another tenant the call does not exist.
                (ResumeError::NotWaiting(_), DecisionError::DeciderTenant) => {}
                (ResumeError::NotAllowed(mismatch), _) => assert_eq!(*mismatch, expected, "{given}"),
                _ => panic!("{given}: {error:?}"),
            }
            let recorded = decisions_of(&store).await;
            let [decision] = &recorded[..] else { panic!("{given}: {recorded:?}") };
            let refused = (decision.mismatch(), decision.refused());
            assert_eq!(refused, (Some(expected), Some(Outcome::PolicyDenied)), "{given}");
            let by = decision.decider.as_ref().expect("somebody");
            assert_eq!((by.principal(), by.reason()), (decider.principal(), Some("Because.")), "{given}");
            assert_eq!(record(&store, "person").await.ended_at, None, "{given}");
        }
    }
}

#[tokio::test]
async fn whoever_may_decide_is_recorded_with_what_was_shown() {
    let tool = "[approvals]\nroles = [\"nobody\"]\n[approvals.tools.waiting__change]\nown_calls = true\nroles = [\"manager\"]\n";
    let cases = [
        ("", grace()),
        ("[approvals]\nown_calls = true\n", Decider::new("ada").tenant("acme")),
        ("[approvals]\nroles = [\"approver\", \"operator\"]\n", grace().role("operator")),
        (tool, Decider::new("ada").tenant("acme").role("manager")),
    ];
    for (rules, decider) in cases {
        let store = Arc::new(MemoryStore::new());
        let run = suspended(&runner(&format!("{POLICY}\n{rules}"), &store), ada()).await;
        let pending = store
            .pending(&Key::waiting("run-1", Some("acme"), Some("ada"), &CallId::new("person")))
            .await
            .expect("a store")
            .expect("it waits");
        let decider = decider.because(&"x".repeat(5000));
        let edited = ApprovalDecision::ApproveEdited(r#"{"to":4}"#.into());
        let result = run.resume_shown("person", edited, &decider).await.expect("it waits");
        assert_eq!(result.value().map(tool_runtime::call::JsonText::get), Some("4"), "{rules}");
        let recorded = decisions_of(&store).await;
        let [decision] = &recorded[..] else { panic!("{rules}: {recorded:?}") };
        assert_eq!((decision.decision, decision.decider.as_ref()), (DecisionKind::Edited, Some(&decider)), "{rules}");
        assert_eq!(decision.argument_digest, pending.record_digest, "{rules}");
        assert!(decision.edited_digest.is_some_and(|edited| Some(edited) != pending.record_digest), "{rules}");
        assert_eq!(decider.reason().map(str::len), Some(2050), "it is bounded");
        assert!(!format!("{decider:?}").contains("xx"), "{decider:?}");
    }
}

#[test]
fn rules_about_deciders_decide_something() {
    for (rules, expected) in [
        ("[approvals]\nrole = [\"x\"]", "unknown field `role`"),
        ("[approvals]\nroles = []", "an empty list admits nobody"),
        ("[approvals.tools.waiting__chang]\nown_calls = true", "there is no tool `waiting__chang`"),
        (
            "[approvals.tools.waiting__change]",
            "this decides nothing; write `own_calls`, `roles`, `principals` or `required`",
        ),
        ("[approvals.effects.changes]\nown_calls = true", "changes"),
    ] {
        let catalog = ToolCatalog::collect().expect("a catalog");
        let problem = match ToolPolicy::from_toml(&format!("{POLICY}\n{rules}")) {
            Err(error) => error.to_string(),
            Ok(policy) => ToolRunner::builder(catalog, policy).approvals(true).build().expect_err(rules).to_string(),
        };
        assert!(problem.contains(expected), "{rules}: {problem}");
    }
}

/// Prints something.
#[tool(name = "waiting__print", effect = state_change, redact = ["$"])]
fn print(
    /// What.
    text: String,
    /// How often.
    #[arg(default = 2)]
    copies: u8,
    /// The code of the printer.
    #[arg(sensitive)]
    code: String,
) -> Result<usize, ToolError> {
    Ok(text.len() + usize::from(copies) + code.len())
}

#[tokio::test]
async fn a_person_sees_what_changed() {
    let policy = "allowed_tools = [\"waiting__print\"]\nrequire_approval_for_tools = [\"waiting__print\"]\n";
    let store = Arc::new(MemoryStore::new());
    let runner = runner(policy, &store);
    let script = [ScriptedTurn::call("p", "waiting__print", r#"{"text":"a","code":"secret-1"}"#)];
    let mut conversation = Agent::new(ScriptedModel::new(script)).converse(runner.run(ada().label("seen")));
    let TurnOutcome::Waiting { calls } = conversation.send("Go.").await else { panic!("it waits") };
    let lines = |changes: &[ArgumentChange]| changes.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(lines(&calls[0].changes), ["defaulted /copies: (left out) -> 2"]);
    assert_eq!(calls[0].labels, [Arc::from("seen")]);
    let run = runner.run(ada().label("seen"));
    let edited = ApprovalDecision::ApproveEdited(r#"{"text":"b","copies":3,"code":"secret-2"}"#.into());
    assert!(run.resume_shown("p", edited, &grace()).await.expect("it waits").is_ok());
    let decided = decisions_of(&store).await.remove(0);
    let expected = [
        r#"edited /code: "[sensitive]" -> "[sensitive]""#,
        "edited /copies: (left out) -> 3",
        r#"edited /text: "a" -> "b""#,
    ];
    let mut changed = lines(&decided.changes);
    changed.sort();
    assert_eq!(changed, expected);
    assert!(!serde_json::to_string(&decided).expect("a document").contains("secret"));
}

#[tokio::test]
async fn a_conversation_refuses_a_decider_as_a_whole() {
    let store = Arc::new(MemoryStore::new());
    let runner = runner(POLICY, &store);
    let script = [ScriptedTurn::call("person", "waiting__change", r#"{"to":3}"#), ScriptedTurn::text("Done.")];
    let mut conversation = Agent::new(ScriptedModel::new(script)).converse(runner.run(ada()));
    assert!(matches!(conversation.send("Go.").await, TurnOutcome::Waiting { .. }));
    let id = CallId::new("person");
    for (decider, code) in [(Decider::new("ada").tenant("acme"), "not_allowed"), (outsider(), "not_pending")] {
        let refused =
            conversation.decide_shown(&id, ApprovalDecision::Approve, &decider).await.expect_err("not theirs");
        assert_eq!(refused.code(), code);
    }
    assert_eq!(decisions_of(&store).await.len(), 2);
    let ended = conversation.decide_shown(&id, ApprovalDecision::Approve, &grace()).await.expect("it still waits");
    assert!(matches!(ended, TurnOutcome::Answered { .. }), "{ended:?}");
}

#[tokio::test]
async fn whatever_changed_has_a_code_of_its_own() {
    let tools = ["waiting__change", "waiting__cursor"];
    let narrow = || ada().tools(tools).label("seen");
    let without_role = || RunOptions::new().run_id("run-1").principal("ada").tenant("acme").tools(tools).label("seen");
    let policy = format!("{POLICY}\n[labels.web]\nfrom_run = true\ndeny_effects = [\"state_change\"]\n");
    let hour = Duration::from_hours(1);
    let cases: [(&str, RunOptions); 8] = [
        ("roles", narrow().role("admin")),
        ("roles", without_role()),
        ("tools", ada()),
        ("tools", narrow().tools(["waiting__cursor"])),
        ("attributes", narrow().attribute("region", "north")),
        ("caller", narrow().caller(graph("report"))),
        ("labels", narrow().label("web")),
        ("clock", narrow()),
    ];
    for (expected, options) in cases {
        let store = Arc::new(MemoryStore::new());
        let clock = Arc::new(ManualClock::at("2030-01-01T00:00:00Z".parse().expect("a time")));
        let catalog = || ToolCatalog::collect().expect("a catalog");
        let runner = ToolRunner::builder(catalog(), ToolPolicy::from_toml(&policy).expect("a policy"))
            .approvals(true)
            .store(Arc::clone(&store))
            .clock(Arc::clone(&clock))
            .build()
            .expect("a runner");
        suspended(&runner, narrow()).await;
        if expected == "clock" {
            clock.set(clock.now() - hour);
        }
        let run = runner.run(options);
        for decision in decisions().into_iter().take(1) {
            let result = run.resume_shown("person", decision, &grace()).await.expect("it waits");
            assert_eq!((result.outcome(), result.executed()), (Outcome::ApprovalMismatch, false), "{expected}");
            let mismatch = result.error().and_then(|error| error.mismatch).expect("a code");
            assert_eq!(mismatch.code(), expected);
            let json = serde_json::to_value(&result).expect("a document");
            assert_eq!(json["mismatch"], expected);
        }
        let recorded = decisions_of(&store).await;
        let mismatch = recorded.last().and_then(DecisionRecord::mismatch);
        assert_eq!(mismatch.map(DecisionError::code), Some(expected));
        assert_eq!(record(&store, "person").await.ended_at, None, "{expected}");
        if expected == "clock" {
            clock.advance(hour * 26);
            let late = run.resume_shown("person", ApprovalDecision::Approve, &grace()).await.expect("it waits");
            assert_eq!((late.outcome(), late.executed()), (Outcome::ApprovalExpired, false));
        }
    }
}
