//! Preconditions: an approval holds only while the outside state that the approver was shown is unchanged, through each
//! way of deciding.

mod by_hand;
mod doors;
mod failing;
mod late;
mod masked;
mod named;
mod several;
mod stale;

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use tests::world::{EventLog, Processes, World};
use tool_runtime::call::{CallId, Decider, DecisionError, Question};
use tool_runtime::runner::{ApprovalDecision, Grant, ResumeError};
use tool_runtime::store::{Chain, DecisionKind, DecisionRecord, GrantScope, PendingCall, RecordFilter, Store};
use tool_runtime::{
    Capabilities, Event, Outcome, Precondition, Run, RunOptions, ToolCall, ToolContext, ToolError, ToolExecResult,
    ToolRunner, capability, tool,
};

/// Reads accounts.
#[capability(effect = read_only)]
#[async_trait]
pub(crate) trait Accounts {
    /// The balance of an account.
    async fn balance(&self, account: &str) -> Result<i64, ToolError>;

    /// The balance as it was read last.
    fn known(&self) -> i64;
}

/// The answer of the accounts.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// The balance.
    #[default]
    Balance,
    /// Another balance each time.
    Anything,
    Error,
    Panic,
    Hang,
}

/// Accounts with a balance that the test sets.
#[derive(Default)]
pub(crate) struct Balances {
    balance: AtomicI64,
    answer: Mutex<Answer>,
    reads: AtomicU32,
}

impl Balances {
    fn set(&self, balance: i64) {
        self.balance.store(balance, Ordering::Release);
    }

    fn answer(&self, answer: Answer) {
        *self.answer.lock().unwrap() = answer;
    }

    fn reads(&self) -> u32 {
        self.reads.load(Ordering::Acquire)
    }
}

#[async_trait]
impl Accounts for Balances {
    async fn balance(&self, account: &str) -> Result<i64, ToolError> {
        self.reads.fetch_add(1, Ordering::AcqRel);
        let answer = *self.answer.lock().unwrap();
        match answer {
            Answer::Balance => {
                let other = i64::from(account == "other");
                Ok(self.balance.load(Ordering::Acquire) + 1000 * other)
            }
            Answer::Anything => Ok(self.balance.fetch_add(1, Ordering::AcqRel)),
            Answer::Error => Err(ToolError::code("no_account").with_safe(format!("There is no account {account}."))),
            Answer::Panic => panic!("CANARY"),
            Answer::Hang => std::future::pending().await,
        }
    }

    fn known(&self) -> i64 {
        self.balance.load(Ordering::Acquire)
    }
}

/// Pays out.
#[tool(name = "world__pay", effect = state_change, redact = ["$"], summary = "Pays {cents} to {account}")]
struct Pay {
    /// Which account.
    account: String,
    /// How much.
    cents: i64,
    /// The PIN.
    #[arg(sensitive)]
    pin: Option<String>,
}

#[tool]
impl Pay {
    async fn run(self, world: &dyn World) -> Result<i64, ToolError> {
        world.happen();
        Ok(self.cents)
    }

    async fn precondition(self, accounts: &dyn Accounts, context: &ToolContext) -> Result<Precondition, ToolError> {
        assert_eq!(context.tool().as_str(), "world__pay");
        let stated = Precondition::of("balance", accounts.balance(&self.account).await?);
        Ok(match self.pin {
            Some(pin) => stated.and("note", format!("with {pin}")),
            None => stated,
        })
    }
}

/// Charges an account.
#[tool(name = "world__charge", effect = state_change, redact = ["$"], precondition = charged(account, accounts))]
fn charge(
    world: &dyn World,
    accounts: &dyn Accounts,
    /// Which account.
    account: String,
) -> Result<String, ToolError> {
    let _ = accounts;
    world.happen();
    Ok(account)
}

async fn charged(account: &str, accounts: &dyn Accounts) -> Result<Precondition, ToolError> {
    Ok(Precondition::of("balance", accounts.balance(account).await?))
}

/// Closes an account; reads nothing else.
#[tool(name = "world__close", effect = read_only, redact = ["$"], precondition = charged)]
async fn close(
    /// Which account.
    account: String,
    accounts: &dyn Accounts,
) -> Result<i64, ToolError> {
    accounts.balance(&account).await
}

pub(crate) const ASKS: &str = "require_approval_for_tools = ['world__pay', 'world__charge', 'world__close']";

pub(crate) struct Rig {
    pub(crate) shared: Processes,
    accounts: Arc<Balances>,
}

impl Rig {
    pub(crate) fn new() -> Self {
        let accounts = Arc::new(Balances::default());
        accounts.set(120);
        Self { shared: Processes::at("2026-01-01T00:00:00Z", 9), accounts }
    }

    fn capabilities(&self) -> Capabilities {
        self.shared.capabilities().with(Arc::clone(&self.accounts) as Arc<dyn Accounts>)
    }

    /// Another process each time.
    fn process(&self, rules: &str) -> ToolRunner {
        self.process_over(Arc::clone(&self.shared.store) as _, rules)
    }

    /// A process over a separate store.
    fn process_over(&self, store: Arc<dyn Store>, rules: &str) -> ToolRunner {
        let policy = format!(
            "allowed_tools = ['world__pay', 'world__charge', 'world__close', 'world__slow', 'world__much', \
             'world__ready', 'world__wire', 'world__told', 'world__hide']\n{rules}"
        );
        self.shared.start(store, &policy, self.capabilities())
    }

    fn run(&self) -> Run {
        self.process(ASKS).run(of("run-1"))
    }

    async fn waiting(&self) -> PendingCall {
        let mut calls = tests::pending_calls(&*self.shared.store, &RecordFilter::default()).await;
        assert_eq!(calls.len(), 1);
        calls.remove(0)
    }

    async fn decisions(&self) -> Vec<DecisionRecord> {
        let records = self.shared.store.records(&RecordFilter::default()).await.expect("records");
        assert_eq!(Chain::verify(&records), Ok(()));
        records.into_iter().filter_map(|sealed| sealed.record.as_decision().cloned()).collect()
    }

    /// The reasons for which decisions were refused.
    async fn refused(&self) -> Vec<DecisionError> {
        self.decisions().await.iter().filter_map(DecisionRecord::mismatch).collect()
    }
}

fn of(id: &str) -> RunOptions {
    RunOptions::new().run_id(id).principal("ada").tenant("acme")
}

fn call(tool: &str) -> ToolCall {
    let arguments = if tool == "world__pay" { r#"{"account":"a-1","cents":50}"# } else { r#"{"account":"a-1"}"# };
    ToolCall::text("c1", tool, arguments)
}

fn grace() -> Decider {
    Decider::new("grace").tenant("acme")
}

fn asked(result: &ToolExecResult) -> Question {
    assert_eq!(result.outcome(), Outcome::ApprovalRequired, "{}", result.to_model());
    result.question().expect("a question").clone()
}

async fn approve(run: &Run, question: &Question) -> ToolExecResult {
    run.resume(question, ApprovalDecision::Approve, &grace()).await.expect("it waits")
}

/// The result of a decision that did not count because of the world.
#[track_caller]
fn of_another_world(result: &ToolExecResult) {
    let mismatch = result.error().and_then(|error| error.mismatch);
    let found = (result.outcome(), mismatch, result.executed());
    assert_eq!(found, (Outcome::ApprovalMismatch, Some(DecisionError::World), false));
}

/// The arguments, the sentence and the question of each call that an event shows as waiting.
fn suspended(heard: &EventLog) -> Vec<(String, Option<String>, Question)> {
    let shown = |event| match event {
        Event::ToolCallSuspended { arguments, summary, question, .. } => {
            Some((arguments.expect("arguments").get().to_owned(), summary, question))
        }
        _ => None,
    };
    heard.take().into_iter().filter_map(shown).collect()
}

fn pairs<'a>(stated: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<(String, String)> {
    stated.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn balance(value: &str) -> Vec<(String, String)> {
    vec![("balance".to_owned(), value.to_owned())]
}

#[tokio::test]
async fn an_unchanged_world_lets_the_approved_call_run() {
    for (tool, sentence) in [("world__pay", "Pays 50 to “a-1”. "), ("world__charge", ""), ("world__close", "")] {
        let rig = Rig::new();
        let question = asked(&rig.run().exec(call(tool)).await);
        let summary = rig.waiting().await.summary.expect("a sentence");
        assert_eq!(summary, format!("{sentence}This call depends on: “balance” is “120”."));
        // Another process, which has only the store.
        let result = approve(&rig.run(), &question).await;
        assert_eq!((result.outcome(), result.executed()), (Outcome::Ok, true));
        let decisions = rig.decisions().await;
        let [decision] = &*decisions else { panic!("{decisions:?}") };
        assert_eq!((decision.decision, decision.mismatch()), (DecisionKind::Approved, None));
        assert_eq!(pairs(decision.shown_statements()), balance("120"));
        assert_eq!(decision.statements_at_begin().map(pairs), Some(balance("120")));
    }
}

#[tokio::test]
async fn a_changed_world_asks_anew_and_the_old_decision_never_counts() {
    for tool in ["world__pay", "world__charge", "world__close"] {
        let rig = Rig::new();
        let heard = EventLog::default();
        let run = rig.process(ASKS).run(of("run-1").events(heard.sink()));
        let first = asked(&run.exec(call(tool)).await);
        drop(heard.take());
        rig.accounts.set(90);
        of_another_world(&approve(&run, &first).await);
        let pending = rig.waiting().await;
        let second = pending.question();
        assert_ne!(first, second);
        let summary = pending.summary.as_deref().expect("a sentence");
        assert!(
            summary
                .starts_with("An approval did not count, because this has changed: “balance” was “120” and is “90”. ")
                && summary.ends_with("This call depends on: “balance” is “90”."),
            "{summary}"
        );
        // A UI gets the new question.
        let shown: Vec<_> = heard
            .take()
            .into_iter()
            .filter_map(|event| match event {
                Event::ToolCallSuspended { question, summary, .. } => Some((question, summary)),
                _ => None,
            })
            .collect();
        assert_eq!(shown, [(second.clone(), pending.summary.clone())]);
        // The same decision again, here and in another process.
        for run in [&run, &rig.run()] {
            let again = approve(run, &first).await;
            assert_eq!(again.error().and_then(|error| error.mismatch), Some(DecisionError::Question));
        }
        assert_eq!(rig.shared.effects(), 0);
        let result = approve(&rig.run(), &second).await;
        assert_eq!(result.outcome(), Outcome::Ok, "{}", result.to_model());
        let late = rig.run().resume(&second, ApprovalDecision::Approve, &grace()).await;
        assert!(matches!(late, Err(ResumeError::NotWaiting(_))), "{late:?}");
        assert_eq!(rig.shared.effects(), u32::from(tool != "world__close"));
        let decisions = rig.decisions().await;
        let refused = &decisions[0];
        assert_eq!(refused.mismatch(), Some(DecisionError::World));
        assert_eq!(refused.refused(), Some(Outcome::ApprovalMismatch));
        assert_eq!(pairs(refused.shown_statements()), balance("120"));
        assert_eq!(refused.statements_at_begin().map(pairs), Some(balance("90")));
        let carried_out = decisions.iter().find(|decision| decision.mismatch().is_none()).expect("a decision");
        assert_eq!(pairs(carried_out.shown_statements()), balance("90"));
        assert_eq!(carried_out.statements_at_begin().map(pairs), Some(balance("90")));
    }
}

/// A world that changed and changed back is the one that was shown.
#[tokio::test]
async fn only_the_world_at_the_begin_counts() {
    let rig = Rig::new();
    let question = asked(&rig.run().exec(call("world__pay")).await);
    rig.accounts.set(90);
    rig.accounts.set(120);
    assert_eq!(approve(&rig.run(), &question).await.outcome(), Outcome::Ok);
}

#[tokio::test]
async fn a_world_that_always_changes_does_not_ask_for_ever() {
    let rig = Rig::new();
    rig.accounts.answer(Answer::Anything);
    let mut question = asked(&rig.run().exec(call("world__pay")).await);
    for _ in 0..3 {
        of_another_world(&approve(&rig.run(), &question).await);
        question = rig.waiting().await.question();
    }
    let ended = approve(&rig.run(), &question).await;
    assert_eq!((ended.outcome(), ended.executed()), (Outcome::Cancelled, false));
    assert_eq!(ended.error().and_then(|error| error.tool_code.as_deref()), Some("world_changed"));
    assert!(ended.to_model().contains("had changed after each approval"), "{}", ended.to_model());
    let late = rig.run().resume(&question, ApprovalDecision::Approve, &grace()).await;
    assert!(matches!(late, Err(ResumeError::NotWaiting(_))), "{late:?}");
    let mut refused = rig.refused().await;
    assert_eq!(refused.pop(), Some(DecisionError::NotPending));
    assert_eq!(refused, [DecisionError::World; 4]);
    let records = rig.shared.closed().await;
    assert_eq!(records.iter().map(|record| record.outcome).collect::<Vec<_>>(), [Outcome::Cancelled]);
    assert_eq!(rig.shared.effects(), 0);
}

/// The gate takes no precondition of a call that needs no approval, or that a grant permits.
#[tokio::test]
async fn only_a_call_that_waits_is_read() {
    let rig = Rig::new();
    for tool in ["world__pay", "world__charge"] {
        let result = rig.process("").run(of(tool)).exec(call(tool)).await;
        assert_eq!((result.outcome(), rig.accounts.reads()), (Outcome::Ok, 0));
    }
    let question = asked(&rig.run().exec(call("world__pay")).await);
    assert_eq!(rig.accounts.reads(), 1);
    let grant = Grant::allow(GrantScope::Principal).any_arguments();
    rig.run().remember(&question, grant, &grace()).await.expect("a grant");
    rig.accounts.set(90);
    let result = rig.process(ASKS).run(of("run-2")).exec(call("world__pay")).await;
    assert_eq!((result.outcome(), rig.accounts.reads()), (Outcome::Ok, 1));
    // The waiting call is compared all the same.
    of_another_world(&approve(&rig.run(), &question).await);
    // A denial is not.
    let (reads, question) = (rig.accounts.reads(), rig.waiting().await.question());
    let denied = rig.run().resume(&question, ApprovalDecision::Deny(None), &grace()).await.expect("it waits");
    assert_eq!((denied.outcome(), rig.accounts.reads()), (Outcome::ApprovalDenied, reads));
}

/// The approver was shown the world of the model's arguments, so that is the one that is compared.
#[tokio::test]
async fn an_edited_call_is_compared_by_the_arguments_that_were_shown() {
    let edited = || ApprovalDecision::ApproveEdited(r#"{"account":"other","cents":5}"#.to_owned());
    let rig = Rig::new();
    let question = asked(&rig.run().exec(call("world__pay")).await);
    let result = rig.run().resume(&question, edited(), &grace()).await.expect("it waits");
    assert_eq!((result.outcome(), rig.shared.effects()), (Outcome::Ok, 1));
    let (rig, heard) = (Rig::new(), EventLog::default());
    let run = rig.process(ASKS).run(of("run-1").events(heard.sink()));
    let question = asked(&run.exec(call("world__pay")).await);
    rig.accounts.set(90);
    drop(heard.take());
    of_another_world(&run.resume(&question, edited(), &grace()).await.expect("it waits"));
    let pending = rig.waiting().await;
    // The new question is about the arguments of the model.
    let arguments = r#"{"account":"a-1","cents":50}"#.to_owned();
    assert_eq!(suspended(&heard), [(arguments, pending.summary.clone(), pending.question())]);
    assert_eq!((pending.arguments(), rig.shared.effects()), (r#"{"account":"a-1","cents":50}"#, 0));
    let result = rig.run().resume(&pending.question(), edited(), &grace()).await.expect("it waits");
    assert_eq!((result.outcome(), rig.shared.effects()), (Outcome::Ok, 1));
}

/// A statement can contain the value of a sensitive argument.
#[tokio::test]
async fn values_of_sensitive_arguments_are_masked_and_compared() {
    let rig = Rig::new();
    let heard = EventLog::default();
    let secret = || ToolCall::text("c1", "world__pay", r#"{"account":"a-1","cents":50,"pin":"CANARY-7"}"#);
    let run = rig.process(ASKS).run(of("run-1").events(heard.sink()));
    let question = asked(&run.exec(secret()).await);
    let waiting = rig.waiting().await;
    let summary = waiting.summary.as_deref().expect("a sentence");
    assert!(summary.ends_with("This call depends on: “balance” is “120”, “note” is “[sensitive]”."), "{summary}");
    assert!(!format!("{waiting:?}").contains("CANARY"));
    rig.accounts.set(90);
    of_another_world(&approve(&run, &question).await);
    let records = rig.shared.store.records(&RecordFilter::default()).await.expect("records");
    let kept = format!("{}{:?}", serde_json::to_string(&records).expect("JSON"), heard.take());
    assert!(kept.contains("120") && !kept.contains("CANARY"), "{kept}");
    assert_eq!(approve(&rig.run(), &rig.waiting().await.question()).await.outcome(), Outcome::Ok);
}

/// Two processes decide at once: the world is compared in both, and the call runs once at most.
#[tokio::test]
async fn decisions_that_race_over_a_changed_world() {
    let rig = Rig::new();
    let question = asked(&rig.run().exec(call("world__pay")).await);
    rig.accounts.set(90);
    let (one, other) = (rig.run(), rig.run());
    let approve = async |run: &Run| run.resume(&question, ApprovalDecision::Approve, &grace()).await;
    let (one, other) = tokio::join!(approve(&one), approve(&other));
    for ended in [one, other] {
        match ended {
            Ok(result) => assert_eq!(result.outcome(), Outcome::ApprovalMismatch),
            Err(error) => assert!(matches!(error, ResumeError::NotWaiting(_)), "{error:?}"),
        }
    }
    assert_eq!((rig.shared.effects(), rig.refused().await.len()), (0, 2));
    assert_eq!(approve(&rig.run()).await.expect("it waits").outcome(), Outcome::ApprovalMismatch);
    let result = self::approve(&rig.run(), &rig.waiting().await.question()).await;
    assert_eq!((result.outcome(), rig.shared.effects()), (Outcome::Ok, 1));
}

/// Made again while it waits, it is the same waiting call with the same question, and announced as it waits.
#[tokio::test]
async fn the_same_call_again_keeps_its_question() {
    let (rig, heard) = (Rig::new(), EventLog::default());
    let again = async || asked(&rig.process(ASKS).run(of("run-1").events(heard.sink())).exec(call("world__pay")).await);
    let question = again().await;
    let first = suspended(&heard);
    assert_eq!(first[0].2, question);
    rig.accounts.set(90);
    assert_eq!((again().await, suspended(&heard)), (question.clone(), first.clone()));
    // Also if the world cannot be read now.
    rig.accounts.answer(Answer::Error);
    assert_eq!((again().await, suspended(&heard)), (question.clone(), first));
    rig.accounts.answer(Answer::Balance);
    of_another_world(&approve(&rig.run(), &question).await);
    let renewed = rig.waiting().await.question();
    assert_eq!(again().await, renewed);
}

/// A snapshot from before the question was replaced does not bring it back.
#[tokio::test]
async fn a_restored_run_asks_the_question_that_replaced_the_old_one() {
    let rig = Rig::new();
    let run = rig.run();
    let question = asked(&run.exec(call("world__pay")).await);
    let before = serde_json::to_string(&run.snapshot().await.expect("a snapshot")).expect("JSON");
    rig.accounts.set(90);
    of_another_world(&approve(&run, &question).await);
    drop(run);
    let snapshot = serde_json::from_str(&before).expect("a snapshot");
    let restored = rig.process(ASKS).restore(snapshot, of("run-1")).await.expect("a run");
    let again = approve(&restored, &question).await;
    assert_eq!(again.error().and_then(|error| error.mismatch), Some(DecisionError::Question));
    let pending = restored.pending(&CallId::new("c1")).await.expect("a store").expect("it waits");
    assert_eq!(approve(&restored, &pending.question()).await.outcome(), Outcome::Ok);
    assert_eq!(rig.shared.effects(), 1);
}

/// The deadline is that of the first question.
#[tokio::test]
async fn a_new_question_does_not_prolong_the_wait() {
    let rig = Rig::new();
    let question = asked(&rig.run().exec(call("world__pay")).await);
    let expires = rig.waiting().await.expires_at;
    rig.shared.clock.advance(Duration::from_mins(1));
    rig.accounts.set(90);
    of_another_world(&approve(&rig.run(), &question).await);
    assert_eq!(rig.waiting().await.expires_at, expires);
}
