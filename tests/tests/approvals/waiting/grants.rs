//! Grants: a remembered decision answers later calls like the first one, as often and as long as the grant permits.

use std::time::Duration;
use tests::Shown as _;

use tool_runtime::call::DecisionError;
use tool_runtime::runner::{Grant, ResumeError};
use tool_runtime::store::{Chain, Clock, DecisionKind, DecisionRecord, GrantScope, Key, RecordFilter};
use tool_runtime::testing::ManualClock;
use tool_runtime_sql::{SqlOptions, SqlStore};

use super::*;

/// Sends a letter.
#[tool(name = "waiting__post", effect = external_side_effect, redact = ["$"], tags = ["web"])]
fn post(
    /// To whom.
    to: String,
    /// How many pages.
    pages: u8,
) -> Result<String, ToolError> {
    Ok(format!("{pages} to {to}"))
}

const ASKS: &str = r#"
    allowed_tools = ["waiting__post", "waiting__change"]
    require_approval_for_tools = ["waiting__post", "waiting__change"]
    [loop_guard]
    warn_at = 0
    stop_at = 0
    [labels.untrusted]
    from_run = true
    require_approval_for_effects = ["external_side_effect"]
    [labels.barred]
    from_run = true
    deny_effects = ["external_side_effect"]
"#;

const WEEK: Duration = Duration::from_hours(7 * 24);

struct Rig {
    runner: ToolRunner,
    clock: Arc<ManualClock>,
    store: Arc<dyn Store>,
}

fn rig() -> Rig {
    rig_over(Arc::new(MemoryStore::new()))
}

fn rig_over(store: Arc<dyn Store>) -> Rig {
    rig_with(store, ASKS)
}

fn rig_with(store: Arc<dyn Store>, policy: &str) -> Rig {
    let clock = Arc::new(ManualClock::at("2030-01-01T00:00:00Z".parse().expect("a time")));
    let catalog = ToolCatalog::collect().expect("a catalog");
    let runner = ToolRunner::builder(catalog, ToolPolicy::from_toml(policy).expect("a policy"))
        .approvals(true)
        .store(Arc::clone(&store))
        .clock(Arc::clone(&clock))
        .build()
        .expect("a runner");
    Rig { runner, clock, store }
}

async fn posts(run: &Run, id: &str, to: &str, pages: u8) -> Outcome {
    let arguments = format!(r#"{{"to":"{to}","pages":{pages}}}"#);
    run.exec(ToolCall::text(id, "waiting__post", arguments)).await.outcome()
}

fn conversation() -> RunOptions {
    ada().conversation("talk")
}

/// A call waits, and this is remembered of it.
async fn remembered(rig: &Rig, remember: Grant) -> Result<tool_runtime::store::StoredGrant, ResumeError> {
    let run = rig.runner.run(conversation());
    assert_eq!(posts(&run, "first", "ada", 1).await, Outcome::ApprovalRequired);
    run.remember_shown("first", remember, &grace()).await
}

#[tokio::test]
async fn a_grant_covers_the_call_that_was_looked_at() {
    for (conditions, pointer) in [
        (r#"[{"pointer":"/to","equals":"bob"}]"#, "/to"),
        (r#"[{"pointer":"/to","equals":"ada"},{"pointer":"/pages","at_most":0}]"#, "/pages"),
        (r#"[{"pointer":"/nowhere","equals":"ada"}]"#, "/nowhere"),
    ] {
        for remember in [Grant::allow(GrantScope::Tenant).uses(2).expires_in(WEEK), Grant::deny(GrantScope::Tenant)] {
            let rig = rig();
            let remember = remember.matching(conditions).expect("conditions");
            let error = remembered(&rig, remember).await.expect_err("nobody looked at such a call");
            assert!(matches!(&error, ResumeError::GrantUnmet(unmet) if unmet == pointer), "{error}");
            assert!(error.to_string().contains(pointer) && !error.to_string().contains("ada"), "{error}");
        }
    }
}

#[tokio::test]
async fn a_grant_covers_what_it_says_and_is_used_up() {
    let to_ada = r#"[{"pointer":"/to","equals":"ada"},{"pointer":"/pages","at_most":3}]"#;
    let rig = rig();
    let remember = Grant::allow(GrantScope::Principal).matching(to_ada).expect("conditions");
    let grant = remembered(&rig, remember.uses(2).expires_in(WEEK)).await.expect("a grant");
    assert!(!format!("{grant:?}").contains("pages"), "{grant:?}");
    let run = rig.runner.run(ada().run_id("run-2"));
    assert_eq!(posts(&run, "other", "eve", 1).await, Outcome::ApprovalRequired);
    assert_eq!(posts(&run, "long", "ada", 4).await, Outcome::ApprovalRequired);
    assert_eq!(posts(&run, "one", "ada", 2).await, Outcome::Ok);
    let records = rig.store.calls(&RecordFilter::run("run-2")).await.expect("records");
    let decision = records.last().and_then(|record| record.decision.clone()).expect("a decision");
    assert_eq!(decision.rule, format!("grant:{}", grant.id));
    assert_eq!(rig.runner.grants(Some("acme")).await.expect("grants")[0].uses, Some(1));
    assert_eq!(posts(&run, "two", "ada", 3).await, Outcome::Ok);
    assert_eq!(posts(&run, "three", "ada", 3).await, Outcome::ApprovalRequired);
    // The call that was looked at still waits, and the grant has a record.
    let made = rig.store.records(&RecordFilter::run("run-1")).await.expect("records");
    let made = made[0].record.as_decision().expect("a decision");
    assert_eq!((made.decision, made.grant.as_ref()), (DecisionKind::Remembered, Some(&grant.id)));
    assert!(
        rig.store
            .pending(&Key::waiting("run-1", Some("acme"), Some("ada"), &CallId::new("first")))
            .await
            .expect("a store")
            .is_some()
    );
}

#[tokio::test]
async fn a_grant_holds_where_it_was_given_only() {
    let stranger = || RunOptions::new().run_id("run-9").principal("eve").tenant("acme").role("editor");
    let elsewhere = || RunOptions::new().run_id("run-9").principal("ada").tenant("other").role("editor");
    let labelled = || conversation().run_id("run-9").label("untrusted");
    for (scope, options, covered) in [
        (GrantScope::Run("run-1".into()), conversation(), true),
        (GrantScope::Run("run-1".into()), conversation().run_id("run-9"), false),
        (GrantScope::Conversation("talk".into()), conversation().run_id("run-9"), true),
        (GrantScope::Conversation("talk".into()), ada().run_id("run-9"), false),
        (GrantScope::Conversation("talk".into()), stranger().conversation("talk"), false),
        (GrantScope::Principal, ada().run_id("run-9"), true),
        (GrantScope::Principal, stranger(), false),
        (GrantScope::Tenant, stranger(), true),
        (GrantScope::Tenant, elsewhere(), false),
        (GrantScope::Tenant, labelled(), false),
    ] {
        let rig = rig();
        let given = format!("{scope:?} {options:?}");
        let remember = Grant::allow(scope).uses(9).expires_in(WEEK);
        remembered(&rig, remember).await.expect("a grant");
        let expected = if covered { Outcome::Ok } else { Outcome::ApprovalRequired };
        let run = rig.runner.run(options);
        assert_eq!(posts(&run, "next", "ada", 1).await, expected, "{given}");
        assert_eq!(posts(&run, "other", "ada", 2).await, Outcome::ApprovalRequired, "{given}: exactly these arguments");
        let made = rig.clock.now();
        rig.clock.set(made - Duration::from_hours(1));
        assert_eq!(posts(&run, "early", "ada", 1).await, Outcome::ApprovalRequired, "{given}: the clock jumped back");
        rig.clock.set(made);
        rig.clock.advance(WEEK);
        assert_eq!(posts(&run, "late", "ada", 1).await, Outcome::ApprovalRequired, "{given}");
        assert!(rig.runner.grants(Some("acme")).await.expect("grants").is_empty());
    }
}

#[tokio::test]
async fn a_denial_wins_and_the_policy_comes_first() {
    let rig = rig();
    let everything = Grant::allow(GrantScope::Tenant).any_arguments().uses(9).expires_in(WEEK);
    let allowed = remembered(&rig, everything).await.expect("a grant");
    let run = rig.runner.run(conversation().run_id("run-2"));
    assert_eq!(posts(&run, "a", "ada", 1).await, Outcome::Ok);
    let denied =
        rig.runner.run(conversation()).remember_shown("first", Grant::deny(GrantScope::Tenant), &grace()).await;
    let denied = denied.expect("a denial");
    assert_eq!(posts(&run, "b", "ada", 1).await, Outcome::ApprovalDenied);
    assert_eq!(posts(&run, "c", "ada", 2).await, Outcome::Ok, "it denies what it is about");
    assert!(rig.runner.revoke(&denied, &grace()).await.expect("a store"));
    assert!(!rig.runner.revoke(&denied, &grace()).await.expect("a store"));
    assert_eq!(posts(&run, "d", "ada", 1).await, Outcome::Ok);
    let barred = rig.runner.run(conversation().run_id("run-3").label("barred"));
    assert_eq!(posts(&barred, "e", "ada", 1).await, Outcome::PolicyDenied);
    assert!(rig.runner.revoke(&allowed, &grace()).await.expect("a store"));
    assert_eq!(posts(&run, "f", "ada", 1).await, Outcome::ApprovalRequired);
}

#[tokio::test]
async fn what_reaches_outside_is_bounded_and_deciders_are_checked() {
    let allow = || Grant::allow(GrantScope::Tenant);
    for (remember, code) in [
        (allow(), "grant_unbounded"),
        (allow().uses(1), "grant_unbounded"),
        (allow().expires_in(WEEK), "grant_unbounded"),
        (allow().uses(0).expires_in(WEEK), "grant_scope"),
        (Grant::deny(GrantScope::Tenant).uses(1), "grant_scope"),
        (Grant::deny(GrantScope::Run("run-7".into())), "grant_scope"),
        (Grant::deny(GrantScope::Conversation("other".into())), "grant_scope"),
    ] {
        assert_eq!(remembered(&rig(), remember.clone()).await.expect_err("refused").code(), code, "{remember:?}");
    }
    for conditions in
        ["{}", "[]", "[1]", r#"[{"pointer":"to","equals":1}]"#, r#"[{"pointer":"/to","equals":1,"then":"deny"}]"#]
    {
        assert_eq!(allow().matching(conditions).expect_err(conditions).code(), "grant_conditions");
    }
    // Conditions contain values of arguments, and the error of the parser would quote them.
    for conditions in [
        r#"[{"pointer":"/to","one_of":"CANARY"}]"#,
        r#"[{"pointer":"/to","equals":1,"CANARY":2}]"#,
        r#"["CANARY"]"#,
        r#"[{"pointer":"/to","one_of":["ada"]},{"pointer":"CANARY","equals":1}]"#,
        r#"{"CANARY":1}"#,
    ] {
        let error = allow().matching(conditions).expect_err(conditions).to_string();
        assert!(!error.contains("CANARY"), "{error}");
    }
    let second = r#"[{"pointer":"/to","one_of":["ada"]},{"pointer":"/to","one_of":"ada"}]"#;
    let error = allow().matching(second).expect_err(second).to_string();
    assert!(error.contains("condition 2"), "{error}");
    let rig = rig();
    let run = rig.runner.run(ada());
    assert_eq!(posts(&run, "first", "ada", 1).await, Outcome::ApprovalRequired);
    let own = Decider::new("ada").tenant("acme");
    let bounded = || allow().uses(1).expires_in(WEEK);
    assert_eq!(run.remember_shown("first", bounded(), &own).await.expect_err("its own").code(), "not_allowed");
    assert_eq!(
        run.remember_shown("first", bounded(), &tests::grace()).await.expect_err("outside").code(),
        "not_pending"
    );
    assert_eq!(run.remember_shown("nothing", bounded(), &grace()).await.expect_err("unknown").code(), "not_pending");
    assert!(rig.runner.grants(Some("acme")).await.expect("grants").is_empty());
}

#[tokio::test]
async fn a_grant_holds_for_the_caller_that_was_looked_at() {
    let rig = rig();
    let given = Grant::allow(GrantScope::Tenant).uses(9).expires_in(WEEK);
    let grant = remembered(&rig, given.clone()).await.expect("a grant");
    assert_eq!(grant.graph(), None);
    let helper = rig.runner.run(conversation().run_id("run-2").caller(graph("helper")));
    assert_eq!(posts(&helper, "a", "ada", 1).await, Outcome::ApprovalRequired);
    let grant = helper.remember_shown("a", given, &grace()).await.expect("a grant");
    assert_eq!(grant.graph(), Some("helper"));
    assert_eq!(posts(&helper, "b", "ada", 1).await, Outcome::Ok);
    let first = rig.runner.grants(Some("acme")).await.expect("grants").remove(0);
    assert!(rig.runner.revoke(&first, &grace()).await.expect("a store"));
    let other = rig.runner.run(conversation().run_id("run-3").caller(graph("other")));
    assert_eq!(posts(&other, "c", "ada", 1).await, Outcome::ApprovalRequired);
    let direct = rig.runner.run(conversation().run_id("run-4"));
    assert_eq!(posts(&direct, "d", "ada", 1).await, Outcome::ApprovalRequired);
    // A denial holds for all of them.
    direct.remember_shown("d", Grant::deny(GrantScope::Tenant), &grace()).await.expect("a denial");
    assert_eq!(posts(&helper, "e", "ada", 1).await, Outcome::ApprovalDenied);
}

/// Another call waits under the id of the call that was shown: a grant answers only the question that was shown.
#[tokio::test]
async fn a_grant_answers_the_question_that_was_shown() {
    let rig = rig();
    let first = rig.runner.run(ada());
    assert_eq!(posts(&first, "first", "ada", 1).await, Outcome::ApprovalRequired);
    let shown = first.question("first").await;
    first.resume(&shown, ApprovalDecision::Deny(None), &grace()).await.expect("it waits");
    let second = rig.runner.run(ada());
    assert_eq!(posts(&second, "first", "eve", 9).await, Outcome::ApprovalRequired);
    let everything = || Grant::allow(GrantScope::Tenant).any_arguments().uses(9).expires_in(WEEK);
    let queue = tool_runtime::agent::RunQueue::new(&rig.runner);
    for refused in [
        second.remember(&shown, everything(), &grace()).await,
        queue.remember("run-1", &shown, everything(), &grace()).await,
    ] {
        assert_eq!(refused.expect_err("another question").code(), "not_allowed");
    }
    assert!(rig.runner.grants(Some("acme")).await.expect("grants").is_empty());
    let records = rig.store.records(&RecordFilter::run("run-1")).await.expect("records");
    let mismatches = records.iter().filter_map(|sealed| sealed.record.as_decision()?.mismatch());
    assert_eq!(mismatches.filter(|mismatch| *mismatch == DecisionError::Question).count(), 2);
    second.remember_shown("first", everything(), &grace()).await.expect("its own question");
}

/// The decider's right is checked again, under the policy of the run that uses the grant.
#[tokio::test]
async fn a_grant_ends_with_the_right_of_its_decider() {
    let manager = || Decider::new("grace").tenant("acme").role("manager");
    let deciders = |roles: &str| format!("{ASKS}\n[approvals.tools.waiting__post]\n{roles}");
    let rig = rig_with(Arc::new(MemoryStore::new()), &deciders(r#"roles = ["manager"]"#));
    let run = rig.runner.run(conversation());
    assert_eq!(posts(&run, "first", "ada", 1).await, Outcome::ApprovalRequired);
    let everything = Grant::allow(GrantScope::Tenant).any_arguments().uses(9).expires_in(WEEK);
    let grant = run.remember_shown("first", everything, &manager()).await.expect("a grant");
    let used = rig.runner.run(conversation().run_id("run-2"));
    assert_eq!(posts(&used, "a", "ada", 1).await, Outcome::Ok);

    let later = rig_with(Arc::clone(&rig.store), &deciders(r#"roles = ["director"]"#));
    let run = later.runner.run(conversation().run_id("run-3"));
    assert_eq!(posts(&run, "b", "ada", 1).await, Outcome::ApprovalRequired);
    let open = rig.store.open_records(&RecordFilter::run("run-3")).await.expect("records").remove(0);
    let void = open.void_grant().expect("the grant that does not count");
    assert_eq!(void, (&*grant.id, DecisionError::DeciderRole));
    let director = Decider::new("grace").tenant("acme").role("director");
    run.resume_shown("b", ApprovalDecision::Approve, &director).await.expect("it waits");
    let record = rig.store.calls(&RecordFilter::run("run-3")).await.expect("records").remove(0);
    assert_eq!((record.outcome, record.void_grant()), (Outcome::Ok, open.void_grant()));

    // Under `own_calls = false` a decider cannot approve their own calls, not even through a grant for the tenant.
    let own = RunOptions::new().run_id("run-4").principal("grace").tenant("acme").role("editor");
    let run = rig.runner.run(own);
    assert_eq!(posts(&run, "c", "ada", 1).await, Outcome::ApprovalRequired);
    let open = rig.store.open_records(&RecordFilter::run("run-4")).await.expect("records").remove(0);
    assert_eq!(open.void_grant().map(|(_, why)| why), Some(DecisionError::OwnCall));
    assert_eq!(posts(&rig.runner.run(conversation().run_id("run-5")), "d", "ada", 1).await, Outcome::Ok, "as before");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_last_use_is_taken_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let sqlite = SqlStore::sqlite(folder.path().join("grants.db"), SqlOptions::new()).await.expect("a store");
    for store in [Arc::new(MemoryStore::new()) as Arc<dyn Store>, Arc::new(sqlite)] {
        the_last_use_is_taken_once_of(&rig_over(store)).await;
    }
}

async fn the_last_use_is_taken_once_of(rig: &Rig) {
    remembered(rig, Grant::allow(GrantScope::Tenant).uses(5).expires_in(WEEK)).await.expect("a grant");
    let mut racing = tokio::task::JoinSet::new();
    for number in 0..40 {
        let run = rig.runner.run(ada().run_id(format!("racing-{number}")));
        racing.spawn(async move { (posts(&run, "c", "ada", 1).await, run) });
    }
    let (outcomes, runs): (Vec<_>, Vec<_>) = racing.join_all().await.into_iter().unzip();
    // A waiting call has spent nothing yet. It counts after the decision.
    for (outcome, run) in outcomes.iter().zip(&runs) {
        let saved = serde_json::to_value(run.snapshot().await.expect("a snapshot")).expect("JSON");
        assert_eq!(saved["spent"]["calls"], u64::from(*outcome == Outcome::Ok), "{outcome:?}");
    }
    let count = |outcome: Outcome| outcomes.iter().filter(|one| **one == outcome).count();
    assert_eq!((count(Outcome::Ok), count(Outcome::ApprovalRequired)), (5, 35), "{outcomes:?}");
    // The calls that wait now state the cause, as if there had been no grant.
    let waiting = tests::pending_calls(&*rig.store, &RecordFilter::default()).await;
    assert!(waiting.iter().all(|call| call.rule.as_deref() == Some("require_approval_for_tools")), "{waiting:?}");
}

/// Several processes revoke a grant, and one revokes a grant of the same id in another tenant.
#[tokio::test]
async fn a_grant_is_revoked_once_and_in_its_tenant_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let sqlite = SqlStore::sqlite(folder.path().join("grants.db"), SqlOptions::new()).await.expect("a store");
    for store in [Arc::new(MemoryStore::new()) as Arc<dyn Store>, Arc::new(sqlite)] {
        let rig = rig_over(Arc::clone(&store));
        let grant =
            remembered(&rig, Grant::allow(GrantScope::Principal).uses(5).expires_in(WEEK)).await.expect("a grant");
        for tenant in [Some("other".into()), None] {
            let mut foreign = grant.clone();
            foreign.tenant = tenant;
            assert!(!foreign.revoke(&*store, &grace()).await.expect("a store"), "{:?}", foreign.tenant);
        }
        // A decider of another tenant, and one without a readable name.
        for decider in [tests::grace(), Decider::new("grace").tenant("other"), Decider::new("\u{200b}").tenant("acme")]
        {
            assert!(!grant.revoke(&*store, &decider).await.expect("a store"), "{decider:?}");
            assert!(!rig.runner.revoke(&grant, &decider).await.expect("a store"), "{decider:?}");
        }
        assert!(revocations(&rig).await.is_empty());
        let mut renamed = grant.clone();
        renamed.id = "another".into();
        assert!(!renamed.revoke(&*store, &grace()).await.expect("a store"));
        let run = rig.runner.run(ada().run_id("run-2"));
        assert_eq!(posts(&run, "before", "ada", 1).await, Outcome::Ok, "it is in force");
        let mut racing = tokio::task::JoinSet::new();
        for number in 0..8 {
            let (grant, store) = (grant.clone(), Arc::clone(&store));
            let decider = Decider::new(format!("admin-{number}")).tenant("acme").because("It was a mistake.");
            racing.spawn(async move { grant.revoke(&*store, &decider).await.expect("a store") });
        }
        let found = racing.join_all().await.into_iter().filter(|found| *found).count();
        assert_eq!(found, 1);
        assert_eq!(posts(&run, "after", "ada", 1).await, Outcome::ApprovalRequired);
        assert!(!grant.revoke(&*store, &grace()).await.expect("a store"), "it is gone");
        let revoked = revocations(&rig).await;
        let [revoked] = revoked.as_slice() else { panic!("one record: {revoked:?}") };
        assert_eq!((&*revoked.run_id, revoked.call_id.as_str(), &revoked.grant), ("run-1", "first", &Some(grant.id)));
        let decider = revoked.decider.as_ref().expect("a decider");
        assert!(decider.principal().starts_with("admin-"), "{decider:?}");
        assert_eq!(decider.reason(), Some("It was a mistake."));
    }
}

/// Returns the records of revocations.
async fn revocations(rig: &Rig) -> Vec<DecisionRecord> {
    let filter = RecordFilter { code: Some("revoked".into()), ..RecordFilter::default() };
    let records = rig.store.records(&filter).await.expect("records");
    records.into_iter().filter_map(|sealed| sealed.record.as_decision().cloned()).collect()
}

/// The record is about the call from which the grant was made, also if a copy of the grant says something else.
#[tokio::test]
async fn a_revocation_is_recorded_with_the_stored_grant() {
    let rig = rig();
    let run = rig.runner.run(conversation().run_id("run-7"));
    assert_eq!(posts(&run, "first", "ada", 1).await, Outcome::ApprovalRequired);
    let everything = Grant::allow(GrantScope::Tenant).any_arguments().uses(9).expires_in(WEEK);
    let grant = run.remember_shown("first", everything, &grace()).await.expect("a grant");
    let mut copy = grant.clone();
    (copy.principal, copy.uses) = (Some("mallory".into()), None);
    let later = rig.clock.now() + Duration::from_hours(3);
    rig.clock.set(later);
    let heidi = Decider::new("heidi").tenant("acme").role("security").because("ada left");
    assert!(rig.runner.revoke(&copy, &heidi).await.expect("a store"));
    let records = rig.store.records(&RecordFilter::run("run-7")).await.expect("records");
    Chain::verify(&records).expect("a chain");
    let made = records[0].record.as_decision().expect("a decision").clone();
    let revoked = revocations(&rig).await.remove(0);
    assert_eq!((&*revoked.run_id, &revoked.call_id, &revoked.tool), ("run-7", &made.call_id, &made.tool));
    assert_eq!((revoked.principal.as_deref(), revoked.tenant.as_deref()), (Some("ada"), Some("acme")));
    assert_eq!((revoked.decision, revoked.refused()), (DecisionKind::Revoked, None));
    assert_eq!(revoked.argument_digest, made.argument_digest);
    let arguments = |record: &DecisionRecord| serde_json::to_value(record).expect("JSON")["arguments"].clone();
    assert_eq!(arguments(&revoked), arguments(&made));
    assert_eq!((revoked.decider, revoked.grant), (Some(heidi), Some(grant.id)));
    // The reviewed call still waits, and is decided as if there had been no grant.
    let result = run.resume_shown("first", ApprovalDecision::Approve, &grace()).await.expect("it waits");
    assert_eq!(result.outcome(), Outcome::Ok);
}
