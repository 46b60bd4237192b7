//! Tests the end of a workflow without a server: completed, failed, cancelled and retried. No question stays open, and
//! a decision without effect is recorded.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test says what it expects")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use restate_sdk::errors::TerminalError;
use tool_runtime::agent::{StepFuture, WaitingCall};
use tool_runtime::call::Decider;
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::MemoryStore;
use tool_runtime::testing::{ScriptedModel, ScriptedTurn};
use tool_runtime::{ToolCatalog, ToolPolicy};

use crate::engine::Arrived;
use crate::entry::terminal;
use crate::promises::tests::{Server, brings, delete, late, refused, server};
use crate::promises::{Brought, Delivered, Promises, promise, without_effect};

use super::*;

/// The event that ends the first wait of the workflow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// Both calls get their decisions, one after the other.
    Completed,
    /// The first call gets its decision, and the next step fails with a terminal error.
    Failed,
    /// The first call gets its decision, and the next step fails with a retryable error.
    Retried,
    /// The workflow is cancelled while it waits.
    Cancelled,
}

/// A workflow in this process, with promises but without a journal.
struct Local {
    agent: Agent,
    runner: ToolRunner,
    end: End,
    server: Server,
    /// The questions of the first wait.
    asked: Mutex<Vec<Question>>,
    waits: AtomicUsize,
}

impl Local {
    /// Creates a workflow whose model calls a tool twice in one turn. Both calls wait for a person.
    fn new(end: End) -> (Self, MemoryStore) {
        Self::with_rules(end, "")
    }

    fn with_rules(end: End, rules: &str) -> (Self, MemoryStore) {
        let store = MemoryStore::new();
        let catalog = ToolCatalog::builder().tool::<delete>().build().expect("a catalog");
        let policy = "allowed_tools = ['notes__delete']\nrequire_approval_for_tools = ['notes__delete']";
        let policy = ToolPolicy::from_toml(&format!("{policy}\n{rules}")).expect("a policy");
        let runner = ToolRunner::builder(catalog, policy);
        let runner = runner.store(store.clone()).approvals(true).build().expect("a runner");
        let turn = ScriptedTurn::call("c1", "notes__delete", r#"{"note":7}"#);
        let mut turns = vec![turn.and_call("c2", "notes__delete", r#"{"note":8}"#)];
        if end == End::Completed {
            turns.push(ScriptedTurn::text("Done."));
        }
        let agent = Agent::new(ScriptedModel::new(turns));
        let (asked, waits) = (Mutex::default(), AtomicUsize::new(0));
        (Self { agent, runner, end, server: server(&[]), asked, waits }, store)
    }

    async fn ends(&self) -> Result<Finished, HandlerError> {
        let run = self.runner.run(RunOptions::new().run_id("order-1").principal("ada"));
        proceed(self, self.agent.converse(run), Input::from("Delete 7 and 8.")).await
    }

    fn asked(&self) -> [Question; 2] {
        self.asked.lock().unwrap().clone().try_into().expect("two calls")
    }

    /// Whether a promise is resolved.
    async fn is_closed(&self, question: &Question) -> bool {
        self.server.peek(&promise(question, 0)).await.unwrap().is_some()
    }
}

#[async_trait]
impl Durable for Local {
    type Error = Cut;

    async fn unit(&self, _: &str, work: StepFuture<'_>) -> Result<SavedConversation, Cut> {
        match (self.end, self.waits.load(Ordering::Relaxed)) {
            (End::Failed, 1) => Err(Cut::Ends(terminal(413, "conversation_too_large"))),
            (End::Retried, 1) => Err(Cut::Retried("store_unreachable".into())),
            _ => work.await.map_err(Cut::from),
        }
    }

    async fn restore(&self, saved: SavedConversation) -> Result<Conversation, Cut> {
        let options = RunOptions::new().run_id("order-1").principal("ada");
        Ok(self.agent.restore(&self.runner, options, saved).await.expect("a saved conversation"))
    }
}

impl Workflow for Local {
    async fn wait(&self, calls: &[WaitingCall], brought: &HashMap<Question, u32>) -> Result<Arrived, TerminalError> {
        let wait = self.waits.fetch_add(1, Ordering::Relaxed);
        if let [one, ..] = calls
            && one.required > 1
        {
            // Each approval of a question has its own promise.
            let number = brought.get(&one.question).copied().unwrap_or_default();
            let name = promise(&one.question, number);
            assert!(self.server.peek(&name).await?.is_none(), "{name} has a value");
            let who = ["grace", "grace", "heidi"][wait % 3];
            let decided = || Brought::Decided { decision: ApprovalDecision::Approve, decider: Decider::new(who) };
            self.server.resolve(&name, Delivered::of("inv-1", decided()));
            return Ok(Arrived::brought(Vec::new(), one.question.clone(), number, decided()));
        }
        if wait == 0 {
            *self.asked.lock().unwrap() = calls.iter().map(|call| call.question.clone()).collect();
            if self.end != End::Completed {
                // A decision on the second call is delivered, but the workflow does not process it.
                let open = server(&[&calls[1].question]);
                brings(&open, &self.runner, &calls[1].question, "grace").await.expect("it is brought");
                let name = promise(&calls[1].question, 0);
                self.server.resolve(&name, open.peek(&name).await.unwrap().expect("it is resolved"));
            }
        }
        if self.end == End::Cancelled {
            return Err(TerminalError::new_with_code(409, "cancelled"));
        }
        let decided = Brought::Decided { decision: ApprovalDecision::Approve, decider: Decider::new("heidi") };
        Ok(Arrived::brought(Vec::new(), calls[0].question.clone(), 0, decided))
    }

    async fn close(&self, open: &[(Question, u32)]) -> Result<(), TerminalError> {
        for (question, decision, decider) in without_effect(&self.server, open).await? {
            self.runner.record_late("order-1", &question, &decision, &decider).await.expect("a store");
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_completed_workflow_leaves_no_question_open() {
    let (workflow, store) = Local::new(End::Completed);
    let finished = workflow.ends().await.expect("it ends");
    assert_eq!((finished.code.as_str(), finished.text.as_str()), ("answered", "Done."));
    assert_eq!(workflow.waits.load(Ordering::Relaxed), 2);
    let approved = [("heidi".to_owned(), None), ("heidi".to_owned(), None)];
    assert_eq!(refused(&store).await, approved, "each decision took effect");
}

/// Each call needs two people. The same person counts once, and the workflow waits for the other one.
#[tokio::test]
async fn a_workflow_waits_for_two_people() {
    let (workflow, store) = Local::with_rules(End::Completed, "[approvals]\nrequired = 2");
    let finished = workflow.ends().await.expect("it ends");
    assert_eq!((finished.code.as_str(), finished.text.as_str()), ("answered", "Done."));
    let one = [("grace".to_owned(), None), ("grace".to_owned(), Some("same_decider")), ("heidi".to_owned(), None)];
    assert_eq!(refused(&store).await, [one.clone(), one].concat());
}

#[tokio::test]
async fn a_failed_workflow_records_the_decision_that_it_did_not_use() {
    let (workflow, store) = Local::new(End::Failed);
    let error = format!("{:?}", workflow.ends().await.unwrap_err());
    assert!(error.contains("conversation_too_large"), "{error}");
    let [_, second] = workflow.asked();
    assert!(workflow.is_closed(&second).await);
    assert_eq!(refused(&store).await, [late("grace")]);
}

#[tokio::test]
async fn a_cancelled_workflow_closes_its_questions() {
    let (workflow, store) = Local::new(End::Cancelled);
    let error = format!("{:?}", workflow.ends().await.unwrap_err());
    assert!(error.contains("cancelled"), "{error}");
    let [first, second] = workflow.asked();
    assert!(workflow.is_closed(&first).await && workflow.is_closed(&second).await);
    // The handler of this decision reported success.
    assert_eq!(refused(&store).await, [late("grace")]);
    // A handler that read the open questions before the end reports no success after it.
    let (before, name) = (server(&[&first]), promise(&first, 0));
    before.resolve(&name, workflow.server.peek(&name).await.unwrap().expect("it is closed"));
    let missed = brings(&before, &workflow.runner, &first, "mallory").await.unwrap_err();
    assert!(missed.contains("not_pending"), "{missed}");
    assert_eq!(refused(&store).await, [late("grace"), late("mallory")]);
}

#[tokio::test]
async fn an_attempt_that_is_repeated_keeps_its_questions_open() {
    let (workflow, store) = Local::new(End::Retried);
    let error = format!("{:?}", workflow.ends().await.unwrap_err());
    assert!(error.contains("store_unreachable"), "{error}");
    let [first, _] = workflow.asked();
    assert!(!workflow.is_closed(&first).await);
    assert_eq!(refused(&store).await, [], "the next attempt uses the decision");
}
