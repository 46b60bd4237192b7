//! Decisions on the current question of a call, as by a person to whom the call has just been shown.

#![allow(
    clippy::expect_used,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "a test says what it expects"
)]

use std::future::Future;

use tool_runtime::agent::{Conversation, Input, RunQueue, TurnOutcome};
use tool_runtime::call::{CallId, Decider, Question};
use tool_runtime::runner::{ApprovalDecision, Grant, ResumeError};
use tool_runtime::store::{PendingCall, RecordFilter, Store, StoredGrant};
use tool_runtime::{Run, ToolCatalog, ToolExecResult, ToolPolicy, ToolRunner};

/// A question that no call asks.
///
/// # Panics
/// The id is empty.
pub fn never(id: &str) -> Question {
    format!("{}.{id}", "0".repeat(64)).parse().expect("a question")
}

/// Returns the current question of a conversation's call, or one that no call asks.
pub fn question(conversation: &Conversation, id: impl Into<CallId>) -> Question {
    let id = id.into();
    let mut waiting = conversation.waiting();
    waiting.find(|call| call.id == id).map_or_else(|| never(id.as_str()), |call| call.question.clone())
}

/// Returns the same input, with each decision on the current question of its call.
///
/// # Panics
/// It cannot be written.
pub fn answering(conversation: &Conversation, input: &Input) -> Input {
    let mut input = serde_json::to_value(input).expect("a document");
    for decision in input["decisions"].as_array_mut().into_iter().flatten() {
        let asked: Question = serde_json::from_value(decision[0].take()).expect("a question");
        decision[0] = serde_json::to_value(question(conversation, asked.call_id())).expect("a text");
    }
    serde_json::from_value(input).expect("the same")
}

/// A queue of a process that has the store but no tools.
///
/// # Panics
/// The runner cannot be built.
pub fn queue(store: impl Store + 'static) -> RunQueue {
    let catalog = ToolCatalog::builder().build().expect("a catalog");
    let runner = ToolRunner::builder(catalog, ToolPolicy::deny_all()).store(store).build();
    RunQueue::new(&runner.expect("a runner"))
}

/// Returns suspended calls of a store.
///
/// # Panics
/// The store or a call cannot be read.
pub async fn pending_calls<S: Store + ?Sized>(store: &S, filter: &RecordFilter) -> Vec<PendingCall> {
    let found: Result<_, _> = store.pending_calls(filter).await.expect("a store").into_iter().collect();
    found.expect("calls that can be read")
}

/// Answers the current question of a call.
pub trait Shown {
    /// Returns the current question of a call.
    fn question(&self, id: &str) -> impl Future<Output = Question> + Send;

    /// [`Run::resume`] with that question.
    fn resume_shown(
        &self,
        id: &str,
        decision: ApprovalDecision,
        decider: &Decider,
    ) -> impl Future<Output = Result<ToolExecResult, ResumeError>> + Send;

    /// [`Run::remember`] with that question.
    fn remember_shown(
        &self,
        id: &str,
        remember: Grant,
        decider: &Decider,
    ) -> impl Future<Output = Result<StoredGrant, ResumeError>> + Send;

    /// [`Run::expire`] with that question.
    fn expire_shown(&self, id: &str) -> impl Future<Output = Result<ToolExecResult, ResumeError>> + Send;
}

impl Shown for Run {
    async fn question(&self, id: &str) -> Question {
        match self.pending(&CallId::new(id)).await {
            Ok(Some(call)) => call.question(),
            _ => never(id),
        }
    }

    async fn resume_shown(
        &self,
        id: &str,
        decision: ApprovalDecision,
        decider: &Decider,
    ) -> Result<ToolExecResult, ResumeError> {
        self.resume(&Shown::question(self, id).await, decision, decider).await
    }

    async fn remember_shown(&self, id: &str, remember: Grant, decider: &Decider) -> Result<StoredGrant, ResumeError> {
        self.remember(&Shown::question(self, id).await, remember, decider).await
    }

    async fn expire_shown(&self, id: &str) -> Result<ToolExecResult, ResumeError> {
        self.expire(&Shown::question(self, id).await).await
    }
}

/// Answers the current question of a call of a conversation.
pub trait DecideShown {
    /// [`Conversation::decide`] with that question.
    fn decide_shown(
        &mut self,
        id: &CallId,
        decision: ApprovalDecision,
        decider: &Decider,
    ) -> impl Future<Output = Result<TurnOutcome, ResumeError>> + Send;
}

impl DecideShown for Conversation {
    async fn decide_shown(
        &mut self,
        id: &CallId,
        decision: ApprovalDecision,
        decider: &Decider,
    ) -> Result<TurnOutcome, ResumeError> {
        let question = question(self, id);
        self.decide(&question, decision, decider).await
    }
}
