#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test says what it expects")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tool_runtime::agent::{Agent, Conversation, TurnOutcome};
use tool_runtime::call::DecisionError;
use tool_runtime::store::{Chain, MemoryStore, RecordFilter, Store};
use tool_runtime::testing::{ManualClock, ScriptedModel, ScriptedTurn};
use tool_runtime::{RunOptions, ToolCall, ToolCatalog, ToolError, ToolPolicy, tool};

use crate::engine::too_late;

use super::*;

/// Deletes a note.
#[tool(name = "notes__delete", effect = state_change, redact = ["$"])]
pub(crate) fn delete(
    /// The number of the note.
    note: u32,
) -> Result<u32, ToolError> {
    Ok(note)
}

/// Prints a note on the client.
#[tool(name = "notes__print", effect = state_change, execution = client, client_result = u32, prepare = ["$"], redact = ["$"])]
pub(crate) fn print(
    /// The number of the note.
    note: u32,
) -> Result<u32, ToolError> {
    Ok(note)
}

/// The state and the promises of a workflow, as the server keeps them, and one handler's view of them.
#[derive(Default)]
pub(crate) struct Server {
    run_id: Option<String>,
    waiting: Waiting,
    promises: Mutex<HashMap<String, String>>,
    /// The answer of another invocation, which resolves the promise just before this one does.
    rival: Option<Brought>,
    invocation: String,
}

impl Server {
    fn keep(&self, promise: &str, delivered: &Delivered) {
        let text = serde_json::to_string(delivered).expect("JSON");
        // The first value is kept. The second call gets no error.
        let mut promises = self.promises.lock().unwrap_or_else(PoisonError::into_inner);
        promises.entry(promise.to_owned()).or_insert(text);
    }
}

impl Promises for Server {
    fn invocation(&self) -> &str {
        &self.invocation
    }

    async fn peek(&self, promise: &str) -> Result<Option<Delivered>, TerminalError> {
        let promises = self.promises.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(promises.get(promise).map(|text| serde_json::from_str(text).expect("JSON")))
    }

    fn resolve(&self, promise: &str, delivered: Delivered) {
        if let Some(rival) = &self.rival {
            let brought = serde_json::from_str(&serde_json::to_string(rival).expect("JSON")).expect("JSON");
            self.keep(promise, &Delivered { invocation: "rival".to_owned(), brought: Some(brought) });
        }
        self.keep(promise, &delivered);
    }
}

impl Shared for Server {
    async fn run_id(&self) -> Result<Option<String>, TerminalError> {
        Ok(self.run_id.clone())
    }

    async fn waiting(&self) -> Result<Waiting, TerminalError> {
        Ok(self.waiting.clone())
    }

    async fn once<T: Send>(
        &self,
        _: &str,
        work: impl Future<Output = HandlerResult<T>> + Send,
    ) -> Result<T, TerminalError> {
        work.await.map_err(|_| TerminalError::new("the work failed"))
    }
}

/// A runner, its store, and a call of the run `order-1` that waits for a person.
async fn waits() -> (ToolRunner, MemoryStore, Question) {
    let store = MemoryStore::new();
    let catalog = ToolCatalog::builder().tool::<delete>().build().expect("a catalog");
    let policy = "allowed_tools = ['notes__delete']\nrequire_approval_for_tools = ['notes__delete']\n\
                  [approvals]\nprincipals = ['grace', 'heidi', 'mallory']";
    let runner = ToolRunner::builder(catalog, ToolPolicy::from_toml(policy).expect("a policy"));
    let runner = runner.store(store.clone()).approvals(true).build().expect("a runner");
    let run = runner.run(RunOptions::new().run_id("order-1").principal("ada"));
    let asked = run.exec(ToolCall::text("c1", "notes__delete", r#"{"note":7}"#)).await;
    (runner, store, asked.question().expect("it waits").clone())
}

pub(crate) fn server(open: &[&Question]) -> Server {
    let waiting = open.iter().map(|question| ((*question).clone(), 0)).collect();
    Server { run_id: Some("order-1".to_owned()), waiting, invocation: "inv-1".to_owned(), ..Server::default() }
}

pub(crate) async fn brings(server: &Server, runner: &ToolRunner, question: &Question, who: &str) -> Result<(), String> {
    let brought = deliver(server, runner, question, ApprovalDecision::Approve, &Decider::new(who)).await;
    // The error is a terminal one, and only its text is public.
    brought.map_err(|error| format!("{error:?}"))
}

/// Returns the deciders whose decisions had no effect, each with the reason.
pub(crate) async fn refused(store: &MemoryStore) -> Vec<(String, Option<&'static str>)> {
    let records = store.records(&RecordFilter::default()).await.expect("records");
    let decisions = records.iter().filter_map(|sealed| sealed.record.as_decision());
    let decisions = decisions.filter_map(|decision| {
        let mismatch = decision.mismatch().map(DecisionError::code);
        Some((decision.decider.as_ref()?.principal().to_owned(), mismatch))
    });
    decisions.collect()
}

pub(crate) fn late(who: &str) -> (String, Option<&'static str>) {
    (who.to_owned(), Some("not_pending"))
}

#[tokio::test]
async fn a_decision_is_brought_once_and_the_second_one_is_recorded() {
    let (runner, store, question) = waits().await;
    let server = server(&[&question]);
    brings(&server, &runner, &question, "grace").await.expect("it is brought");
    assert_eq!(refused(&store).await, []);
    let twice = brings(&server, &runner, &question, "heidi").await.unwrap_err();
    assert!(twice.contains("already_decided"), "{twice}");
    assert_eq!(refused(&store).await, [late("heidi")]);
    let kept = server.peek(&promise(&question, 0)).await.unwrap().expect("it is resolved");
    assert!(matches!(kept.brought, Some(Brought::Decided { decider, .. }) if decider.principal() == "grace"));
}

/// The decision of a person without the right does not resolve the promise, so others can still decide.
#[tokio::test]
async fn a_decision_without_the_right_resolves_no_promise() {
    let (runner, store, question) = waits().await;
    let server = server(&[&question]);
    let other = Decider::new("grace").tenant("globex");
    for _ in 0..3 {
        let barred = brings(&server, &runner, &question, "ida").await.unwrap_err();
        assert!(barred.contains("not_allowed"), "{barred}");
        let stranger = deliver(&server, &runner, &question, ApprovalDecision::Approve, &other).await.unwrap_err();
        assert!(format!("{stranger:?}").contains("not_pending"), "{stranger:?}");
        let edit = ApprovalDecision::ApproveEdited(r#"{"note":"seven"}"#.to_owned());
        let edited = deliver(&server, &runner, &question, edit, &Decider::new("grace")).await.unwrap_err();
        assert!(format!("{edited:?}").contains("/note: type"), "{edited:?}");
    }
    assert!(server.promises.lock().unwrap().is_empty());
    let ida = refused(&store).await.into_iter().find(|(who, _)| who == "ida");
    assert_eq!(ida, Some(("ida".to_owned(), Some("decider_principal"))));
    brings(&server, &runner, &question, "grace").await.expect("it is brought");
}

/// Both looked before either decided.
#[tokio::test]
async fn of_two_decisions_at_once_the_one_without_effect_is_told_and_recorded() {
    let (runner, store, question) = waits().await;
    let rival = Brought::Decided { decision: ApprovalDecision::Deny(None), decider: Decider::new("mallory") };
    let server = Server { rival: Some(rival), ..server(&[&question]) };
    let lost = brings(&server, &runner, &question, "grace").await.unwrap_err();
    assert!(lost.contains("already_decided"), "{lost}");
    assert_eq!(refused(&store).await, [late("grace")]);
}

#[tokio::test]
async fn a_decision_that_comes_too_late_is_recorded() {
    let (runner, store, question) = waits().await;
    // The workflow looks at another decision, has expired the call, or has ended.
    let closed = server(&[]);
    let missed = brings(&closed, &runner, &question, "grace").await.unwrap_err();
    assert!(missed.contains("not_pending"), "{missed}");
    assert_eq!(refused(&store).await, [late("grace")]);
    // Unknown ids, and a workflow that has not begun, leave no record.
    let other: Question = serde_json::from_str(&serde_json::to_string(&question).unwrap().replace("c1", "c2")).unwrap();
    brings(&closed, &runner, &other, "grace").await.unwrap_err();
    brings(&Server::default(), &runner, &question, "grace").await.unwrap_err();
    assert_eq!(refused(&store).await.len(), 1);
    // A sender that repeats it without end does not fill the store.
    for _ in 0..40 {
        brings(&closed, &runner, &question, "mallory").await.unwrap_err();
    }
    assert_eq!(refused(&store).await.len(), 1 + 16);
}

#[tokio::test]
async fn a_client_that_answers_a_decided_question_is_refused() {
    let (runner, _, question) = waits().await;
    let server = server(&[&question]);
    brings(&server, &runner, &question, "grace").await.expect("it is brought");
    let twice = bring(&server, &question, Brought::Client(ClientAnswer::failed("c1"))).await.ok().unwrap();
    assert_eq!(twice, Err(Refused::Decided));
}

/// A conversation whose call waits until its time is over, its clock and its store.
struct Timed {
    conversation: Conversation,
    runner: ToolRunner,
    store: MemoryStore,
    question: Question,
}

/// Returns a conversation whose call has just expired.
async fn expired() -> Timed {
    expired_call("notes__delete").await
}

/// The same, with a call of this tool.
async fn expired_call(tool: &str) -> Timed {
    let clock = Arc::new(ManualClock::at("2030-01-01T00:00:00Z".parse().expect("a time")));
    let store = MemoryStore::with_clock(Arc::clone(&clock));
    let catalog = ToolCatalog::builder().tool::<delete>().tool::<print>().build().expect("a catalog");
    let policy = "allowed_tools = ['notes__delete', 'notes__print']\nrequire_approval_for_tools = ['notes__delete']";
    let runner = ToolRunner::builder(catalog, ToolPolicy::from_toml(policy).expect("a policy"))
        .approval_ttl(Duration::from_secs(60))
        .clock(Arc::clone(&clock))
        .store(store.clone())
        .approvals(true)
        .build()
        .expect("a runner");
    let turns = [ScriptedTurn::call("c1", tool, r#"{"note":7}"#), ScriptedTurn::text("Done.")];
    let run = runner.run(RunOptions::new().run_id("order-1").principal("ada"));
    let mut conversation = Agent::new(ScriptedModel::new(turns)).converse(run);
    let TurnOutcome::Waiting { mut calls } = conversation.send("Delete 7.").await else { panic!("it waits") };
    let question = calls.remove(0).question;
    clock.advance(Duration::from_secs(60));
    Timed { conversation, runner, store, question }
}

impl Timed {
    /// Ends the wait as the workflow does when its timer fires. Returns the outcomes of calls and the decisions, each
    /// with whether it was refused.
    async fn timer_fires(mut self, server: &Server) -> (Vec<String>, Vec<(String, bool)>) {
        let arrived = too_late(server, vec![(self.question.clone(), 0)]).await.unwrap();
        assert_eq!(arrived.resolved, [self.question.clone()]);
        let ended = self.conversation.receive(arrived.input).await.expect("it waits");
        assert!(matches!(&ended, TurnOutcome::Answered { text } if text == "Done."), "{ended:?}");
        // Nothing is left to decide, and the promise keeps its value.
        let again = brings(server, &self.runner, &self.question, "mallory").await.unwrap_err();
        assert!(again.contains("already_decided") || again.contains("not_pending"), "{again}");
        let records = self.store.records(&RecordFilter::default()).await.expect("records");
        Chain::verify(&records).expect("a chain");
        let calls = records.iter().filter_map(|sealed| sealed.record.as_call());
        let decisions = records.iter().filter_map(|sealed| sealed.record.as_decision());
        let decisions = decisions.map(|decision| {
            let who = decision.decider.as_ref().map_or("", Decider::principal);
            (format!("{} {who}", decision.decision.code()), decision.refused().is_some())
        });
        (calls.map(|record| record.outcome.code().to_owned()).collect(), decisions.collect())
    }
}

fn decision(text: &str, is_refused: bool) -> (String, bool) {
    (text.to_owned(), is_refused)
}

/// The timer fires after the decision was brought, and before the workflow has seen it.
#[tokio::test]
async fn a_decision_that_was_brought_before_the_timer_reaches_the_gate() {
    let timed = expired().await;
    let server = server(&[&timed.question]);
    brings(&server, &timed.runner, &timed.question, "grace").await.expect("it is brought");
    let (calls, decisions) = timed.timer_fires(&server).await;
    assert_eq!(calls, ["approval_expired"]);
    assert_eq!(decisions, [decision("too_late grace", false), decision("approved mallory", true)]);
}

/// The client may have executed a call without an answer.
#[tokio::test]
async fn a_clients_call_with_effects_that_expires_is_unknown() {
    let timed = expired_call("notes__print").await;
    let server = server(&[&timed.question]);
    let (calls, decisions) = timed.timer_fires(&server).await;
    assert_eq!(calls, ["outcome_unknown"]);
    assert_eq!(decisions, [decision("abandoned ", false), decision("approved mallory", true)]);
}

/// The handler looked at the open questions before the timer fired, and brings the decision after it.
#[tokio::test]
async fn a_decision_after_the_timer_is_refused_and_recorded() {
    let timed = expired().await;
    let server = server(&[&timed.question]);
    assert!(close(&server, &timed.question, 0).await.unwrap().is_none());
    let late = brings(&server, &timed.runner, &timed.question, "grace").await.unwrap_err();
    assert!(late.contains("not_pending"), "{late}");
    let (calls, decisions) = timed.timer_fires(&server).await;
    assert_eq!(calls, ["approval_expired"]);
    let expected = [decision("approved grace", true), decision("expired ", false), decision("approved mallory", true)];
    assert_eq!(decisions, expected);
}

/// The decision resolves the promise just before the timer does.
#[tokio::test]
async fn of_a_decision_and_the_timer_at_once_the_promise_has_one() {
    let timed = expired().await;
    let rival = Brought::Decided { decision: ApprovalDecision::Deny(None), decider: Decider::new("grace") };
    let server = Server { rival: Some(rival), ..server(&[&timed.question]) };
    let (calls, decisions) = timed.timer_fires(&server).await;
    assert_eq!(calls, ["approval_expired"]);
    assert_eq!(decisions, [decision("too_late grace", false), decision("approved mallory", true)]);
}

/// If several calls expire at once and one of them has a decision, the decision is applied first. Questions that were
/// closed before it get new promises.
#[tokio::test]
async fn an_answer_goes_before_the_calls_that_expire_with_it() {
    let (_, _, first) = waits().await;
    let rename = |id: &str| -> Question {
        serde_json::from_str(&serde_json::to_string(&first).unwrap().replace("c1", id)).unwrap()
    };
    let (second, third) = (rename("c2"), rename("c3"));
    let server = server(&[&first, &second, &third]);
    let decided = Brought::Decided { decision: ApprovalDecision::Approve, decider: Decider::new("grace") };
    assert_eq!(bring(&server, &second, decided).await.ok(), Some(Ok(())));
    let late = [&first, &second, &third].map(|question| (question.clone(), 0));
    let arrived = too_late(&server, late.to_vec()).await.unwrap();
    assert_eq!((arrived.resolved, arrived.name), (vec![first, second.clone()], format!("decision {second}")));
    assert!(server.peek(&promise(&third, 0)).await.unwrap().is_none(), "it can still be decided");
}
