//! Notices about calls of clients: each event writes one, as for calls that do not come from MCP.

use tool_runtime::store::StoredNotice;

use super::*;

const NOTICES: &str = "[notices]\n";

impl Rig {
    /// The events of all notices, each with its decision or cause, oldest first.
    async fn noticed(&self) -> Vec<String> {
        let notices = StoredNotice::all(&*self.shared.store, Some("acme")).await.unwrap();
        let told = |notice: StoredNotice| {
            let payload: Value = serde_json::from_str(notice.payload()).unwrap();
            let data = &payload["data"];
            assert_eq!((&data["principal"], &data["tenant"]), (&json!("ada"), &json!("acme")));
            let more = data["decision"].as_str().or_else(|| data["cause"].as_str());
            more.map_or_else(|| notice.event.to_string(), |more| format!("{} {more}", notice.event))
        };
        notices.into_iter().map(|notice| told(notice.unwrap())).collect()
    }
}

/// The client or another person approves the call, and its outcome is unknown. A settlement writes no notice.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_noticed_when_it_waits_is_decided_and_ends_unknown() {
    for by_client in [false, true] {
        let rig = Rig::new();
        let client = piped(&rig.serve(&format!("{OWN}{NOTICES}")), FORMS).await;
        let id = task(&client, "bank__pay", json!({"bill": "b-1"})).await.task_id;
        assert_eq!(rig.noticed().await, ["call.waiting"]);
        if by_client {
            let TaskPayload::InputRequired { input_requests } = get(&client, &id).await.unwrap().payload else {
                panic!()
            };
            let key = input_requests.keys().next().unwrap().clone();
            let approve = fill(json!({"approve": true}));
            answer(&client, &id, &key, approve.clone()).await;
            answer(&client, &id, &key, approve).await;
        } else {
            decide(&rig.shared.store, ApprovalDecision::Approve).await;
        }
        let (key, _) = asked(&client, &id).await;
        let expected = ["call.waiting", "call.decided approved", "call.unknown lost"];
        assert_eq!(rig.noticed().await, expected, "{by_client}");
        answer(&client, &id, &key, fill(json!({"outcome": "did_not_happen"}))).await;
        answer(&client, &id, &key, fill(json!({"outcome": "did_not_happen"}))).await;
        assert_eq!((rig.noticed().await.len(), rig.unsettled().await), (3, 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_is_denied_cancelled_or_expires_is_noticed() {
    let rig = Rig::new();
    let client = piped(&rig.serve(NOTICES), OLD).await;
    let waits = async |bill: &str| task(&client, "bank__pay", json!({ "bill": bill })).await.task_id;
    let denied = waits("b-1").await;
    decide(&rig.shared.store, ApprovalDecision::Deny(None)).await;
    ended(&client, &denied).await;
    let cancelled = waits("b-2").await;
    client.cancel_task(CancelTaskParams::new(&cancelled)).await.unwrap();
    let expired = waits("b-3").await;
    rig.shared.clock.advance(Duration::from_hours(24));
    ended(&client, &expired).await;
    let ends = ["call.decided denied", "call.decided abandoned", "call.expired"];
    let expected: Vec<_> = ends.iter().flat_map(|end| ["call.waiting", *end]).collect();
    assert_eq!(rig.noticed().await, expected);
    assert_eq!(rig.shared.effects(), 0);
}

/// A repeated request joins the waiting call, and its call has one notice for each event.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_noticed_once_however_often_it_is_repeated() {
    for hold in ["", HELD] {
        let rig = Rig::new();
        let served = rig.serve(&format!("{hold}{NOTICES}"));
        let clients = [held::piped(&served, NOBODY).await, held::posting(&served, "ada", NOBODY).await];
        let bill = || request("bank__pay", json!({"bill": "b-1"}));
        let approve = async {
            let call = held::one_waiting(&*rig.shared.store).await;
            held::post(&rig.shared.store, &call, ApprovalDecision::Approve).await;
        };
        if hold.is_empty() {
            for client in &clients {
                held::waits(&client.call_tool(bill()).await.unwrap());
            }
            approve.await;
            assert_eq!(rig.noticed().await, ["call.waiting"], "the approval waits for its client");
            let done = clients[0].call_tool(bill()).await.unwrap();
            assert!(text(&done).contains("outcome_unknown"), "{done:?}");
        } else {
            let (done, ()) = tokio::join!(clients[0].call_tool(bill()), approve);
            assert!(text(&done.unwrap()).contains("outcome_unknown"));
        }
        assert_eq!(rig.noticed().await, ["call.waiting", "call.decided approved", "call.unknown lost"], "{hold}");
        assert_eq!(rig.shared.effects(), 1);
    }
}
