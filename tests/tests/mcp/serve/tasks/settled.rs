//! Calls of clients that end with an unknown outcome, which another process or the client's own user settles.

mod attacked;
mod noticed;
mod strangers;

use std::sync::Arc;

use rmcp::model::InputRequests;
use tests::world::{Bank, BankAnswer, Processes, Statement, World, owned, reconciled};
use tool_runtime::agent::RunQueue;
use tool_runtime::call::CallId;
use tool_runtime::store::{DecisionKind, DecisionRecord};
use tool_runtime::{Capabilities, Reconciled};

use super::*;
use crate::serve::held::{self, NOBODY};
use crate::serve::rig::text;

fn lost<T>() -> Result<T, ToolError> {
    Err(ToolError::unknown(std::io::Error::other("reset")))
}

/// Pays a bill. The bank's answer is lost.
#[tool(name = "bank__pay", effect = external_side_effect, redact = ["$"])]
async fn pay(
    world: &dyn World,
    /// Which.
    bill: String,
) -> Result<String, ToolError> {
    drop(bill);
    world.happen();
    world.door().pass().await;
    lost()
}

/// Closes an account. The bank's answer is lost.
#[tool(name = "bank__close", effect = external_side_effect, redact = ["$"])]
fn close(
    world: &dyn World,
    /// The last bill.
    bill: String,
) -> Result<(), ToolError> {
    drop(bill);
    world.happen();
    lost()
}

/// A transfer that was made.
#[derive(serde::Serialize, schemars::JsonSchema)]
struct Receipt {
    /// Its number.
    number: u32,
    /// On no allowlist.
    inner: String,
}

/// Transfers money. The bank's answer is lost.
#[tool(name = "bank__transfer", effect = external_side_effect, redact = ["number"])]
struct Transfer {
    /// For which bill.
    bill: String,
}

#[tool]
impl Transfer {
    async fn run(self, world: &dyn World, _statement: &dyn Statement) -> Result<Receipt, ToolError> {
        world.happen();
        lost()
    }

    async fn reconcile(self, _world: &dyn World, statement: &dyn Statement) -> Result<Reconciled<Receipt>, ToolError> {
        Ok(reconciled(statement, || Receipt { number: 5, inner: self.bill }).await)
    }
}

const ALLOWED: &str = "allowed_tools = ['bank__pay', 'bank__close', 'bank__transfer']\n";
const ASKS: &str = "require_approval_for_tools = ['bank__pay', 'bank__close', 'bank__transfer']\n";
const OWN: &str = "[approvals]\nown_calls = true\n";
const HELD: &str = "[mcp]\nhold = \"1d\"\n";

/// A client that fills in forms.
const FORMS: Patient = Patient { forms: true, ..OLD };

struct Rig {
    shared: Processes,
    bank: Arc<Bank>,
}

impl Rig {
    fn new() -> Self {
        Self { shared: Processes::at("2030-01-01T00:00:00Z", 9), bank: Arc::default() }
    }

    fn capabilities(&self) -> Capabilities {
        self.shared.capabilities().with(Arc::clone(&self.bank) as Arc<dyn Statement>)
    }

    fn runner(&self, policy: &str) -> ToolRunner {
        let store = Arc::clone(&self.shared.store);
        self.shared.start_with(catalog(), store, &format!("{ALLOWED}{ASKS}{policy}"), self.capabilities())
    }

    fn serve(&self, policy: &str) -> McpServer {
        McpServer::builder(self.runner(policy), admitted).ask_clients(true).build().unwrap()
    }

    /// A call as a task, which a person approved.
    async fn task(&self, client: &Client, tool: &str, bill: &str) -> String {
        let id = task(client, tool, json!({ "bill": bill })).await.task_id;
        decide(&self.shared.store, ApprovalDecision::Approve).await;
        id
    }

    /// Settles a call like a person in another process.
    async fn settle(&self, id: &str, outcome: Reconciled<&str>) -> Result<Outcome, &'static str> {
        let (run, call) = id.rsplit_once('.').unwrap();
        let grace = Decider::new("grace").tenant("acme").because("the bank's page shows it");
        let queue = RunQueue::new(&self.runner(""));
        let settled = queue.settle(run, Some("acme"), Some("ada"), &CallId::new(call), owned(outcome), &grace).await;
        settled.map(|result| result.outcome()).map_err(|error| error.code())
    }

    /// The settlements and the attempts: kind, decider, and whether it was refused.
    async fn settlements(&self) -> Vec<(DecisionKind, String, bool)> {
        self.decisions().await.into_iter().map(|(told, _)| told).collect()
    }

    async fn decisions(&self) -> Vec<((DecisionKind, String, bool), DecisionRecord)> {
        let records = self.shared.store.records(&RecordFilter::default()).await.unwrap();
        let decisions = records.iter().filter_map(|sealed| sealed.record.as_decision());
        let settles = [DecisionKind::Happened, DecisionKind::DidNotHappen, DecisionKind::Reconcile];
        let told = |decision: &DecisionRecord| {
            let by = decision.decider.as_ref().map_or("its tool", |decider| decider.principal());
            ((decision.decision, by.to_owned(), decision.refused().is_some()), decision.clone())
        };
        decisions.filter(|decision| settles.contains(&decision.decision)).map(told).collect()
    }

    async fn unsettled(&self) -> usize {
        let store: &dyn Store = &*self.shared.store;
        store.unsettled_calls(&RecordFilter::default()).await.unwrap().len()
    }
}

fn catalog() -> ToolCatalog {
    ToolCatalog::builder().tool::<pay>().tool::<close>().tool::<Transfer>().build().unwrap()
}

/// The open question about the outcome of a task's call, once there is one.
async fn asked(client: &Client, id: &str) -> (String, Value) {
    let is_asked = |task: &DetailedTask| outcome_question(task).is_some();
    outcome_question(&until(client, id, is_asked).await).unwrap()
}

fn outcome_question(task: &DetailedTask) -> Option<(String, Value)> {
    let TaskPayload::InputRequired { input_requests } = &task.payload else { return None };
    one_about_outcome(input_requests)
}

fn one_about_outcome(requests: &InputRequests) -> Option<(String, Value)> {
    let (key, question) = requests.first_key_value().filter(|(key, _)| key.starts_with("outcome-"))?;
    Some((key.clone(), serde_json::to_value(question).unwrap()))
}

async fn answer(client: &Client, id: &str, key: &str, answer: Value) {
    client.update_task(UpdateTaskParams::new(id, [(key.to_owned(), answer)].into())).await.unwrap();
}

#[expect(clippy::needless_pass_by_value, reason = "tests write the content in place")]
fn fill(content: Value) -> Value {
    json!({"action": "accept", "content": content})
}

fn said(task: &DetailedTask) -> (bool, String) {
    let result = result(task);
    (result["isError"] == true, result["content"][0]["text"].as_str().unwrap().to_owned())
}

fn is_unknown((is_error, text): &(bool, String)) -> bool {
    *is_error && text.contains("outcome_unknown")
}

/// Without the right to decide, a task ends with the unknown outcome. A person settles it in another process.
#[tokio::test(flavor = "multi_thread")]
async fn a_settlement_by_another_process_is_the_result() {
    for (outcome, expected) in [
        (Reconciled::TookEffect("\"paid in person\""), (false, "paid in person")),
        (Reconciled::Prevented, (true, "This call had no effect. It may be made again")),
    ] {
        let rig = Rig::new();
        let served = rig.serve("");
        let client = piped(&served, FORMS).await;
        let id = rig.task(&client, "bank__pay", "b-1").await;
        let unknown = ended(&client, &id).await;
        assert!(is_unknown(&said(&unknown)), "{unknown:?}");
        assert_eq!(get(&client, &id).await.unwrap(), unknown);
        rig.settle(&id, outcome).await.unwrap();
        // The same server, another session, and a server that starts again.
        let again = rig.serve("");
        for client in [client, over_http(&served, "ada").await, piped(&again, OLD).await] {
            let settled = get(&client, &id).await.unwrap();
            let (is_error, text) = said(&settled);
            assert!(is_error == expected.0 && text.contains(expected.1), "{settled:?}");
            assert_eq!(settled.status(), TaskStatus::Completed);
        }
    }
}

/// The client of a held request is gone when its call ends. The outcome is settled before it makes the call again.
#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_request_gets_the_settled_result() {
    let rig = Rig { shared: Processes::at("2030-01-01T00:00:00Z", 0), bank: Arc::default() };
    let served = rig.serve(HELD);
    let bill = || request("bank__pay", json!({"bill": "b-1"}));
    let first = held::piped(&served, NOBODY).await;
    let params = rmcp::model::ClientRequest::CallToolRequest(rmcp::model::CallToolRequest::new(bill()));
    let options = rmcp::service::PeerRequestOptions::no_options();
    let sent = first.send_cancellable_request(params, options).await.unwrap();
    let call = held::one_waiting(&*rig.shared.store).await;
    held::post(&rig.shared.store, &call, ApprovalDecision::Approve).await;
    while rig.shared.effects() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    sent.cancel(None).await.unwrap();
    first.cancel().await.unwrap();
    rig.shared.open(1);
    while rig.unsettled().await == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let id = format!("{}.{}", call.run_id, call.call_id);
    rig.settle(&id, Reconciled::TookEffect("\"paid in person\"")).await.unwrap();
    let back = held::posting(&rig.serve(HELD), "ada", NOBODY).await;
    let repeated = back.call_tool(bill()).await.unwrap();
    assert_eq!((repeated.is_error, text(&repeated)), (Some(false), "paid in person"));
    assert_eq!(rig.shared.effects(), 1);
}

/// The user of a client settles the outcome of their own call, by each answer.
#[tokio::test(flavor = "multi_thread")]
async fn the_client_of_a_task_settles_its_outcome() {
    let cases = [
        ("bank__pay", json!({"outcome": "happened", "result": "paid"}), (false, "paid"), DecisionKind::Happened),
        ("bank__pay", json!({"outcome": "did_not_happen"}), (true, "had no effect"), DecisionKind::DidNotHappen),
        ("bank__close", json!({"outcome": "happened"}), (false, "null"), DecisionKind::Happened),
        (
            "bank__transfer",
            json!({"outcome": "happened", "result": r#"{"number": 7, "inner": "CANARY"}"#}),
            (false, r#"{"number":7}"#),
            DecisionKind::Happened,
        ),
        // A person need not know the result of a tool that returns an object.
        ("bank__transfer", json!({"outcome": "happened"}), (true, "The call took effect"), DecisionKind::Happened),
    ];
    for (tool, filled, expected, kind) in cases {
        let rig = Rig::new();
        let client = piped(&rig.serve(OWN), FORMS).await;
        let id = rig.task(&client, tool, "b-1").await;
        let (key, question) = asked(&client, &id).await;
        let message = question["params"]["message"].as_str().unwrap();
        assert!(message.contains("b-1") && message.contains("2030-01-01T00:00:00Z"), "{message}");
        let form = &question["params"]["requestedSchema"]["properties"];
        let reconciles = form["outcome"]["enum"].as_array().unwrap().contains(&json!("reconcile"));
        assert_eq!(reconciles, tool == "bank__transfer", "{form}");
        assert_eq!(form.get("result").is_none(), tool == "bank__close", "{form}");
        let mut filled = filled;
        filled["reason"] = json!("seen on the page");
        answer(&client, &id, &key, fill(filled)).await;
        let settled = get(&client, &id).await.unwrap();
        let (is_error, text) = said(&settled);
        assert!(is_error == expected.0 && text.contains(expected.1), "{settled:?}");
        let decisions = rig.decisions().await;
        let [(told, record)] = &decisions[..] else { panic!("{decisions:?}") };
        assert_eq!(*told, (kind, "ada".to_owned(), false));
        assert_eq!(record.decider.as_ref().and_then(Decider::reason), Some("seen on the page"));
        assert!(record.interruption().is_some());
        assert_eq!((rig.unsettled().await, rig.shared.effects()), (0, 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_client_of_a_task_lets_the_tool_look() {
    let rig = Rig::new();
    let client = piped(&rig.serve(OWN), FORMS).await;
    let id = rig.task(&client, "bank__transfer", "b-1").await;
    let (first, _) = asked(&client, &id).await;
    let reconcile = || fill(json!({"outcome": "reconcile"}));
    // The bank's page cannot be read, so the outcome stays unknown. The client is asked again, under another key.
    answer(&client, &id, &first, reconcile()).await;
    let (second, _) = asked(&client, &id).await;
    assert_ne!(first, second);
    rig.bank.set(BankAnswer::Paid);
    // The answer to the earlier question does not count.
    answer(&client, &id, &first, reconcile()).await;
    assert_eq!(asked(&client, &id).await.0, second);
    answer(&client, &id, &second, reconcile()).await;
    assert_eq!(said(&get(&client, &id).await.unwrap()), (false, r#"{"number":5}"#.to_owned()));
    let ada = |kind| (kind, "ada".to_owned(), false);
    let found = (DecisionKind::Happened, "its tool".to_owned(), false);
    let expected = [ada(DecisionKind::Reconcile), ada(DecisionKind::Reconcile), found];
    assert_eq!(rig.settlements().await, expected);
    assert_eq!(rig.shared.effects(), 1);
}

/// A result that does not fit is refused and recorded. After some of them the client is not asked again.
#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_does_not_fit_settles_nothing() {
    let rig = Rig::new();
    let client = piped(&rig.serve(OWN), FORMS).await;
    let id = rig.task(&client, "bank__transfer", "b-1").await;
    let wrong = [json!("no JSON"), json!("{}"), json!(r#"{"number":"x","inner":""}"#), json!("7")];
    for result in wrong {
        let (key, _) = asked(&client, &id).await;
        answer(&client, &id, &key, fill(json!({"outcome": "happened", "result": result}))).await;
    }
    let unknown = said(&ended(&client, &id).await);
    assert!(is_unknown(&unknown), "{unknown:?}: {:?}", rig.settlements().await);
    let refused = vec![(DecisionKind::Happened, "ada".to_owned(), true); 4];
    assert_eq!((rig.settlements().await, rig.unsettled().await), (refused, 1));
    // Another person knows more.
    rig.settle(&id, Reconciled::TookEffect(r#"{"number":7,"inner":""}"#)).await.unwrap();
    assert_eq!(said(&get(&client, &id).await.unwrap()), (false, r#"{"number":7}"#.to_owned()));
}

/// The same three conditions as for the question whether a call may run.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_may_not_decide_is_not_asked_about_the_outcome() {
    for (policy, asks, patient) in [("", true, FORMS), (OWN, false, FORMS), (OWN, true, OLD)] {
        let rig = Rig::new();
        let served = McpServer::builder(rig.runner(policy), admitted).ask_clients(asks).build().unwrap();
        let client = piped(&served, patient).await;
        let id = rig.task(&client, "bank__pay", "b-1").await;
        let done = ended(&client, &id).await;
        assert!(is_unknown(&said(&done)), "{done:?}");
        // An answer that was not asked for settles nothing. That of a principal who may not decide is recorded.
        answer(&client, &id, "outcome-1", fill(json!({"outcome": "did_not_happen"}))).await;
        assert_eq!(get(&client, &id).await.unwrap(), done);
        let refused = (DecisionKind::DidNotHappen, "ada".to_owned(), true);
        let expected = if policy.is_empty() { vec![refused] } else { Vec::new() };
        assert_eq!((rig.settlements().await, rig.unsettled().await), (expected, 1));
    }
}

/// A client that does not answer, or whose user declines, gets the unknown outcome as the result.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_about_an_outcome_ends() {
    // Its time is over, also for a server that starts later.
    let rig = Rig::new();
    let served = rig.serve(OWN);
    let client = piped(&served, FORMS).await;
    let id = rig.task(&client, "bank__pay", "b-1").await;
    let (key, _) = asked(&client, &id).await;
    answer(&client, &id, &key, json!({"action": "cancel"})).await;
    answer(&client, &id, &key, json!("nonsense")).await;
    answer(&client, &id, &key, fill(json!({"outcome": "perhaps"}))).await;
    assert_eq!(asked(&client, &id).await.0, key, "it is still open");
    rig.shared.clock.advance(Duration::from_mins(10));
    for client in [&client, &piped(&rig.serve(OWN), FORMS).await] {
        assert!(is_unknown(&said(&get(client, &id).await.unwrap())));
        answer(client, &id, &key, fill(json!({"outcome": "did_not_happen"}))).await;
        assert!(is_unknown(&said(&get(client, &id).await.unwrap())), "the question is closed");
    }
    // Its client declines, or cancels the task.
    for cancels in [false, true] {
        let rig = Rig::new();
        let served = rig.serve(OWN);
        let client = piped(&served, FORMS).await;
        let id = rig.task(&client, "bank__pay", "b-1").await;
        let (key, _) = asked(&client, &id).await;
        let other = piped(&rig.serve(OWN), FORMS).await;
        assert_eq!(asked(&other, &id).await.0, key);
        if cancels {
            client.cancel_task(CancelTaskParams::new(&id)).await.unwrap();
        } else {
            answer(&client, &id, &key, json!({"action": "decline"})).await;
        }
        for client in [&client, &other, &piped(&rig.serve(OWN), FORMS).await] {
            assert!(is_unknown(&said(&get(client, &id).await.unwrap())));
        }
        assert!(rig.settlements().await.is_empty());
        assert_eq!(rig.unsettled().await, 1);
    }
}

/// A call that its client cancelled while it ran ends as before, without a question.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_has_no_question() {
    let rig = Rig { shared: Processes::at("2030-01-01T00:00:00Z", 0), bank: Arc::default() };
    let client = piped(&rig.serve(OWN), FORMS).await;
    let id = rig.task(&client, "bank__pay", "b-1").await;
    while rig.shared.effects() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    client.cancel_task(CancelTaskParams::new(&id)).await.unwrap();
    assert!(is_unknown(&said(&ended(&client, &id).await)));
}

/// Answers that come twice, late, from others, and at another server.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_settles_once() {
    // The answer of another principal, and of another tenant: to them, the task does not exist.
    let rig = Rig::new();
    let party = |peer: &Peer<'_>| {
        let who = peer.header("x-user")?;
        Some(RunOptions::new().principal(who).tenant(if who == "eve" { "other" } else { "acme" }))
    };
    let serve = || McpServer::builder(rig.runner(OWN), party).ask_clients(true).build().unwrap();
    let (here, there) = (serve(), serve());
    let forms = Patient { forms: true, ..NEW };
    let ada = over_http_as(&here, "ada", forms).await;
    let id = rig.task(&ada, "bank__pay", "b-1").await;
    let (key, _) = asked(&ada, &id).await;
    let no = || fill(json!({"outcome": "did_not_happen"}));
    for who in ["bob", "eve"] {
        for server in [&here, &there] {
            let stranger = over_http_as(server, who, forms).await;
            let update = UpdateTaskParams::new(&id, [(key.clone(), no())].into());
            assert_eq!(code(stranger.update_task(update).await.unwrap_err()).0, -32602);
        }
    }
    // The run records the answers of the other tenant, which are reported to operators.
    let refused = (DecisionKind::DidNotHappen, "eve".to_owned(), true);
    assert_eq!((rig.settlements().await, rig.unsettled().await), (vec![refused.clone(), refused], 1));
    // The question is found and answered at another server, as after a restart. The first server learns it.
    let elsewhere = over_http_as(&there, "ada", forms).await;
    assert_eq!(asked(&elsewhere, &id).await.0, key);
    answer(&elsewhere, &id, &key, fill(json!({"outcome": "happened", "result": "paid"}))).await;
    for client in [&ada, &elsewhere] {
        assert_eq!(said(&get(client, &id).await.unwrap()), (false, "paid".to_owned()));
    }
    // Twice, and at the server whose question was settled meanwhile.
    for client in [&ada, &elsewhere] {
        answer(client, &id, &key, no()).await;
        assert_eq!(said(&get(client, &id).await.unwrap()), (false, "paid".to_owned()));
    }
    let ada = |kind, refused| (kind, "ada".to_owned(), refused);
    let late = ada(DecisionKind::DidNotHappen, true);
    assert_eq!(rig.settlements().await[2..], [ada(DecisionKind::Happened, false), late.clone(), late]);
}

/// A person in another process settles it while the question is open.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_another_process_settled_is_closed() {
    let rig = Rig::new();
    let client = piped(&rig.serve(OWN), FORMS).await;
    let id = rig.task(&client, "bank__pay", "b-1").await;
    let (key, _) = asked(&client, &id).await;
    rig.settle(&id, Reconciled::TookEffect("\"paid in person\"")).await.unwrap();
    // The answer comes before the client looks again.
    answer(&client, &id, &key, fill(json!({"outcome": "did_not_happen"}))).await;
    assert_eq!(said(&get(&client, &id).await.unwrap()), (false, "paid in person".to_owned()));
    let happened = (DecisionKind::Happened, "grace".to_owned(), false);
    assert_eq!(rig.settlements().await, [happened, (DecisionKind::DidNotHappen, "ada".to_owned(), true)]);
    // The other way round, the person is too late.
    let id = rig.task(&client, "bank__pay", "b-2").await;
    let (key, _) = asked(&client, &id).await;
    answer(&client, &id, &key, fill(json!({"outcome": "did_not_happen"}))).await;
    assert_eq!(rig.settle(&id, Reconciled::TookEffect("\"paid\"")).await, Err("not_pending"));
    assert!(said(&get(&client, &id).await.unwrap()).1.contains("had no effect"));
}

/// Two people of the principal, and another process, settle at the same time.
#[tokio::test(flavor = "multi_thread")]
async fn of_answers_at_the_same_time_one_settles() {
    let rig = Rig::new();
    let (here, there) = (piped(&rig.serve(OWN), FORMS).await, piped(&rig.serve(OWN), FORMS).await);
    let id = rig.task(&here, "bank__pay", "b-1").await;
    let (key, _) = asked(&here, &id).await;
    assert_eq!(asked(&there, &id).await.0, key);
    let yes = || fill(json!({"outcome": "happened", "result": "paid"}));
    let no = || fill(json!({"outcome": "did_not_happen"}));
    let ((), (), _) = tokio::join!(
        answer(&here, &id, &key, yes()),
        answer(&there, &id, &key, no()),
        rig.settle(&id, Reconciled::TookEffect("\"paid in person\""))
    );
    let settlements = rig.settlements().await;
    let settled: Vec<_> = settlements.iter().filter(|(.., refused)| !refused).collect();
    assert_eq!((settlements.len(), settled.len()), (3, 1), "{settlements:?}");
    assert_eq!(said(&get(&here, &id).await.unwrap()), said(&get(&there, &id).await.unwrap()));
}

/// The users of clients that do not support tasks are asked during the request, or in answer to it.
#[tokio::test(flavor = "multi_thread")]
async fn the_client_of_a_held_request_settles_its_outcome() {
    let happened = json!({"approve": true, "outcome": "happened", "result": "paid"});
    let prevented = json!({"approve": true, "outcome": "did_not_happen"});
    for modern in [false, true] {
        for (answers, expected) in [(&happened, (false, "paid")), (&prevented, (true, "had no effect"))] {
            let rig = Rig::new();
            let served = rig.serve(&format!("{OWN}{HELD}"));
            let client = if modern {
                held::posting(&served, "ada", Some(answers.clone())).await
            } else {
                held::piped(&served, Some(answers.clone())).await
            };
            let done = client.call_tool(request("bank__pay", json!({"bill": "b-1"}))).await.unwrap();
            assert!(done.is_error == Some(expected.0) && text(&done).contains(expected.1), "{modern}: {done:?}");
            let kind = if expected.0 { DecisionKind::DidNotHappen } else { DecisionKind::Happened };
            assert_eq!(rig.settlements().await, [(kind, "ada".to_owned(), false)]);
            assert_eq!(rig.shared.effects(), 1);
        }
        // An answer without the outcome settles nothing, and the result is the unknown outcome.
        let rig = Rig::new();
        let served = rig.serve(&format!("{OWN}{HELD}"));
        let answers = Some(json!({"approve": true}));
        let client =
            if modern { held::posting(&served, "ada", answers).await } else { held::piped(&served, answers).await };
        let done = client.call_tool(request("bank__pay", json!({"bill": "b-1"}))).await.unwrap();
        assert!(text(&done).contains("outcome_unknown"), "{modern}: {done:?}");
        assert_eq!((rig.settlements().await, rig.unsettled().await), (vec![], 1));
    }
}

/// A call that needs no approval ends with an unknown outcome. With the question it becomes a task, or its request is
/// held.
#[tokio::test(flavor = "multi_thread")]
async fn the_client_of_a_call_that_never_waited_settles_its_outcome() {
    let serve = |rig: &Rig, policy: &str| {
        let runner = rig.shared.start_with(
            catalog(),
            Arc::clone(&rig.shared.store) as _,
            &format!("{ALLOWED}{policy}"),
            rig.capabilities(),
        );
        McpServer::builder(runner, admitted).ask_clients(true).build().unwrap()
    };
    let bill = || request("bank__pay", json!({"bill": "b-1"}));
    let rig = Rig::new();
    let client = piped(&serve(&rig, OWN), FORMS).await;
    let id = task(&client, "bank__pay", json!({"bill": "b-1"})).await.task_id;
    // After a restart, too.
    let client = piped(&serve(&rig, OWN), FORMS).await;
    let (key, _) = asked(&client, &id).await;
    answer(&client, &id, &key, fill(json!({"outcome": "happened", "result": "paid"}))).await;
    assert_eq!(said(&get(&client, &id).await.unwrap()), (false, "paid".to_owned()));
    assert_eq!((rig.settlements().await.len(), rig.shared.effects()), (1, 1));
    for modern in [false, true] {
        let rig = Rig::new();
        let served = serve(&rig, OWN);
        let answers = Some(json!({"outcome": "happened", "result": "paid"}));
        let client =
            if modern { held::posting(&served, "ada", answers).await } else { held::piped(&served, answers).await };
        let done = client.call_tool(bill()).await.unwrap();
        assert_eq!((done.is_error, text(&done)), (Some(false), "paid"), "{modern}");
        assert_eq!((rig.settlements().await.len(), rig.unsettled().await, rig.shared.effects()), (1, 0, 1));
    }
    // A client that may not be asked gets the unknown outcome at once.
    for (policy, patient) in [("", FORMS), (OWN, OLD)] {
        let rig = Rig::new();
        let client = piped(&serve(&rig, policy), patient).await;
        let CallToolResponse::Complete(done) = client.call_tool_once(bill()).await.unwrap() else { panic!("a task") };
        assert!(text(&done).contains("outcome_unknown"), "{done:?}");
    }
}

/// A call that would wait because of an earlier unknown outcome is refused if no person can decide on it.
#[tokio::test(flavor = "multi_thread")]
async fn a_twin_without_a_decider_is_refused() {
    let world = Processes::at("2030-01-01T00:00:00Z", 9);
    let own = |store: bool, more: &str| {
        let policy =
            ToolPolicy::from_toml(&format!("{ALLOWED}{more}[loop_guard]\nwarn_at = 0\nstop_at = 0\n")).unwrap();
        let capabilities = world.capabilities().with(Arc::<Bank>::default() as Arc<dyn Statement>);
        let runner = ToolRunner::builder(catalog(), policy).approvals(true).capabilities(capabilities);
        let runner = if store { runner.store(MemoryStore::new()) } else { runner };
        runner.build().unwrap()
    };
    let bill = || request("bank__pay", json!({"bill": "b-1"}));
    // A store that was set counts as shared. A server without one is not built, unless it states that no approver
    // reaches it.
    assert!(McpServer::builder(own(false, ""), admitted).build().is_err());
    for (runner, asks) in [(own(true, ""), false), (own(false, ""), false), (own(false, OWN), true)] {
        let served =
            McpServer::builder(runner.clone(), admitted).ask_clients(asks).without_approvers().build().unwrap();
        for client in [held::piped(&served, NOBODY).await, held::posting(&served, "ada", NOBODY).await] {
            let first = client.call_tool(bill()).await;
            if let Ok(first) = first {
                assert!(text(&first).contains("outcome_unknown"), "{first:?}");
            }
            let ServiceError::McpError(error) = client.call_tool(bill()).await.unwrap_err() else { panic!() };
            assert_eq!((error.code.0, &error.data.unwrap()["code"]), (-32000, &json!("no_decider")));
            assert!(error.message.contains("unknown outcome"), "{}", error.message);
        }
        let tasks = piped(&served, OLD).await;
        assert_eq!(code(tasks.call_tool_once(bill()).await.unwrap_err()).0, -32000);
        assert!(waiting(&**runner.store()).await.is_empty());
        if asks {
            // A client that fills in forms can be asked.
            let client = held::piped(&served, Some(json!({"approve": true}))).await;
            assert!(text(&client.call_tool(bill()).await.unwrap()).contains("outcome_unknown"));
        }
    }
    // Each of the three servers let the first call run, and the last one let the approved twin.
    assert_eq!(world.effects(), 4);
}
