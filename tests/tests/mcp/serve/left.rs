//! Decisions and documents that a server leaves in the store if its process ends and no client comes back.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tests::stored::{document as document_of, json_of};
use tests::world::{HookAction, HookedStore};
use tool_runtime::agent::Input;
use tool_runtime::call::Decider;
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::{
    DocumentKind, Key, MemoryStore, PendingCall, Query, RecordFilter, Store as _, StoreError, Transaction,
};
use tool_runtime::testing::ManualClock;

use crate::serve::held::{NOBODY, builder, letter, one_waiting, piped, post, sent, waiting, waits};
use crate::serve::unread::Unread;

#[tokio::test(start_paused = true)]
async fn a_decision_has_a_record_and_no_document_stays() {
    let clock = Arc::new(ManualClock::at("2030-01-01T00:00:00Z".parse().unwrap()));
    let store = Arc::new(MemoryStore::with_clock(Arc::clone(&clock)));
    let first = builder(Arc::clone(&store), "").build().unwrap();
    waits(&letter(&piped(&first, NOBODY).await, "orphaned").await.unwrap());
    first.close(Duration::ZERO).await;
    let call = one_waiting(&*store).await;
    post(&store, &call, ApprovalDecision::Approve).await;
    clock.advance(Duration::from_hours(48));
    let second = builder(Arc::clone(&store), "").build().unwrap();
    let _client = piped(&second, NOBODY).await;
    let number = async |kind| store.list(&Query::new(kind)).await.unwrap().len();
    while number(DocumentKind::Post).await > 0 {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!((sent("orphaned"), waiting(&*store).await.len()), (0, 0));
    let records = store.records(&RecordFilter::call(Arc::clone(&call.run_id), call.call_id.clone())).await.unwrap();
    let decisions = records.iter().filter_map(|sealed| sealed.record.as_decision());
    let of_grace: Vec<_> = decisions.filter(|decision| decision.decider.is_some()).collect();
    let [decision] = &*of_grace else { panic!("{of_grace:?}") };
    assert!(decision.refused().is_some());
    // Its client could come back for a week, and would read the end of its call.
    assert_eq!(number(DocumentKind::Run).await, 2);
    clock.advance(Duration::from_hours(8 * 24));
    while number(DocumentKind::Run).await > 0 {
        tokio::time::sleep(Duration::from_mins(1)).await;
    }
}

/// Servers of desktop clients live for minutes, and each of them is the first after the one before.
#[tokio::test(start_paused = true)]
async fn a_server_that_lives_for_a_minute_removes_old_documents() {
    let clock = Arc::new(ManualClock::at("2030-01-01T00:00:00Z".parse().unwrap()));
    let store = Arc::new(MemoryStore::with_clock(Arc::clone(&clock)));
    let lives = async |text| {
        let server = builder(Arc::clone(&store), "").build().unwrap();
        let client = piped(&server, NOBODY).await;
        if let Some(text) = text {
            waits(&letter(&client, text).await.unwrap());
        }
        tokio::time::sleep(Duration::from_mins(1)).await;
        server.close(Duration::ZERO).await;
        store.list(&Query::new(DocumentKind::Run)).await.unwrap().len()
    };
    assert_eq!(lives(Some("kept for a week")).await, 2);
    clock.advance(Duration::from_hours(9 * 24));
    assert_eq!(lives(None).await, 0);
}

#[tokio::test(start_paused = true)]
async fn of_all_servers_one_searches_for_old_documents_each_day() {
    let clock = Arc::new(ManualClock::at("2030-01-01T00:00:00Z".parse().unwrap()));
    let store = Arc::new(MemoryStore::with_clock(Arc::clone(&clock)));
    let number = async || store.list(&Query::new(DocumentKind::Run)).await.unwrap().len();
    let servers = [(); 2].map(|()| builder(Arc::clone(&store), "").build().unwrap());
    waits(&letter(&piped(&servers[0], NOBODY).await, "of two servers").await.unwrap());
    servers[0].close(Duration::ZERO).await;
    // The call has expired, and one hour of its week is left.
    clock.advance(Duration::from_hours(8 * 24 - 1));
    let _client = piped(&servers[1], NOBODY).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(number().await, 2);
    clock.advance(Duration::from_hours(2));
    let third = builder(Arc::clone(&store), "").build().unwrap();
    let _other = piped(&third, NOBODY).await;
    tokio::time::sleep(Duration::from_hours(3)).await;
    assert_eq!(number().await, 2, "the day after the last search is not over");
    clock.advance(Duration::from_hours(22));
    tokio::time::sleep(Duration::from_hours(2)).await;
    assert_eq!(number().await, 0);
}

/// The run of one decision cannot be read. The others have their records.
#[tokio::test(start_paused = true)]
async fn a_run_that_cannot_be_read_stops_no_decision_of_another() {
    let clock = Arc::new(ManualClock::at("2030-01-01T00:00:00Z".parse().unwrap()));
    let store = Arc::new(MemoryStore::with_clock(Arc::clone(&clock)));
    for text in ["first of three", "second of three", "third of three"] {
        let first = builder(Arc::clone(&store), "").build().unwrap();
        waits(&letter(&piped(&first, NOBODY).await, text).await.unwrap());
        first.close(Duration::ZERO).await;
    }
    let calls = waiting(&*store).await;
    assert_eq!(calls.len(), 3);
    for call in &calls {
        post(&store, call, ApprovalDecision::Approve).await;
    }
    clock.advance(Duration::from_hours(48));
    let unread = Unread::new(&store, &calls[1].run_id);
    let second = builder(unread, "").build().unwrap();
    let _client = piped(&second, NOBODY).await;
    while store.list(&Query::new(DocumentKind::Post)).await.unwrap().len() > 1 {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    for (call, expected) in calls.iter().zip([1, 0, 1]) {
        let records = store.records(&RecordFilter::call(Arc::clone(&call.run_id), call.call_id.clone())).await.unwrap();
        let decisions = records.iter().filter_map(|sealed| sealed.record.as_decision());
        assert_eq!(decisions.filter(|decision| decision.decider.is_some()).count(), expected);
    }
}

/// A server is stopped for longer than its lease while it carries out a message with two decisions, which another
/// server takes.
#[tokio::test(start_paused = true)]
async fn a_server_without_the_claim_carries_out_no_further_decision() {
    for are_over in [false, true] {
        let clock = Arc::new(ManualClock::at("2030-01-01T00:00:00Z".parse().unwrap()));
        let store = Arc::new(MemoryStore::with_clock(Arc::clone(&clock)));
        let first = builder(Arc::clone(&store), "").build().unwrap();
        let client = piped(&first, NOBODY).await;
        for text in ["one of two", "two of two"] {
            waits(&letter(&client, text).await.unwrap());
        }
        first.close(Duration::ZERO).await;
        let (calls, grace) = (waiting(&*store).await, Decider::new("grace").tenant("acme"));
        let decides =
            |input: Input, call: &PendingCall| input.decide(&call.question(), ApprovalDecision::Deny(None), &grace);
        let input = calls.iter().fold(Input::new(), decides);
        tests::queue(Arc::clone(&store)).post(&calls[0].run_id, Some("acme"), &input).await.unwrap();
        let claims = Arc::new(AtomicUsize::new(1));
        let left = Arc::clone(&claims);
        let hooked = HookedStore::new(Arc::clone(&store) as _, |_| HookAction::Pass).refusing(move |keys| {
            let is_claim = matches!(keys, [key] if key.kind() == DocumentKind::Post);
            let take = |claims: usize| claims.checked_sub(1);
            let is_lost = is_claim && left.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).is_err();
            is_lost.then(|| StoreError::Unavailable("another server has the message".into()))
        });
        let second = builder(hooked, "").build().unwrap();
        if are_over {
            clock.advance(Duration::from_hours(48));
        }
        let client = piped(&second, NOBODY).await;
        if !are_over {
            // The server gets the run with its message.
            letter(&client, "one of two").await.unwrap();
        }
        let decided = async || {
            let records = store.records(&RecordFilter::default()).await.unwrap();
            let decisions = records.iter().filter_map(|sealed| sealed.record.as_decision());
            decisions.filter(|decision| decision.decider.is_some()).count()
        };
        while decided().await == 0 {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        tokio::time::sleep(Duration::from_mins(3)).await;
        assert_eq!(decided().await, 1);
        claims.store(usize::MAX, Ordering::Release);
        while !store.list(&Query::new(DocumentKind::Post)).await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        assert_eq!(decided().await, 2);
    }
}

/// A server was killed while it stored two calls, so the document of the run lacks one of them. An approval of that
/// call waits for its client like any other, and is carried out once the client repeats the call.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_no_document_names_runs_only_for_its_client() {
    let store = Arc::new(MemoryStore::new());
    let first = builder(Arc::clone(&store), "").build().unwrap();
    let client = piped(&first, NOBODY).await;
    waits(&letter(&client, "kept").await.unwrap());
    waits(&letter(&client, "lost from it").await.unwrap());
    first.close(Duration::ZERO).await;
    let calls = waiting(&*store).await;
    let [kept, lost] = ["kept", "lost from it"]
        .map(|text| calls.iter().find(|call| call.arguments().contains(&format!("\"{text}\""))).unwrap().clone());
    let key = Key::run(Arc::clone(&kept.run_id));
    let id = lost.call_id.to_string();
    let remove = move |transaction: &mut Transaction| {
        let run = transaction.document(&key).expect("the run");
        let mut json = json_of(&run);
        let text = json.pointer_mut("/run/document").expect("a document");
        let mut document: serde_json::Value = serde_json::from_str(text.as_str().expect("text")).expect("JSON");
        assert!(document["tasks"].as_object_mut().expect("tasks").remove(&id).is_some());
        *text = document.to_string().into();
        transaction.put(document_of(key.clone(), &json))
    };
    let key = Key::run(Arc::clone(&kept.run_id));
    store.update(vec![key], Box::new(remove)).await.unwrap();

    let second = builder(Arc::clone(&store), "").build().unwrap();
    let client = piped(&second, NOBODY).await;
    // Its client repeats the other call, so this server has the run.
    waits(&letter(&client, "kept").await.unwrap());
    post(&store, &lost, ApprovalDecision::Approve).await;
    post(&store, &kept, ApprovalDecision::Approve).await;
    // The runner of the run looks at all posts in a round.
    letter(&client, "kept").await.unwrap();
    assert_eq!((sent("kept"), sent("lost from it")), (1, 0));
    assert_eq!(one_waiting(&*store).await.call_id, lost.call_id);
    letter(&client, "lost from it").await.unwrap();
    assert_eq!((sent("lost from it"), waiting(&*store).await.len()), (1, 0));
}

/// Two servers have the run of a call, because its client came back to the second one. One of them carries a decision
/// out.
#[tokio::test(start_paused = true)]
async fn of_two_servers_one_carries_a_decision_out() {
    let store = Arc::new(MemoryStore::new());
    let servers = [(); 2].map(|()| builder(Arc::clone(&store), "").build().unwrap());
    for server in &servers {
        waits(&letter(&piped(server, NOBODY).await, "shared").await.unwrap());
    }
    let call = one_waiting(&*store).await;
    post(&store, &call, ApprovalDecision::Deny(None)).await;
    while !store.list(&Query::new(DocumentKind::Post)).await.unwrap().is_empty() {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    tokio::time::sleep(Duration::from_mins(3)).await;
    let records = store.records(&RecordFilter::call(Arc::clone(&call.run_id), call.call_id.clone())).await.unwrap();
    let decisions = records.iter().filter_map(|sealed| sealed.record.as_decision());
    assert_eq!(decisions.filter(|decision| decision.decider.is_some()).count(), 1);
}
