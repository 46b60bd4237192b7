//! The ways in which a call is decided, expires, is withdrawn or is settled. Each change writes its notice in its own
//! transaction, also if the store fails at any of its operations.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use tests::world::{HookAction, HookedStore};
use tool_runtime::agent::{
    Conversation, DisplayFn, Durable, Input, ModelClient, ModelError, ModelRequest, SavedConversation, Step, StepError,
    StepFuture,
};
use tool_runtime::call::Question;
use tool_runtime::runner::SealingKeys;
use tool_runtime::store::{MemoryStore, RecordFilter, StoreError};
use tool_runtime::wire::{Decoded, Message};
use tool_runtime::{Outcome, Reconciled};

use super::*;

type Later<'p, T> = Pin<Box<dyn Future<Output = T> + 'p>>;

/// A door to a call.
struct Door {
    name: &'static str,
    /// How many effects can end.
    open: usize,
    /// Prepares the call. Returns its token or its question.
    prepare: for<'p> fn(&'p Processes) -> Later<'p, String>,
    /// Decides or ends the call, in another process.
    act: fn(ToolRunner, String) -> Later<'static, ()>,
    /// All notices of the store.
    expected: &'static [&'static str],
}

const DOORS: [Door; 8] = [
    Door {
        name: "token",
        open: 1,
        prepare: |processes| Box::pin(sealed(processes)),
        act: |runner, token| Box::pin(decide_by_token(runner, token)),
        expected: &["call.waiting", "call.decided approved"],
    },
    Door {
        name: "token in another store",
        open: 1,
        prepare: |_| Box::pin(async { sealed(&processes(0)).await }),
        act: |runner, token| Box::pin(decide_by_token(runner, token)),
        expected: &["call.waiting", "call.decided approved"],
    },
    Door {
        name: "engine",
        open: 1,
        prepare: |_| Box::pin(async { String::new() }),
        act: |runner, _| Box::pin(drive(runner)),
        expected: &["call.waiting", "call.decided approved"],
    },
    Door {
        name: "queue",
        open: 1,
        prepare: |processes| Box::pin(question(processes)),
        act: |runner, question| Box::pin(decide_by_queue(runner, question, ApprovalDecision::Deny(None))),
        expected: &["call.waiting", "call.decided denied"],
    },
    Door {
        name: "abandoned",
        open: 1,
        prepare: |processes| Box::pin(question(processes)),
        act: |runner, _| Box::pin(async move { drop(runner.run(ada()).abandon("c/1").await) }),
        expected: &["call.waiting", "call.decided abandoned"],
    },
    Door {
        name: "expired",
        open: 1,
        prepare: |processes| Box::pin(expired(processes)),
        act: |runner, question| Box::pin(async move { drop(runner.run(ada()).expire(&parsed(&question)).await) }),
        expected: &["call.waiting", "call.expired"],
    },
    Door {
        name: "decided late",
        open: 1,
        prepare: |processes| Box::pin(expired(processes)),
        act: |runner, question| Box::pin(decide_by_queue(runner, question, ApprovalDecision::Approve)),
        expected: &["call.waiting", "call.expired"],
    },
    Door {
        name: "settled",
        open: 0,
        prepare: |processes| Box::pin(unknown(processes)),
        act: |runner, _| {
            Box::pin(async move {
                let call = CallId::new("c/1");
                drop(runner.run(ada()).settle(&call, Reconciled::Prevented, &by("grace")).await);
            })
        },
        // A settlement sends no notice.
        expected: &["call.unknown"],
    },
];

fn policy() -> String {
    format!("{POLICY}{ASKS}{NOTICES}")
}

fn keys() -> SealingKeys {
    SealingKeys::new("2026-01", [7; 32])
}

fn parsed(question: &str) -> Question {
    question.parse().expect("a question")
}

async fn question(processes: &Processes) -> String {
    waits(processes, &policy()).await.question("c/1").await.to_string()
}

async fn expired(processes: &Processes) -> String {
    let question = question(processes).await;
    processes.clock.advance(Duration::from_hours(25));
    question
}

async fn sealed(processes: &Processes) -> String {
    waits(processes, &policy()).await.seal("c/1", &keys()).await.expect("it waits")
}

async fn unknown(processes: &Processes) -> String {
    let run = runner(processes, &format!("{POLICY}{NOTICES}")).run(ada());
    let cancelled = run.clone();
    let stuck = processes.stuck(async move { run.exec(call()).await }).await;
    cancelled.cancel();
    stuck.await.expect("it ends");
    String::new()
}

async fn decide_by_queue(runner: ToolRunner, question: String, decision: ApprovalDecision) {
    drop(RunQueue::new(&runner).decide("run 1", &parsed(&question), decision, &by("grace")).await);
}

async fn decide_by_token(runner: ToolRunner, token: String) {
    if let Ok((run, question)) = runner.open_token(&token, &keys(), ada()).await {
        drop(run.resume(&question, ApprovalDecision::Approve, &by("grace")).await);
    }
}

/// An engine without a journal: each attempt does every unit.
struct Engine(Agent, ToolRunner);

#[async_trait]
impl Durable for Engine {
    type Error = StepError;

    async fn unit(&self, _name: &str, work: StepFuture<'_>) -> Result<SavedConversation, StepError> {
        Ok(work.await?)
    }

    async fn restore(&self, saved: SavedConversation) -> Result<Conversation, StepError> {
        self.0.restore(&self.1, ada(), saved).await.map_err(StepError::other)
    }
}

/// A model whose next turn depends only on the history.
struct Staged;

#[async_trait]
impl ModelClient for Staged {
    fn name(&self) -> &'static str {
        "staged"
    }

    async fn complete(&self, request: ModelRequest<'_>, show: &mut DisplayFn<'_>) -> Result<Decoded, ModelError> {
        let is_first = !request.messages.iter().any(|message| matches!(message, Message::Assistant(_)));
        let call = || ScriptedTurn::call("c/1", "notices__refund", ARGUMENTS);
        let turn = if is_first { call() } else { ScriptedTurn::text("Done.") };
        ScriptedModel::new([turn]).complete(request, show).await
    }
}

async fn drive(runner: ToolRunner) {
    let engine = Engine(Agent::new(Staged), runner);
    let driven = async {
        let mut conversation = engine.0.clone().converse(engine.1.run(ada()));
        conversation.accept_on(&engine, "message", Input::from("Refund it.")).await?;
        loop {
            match conversation.step_on(&engine).await? {
                Step::Waits(calls) => {
                    let approve = ApprovalDecision::Approve;
                    let decision = Input::new().decide(&calls[0].question, approve, &by("grace"));
                    conversation.accept_on(&engine, "decision", decision).await?;
                }
                Step::Ended(_) => return Ok::<_, StepError>(()),
                _ => {}
            }
        }
    };
    drop(driven.await);
}

/// Every call that began to wait still waits, or its end has a notice. Every unknown outcome has a notice.
async fn is_whole(processes: &Processes, what: &str) {
    let store: &MemoryStore = &processes.store;
    let kinds = kinds(processes).await;
    let count = |kind: &str| kinds.iter().filter(|found| found.split(' ').next() == Some(kind)).count();
    let waiting = store.list(&Query::new(DocumentKind::Waiting)).await.expect("a list").len();
    assert_eq!(count("call.waiting"), waiting + count("call.decided") + count("call.expired"), "{what}: {kinds:?}");
    let calls = store.calls(&RecordFilter::default()).await.expect("records");
    let unknown = calls.iter().filter(|record| record.outcome == Outcome::OutcomeUnknown).count();
    assert_eq!(count("call.unknown"), unknown, "{what}: {kinds:?}");
}

#[tokio::test(start_paused = true)]
async fn each_door_writes_one_notice_with_its_change() {
    for door in DOORS {
        let processes = processes(door.open);
        let token = (door.prepare)(&processes).await;
        (door.act)(runner_over(&processes, Arc::clone(&processes.store) as _, &policy(), catalog()), token.clone())
            .await;
        assert_eq!(kinds(&processes).await, door.expected, "{}", door.name);
        is_whole(&processes, door.name).await;
        if door.name != "engine" {
            (door.act)(runner_over(&processes, Arc::clone(&processes.store) as _, &policy(), catalog()), token).await;
            assert_eq!(kinds(&processes).await, door.expected, "{}: it is noticed once", door.name);
        }
    }
}

/// The process dies at each operation of the store, before it or after it was stored.
#[tokio::test(start_paused = true)]
async fn no_door_leaves_a_change_without_its_notice() {
    for (door, is_stored) in DOORS.iter().flat_map(|door| [(door, false), (door, true)]) {
        let mut at = 0;
        loop {
            let what = format!("{}, operation {at}, stored: {is_stored}", door.name);
            let (processes, done) = (processes(door.open), Arc::new(AtomicUsize::new(0)));
            let token = (door.prepare)(&processes).await;
            let count = Arc::clone(&done);
            let dying = HookedStore::new(Arc::clone(&processes.store) as _, move |_| {
                let lost = || StoreError::Unavailable("the process is dead".into());
                match count.fetch_add(1, Ordering::AcqRel) {
                    now if now < at => HookAction::Pass,
                    now if now == at && is_stored => HookAction::Lost(lost()),
                    _ => HookAction::Fail(lost()),
                }
            });
            (door.act)(runner_over(&processes, Arc::new(dying), &policy(), catalog()), token).await;
            is_whole(&processes, &what).await;
            if done.load(Ordering::Acquire) <= at {
                break;
            }
            at += 1;
            assert!(at < 100, "{what}");
        }
        assert!(at > 1, "{}: it was cut off", door.name);
    }
}

/// The acknowledgement of a write is lost. If it is that of the suspension, the process withdraws it. The notice that
/// the call waits was written.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_withdrawn_does_not_wait_any_more() {
    let mut withdrawn = 0;
    for lost in 0..4 {
        let (processes, updates) = (processes(1), AtomicUsize::new(0));
        let losing = HookedStore::new(Arc::clone(&processes.store) as _, move |method| {
            if method == "update" && updates.fetch_add(1, Ordering::AcqRel) == lost {
                return HookAction::Lost(StoreError::Unavailable("the answer is lost".into()));
            }
            HookAction::Pass
        });
        let ended = runner_over(&processes, Arc::new(losing), &policy(), catalog()).run(ada()).exec(call()).await;
        assert!(!ended.executed(), "{lost}: {}", ended.to_model());
        is_whole(&processes, "withdrawn").await;
        if kinds(&processes).await == ["call.waiting", "call.decided abandoned"] {
            assert_eq!(ended.outcome(), Outcome::Cancelled);
            withdrawn += 1;
        } else {
            assert_eq!((ended.outcome(), kinds(&processes).await.len()), (Outcome::ApprovalRequired, 1), "{lost}");
        }
    }
    assert_eq!(withdrawn, 1);
}
