//! The long text of a run: the writes of a step and of a renewed lease.

use tool_runtime::store::{DocumentKind, Key, Query, Store, StoreError, StoredDocument, Transaction};
use tool_runtime::tool::Hash;

use crate::store::SqlStore;
use crate::store::tests::{edit, new, text, text_of};

/// Returns the run as a worker writes it that leases it until `until`, or renews its lease.
fn leased(run: &StoredDocument, until: &str) -> StoredDocument {
    let mut json: serde_json::Value = serde_json::from_str(&run.to_json().unwrap()).unwrap();
    json["run"]["holder"] = serde_json::json!({"owner": "worker", "until": until});
    StoredDocument::from_json(run.key.clone(), &json.to_string()).unwrap()
}

/// Returns a string like a conversation's: a policy that never changes, and a history that grows.
fn conversation(turns: usize) -> String {
    let rule = |tool: usize| format!("{{\"tool\":\"name__{tool}\",\"limits\":{{\"calls\":{tool}}}}},");
    let message = |turn: usize| format!("{{\"role\":\"tool\",\"text\":\"{}\"}},", Hash::sha256(turn.to_be_bytes()));
    let (rules, history): (String, String) = ((0..100).map(rule).collect(), (0..turns).map(message).collect());
    format!("{{\"turns\":{turns},\"policies\":[{rules}],\"spent\":{turns},\"history\":[{history}],\"end\":{turns}}}")
}

/// Writes a run with this text.
pub(super) async fn keep(store: &SqlStore, run: &str, text: String) -> Result<(), StoreError> {
    let (key, run) = (Key::run(run), run.to_owned());
    let write = move |transaction: &mut Transaction| {
        transaction.put(StoredDocument::example(&run, &text, Some(transaction.now())))
    };
    store.update(vec![key], Box::new(write)).await
}

/// Returns how many bytes and how many rows were written since the last call.
async fn written(store: &SqlStore) -> (i64, i64) {
    let mut connection = store.0.database.connection().await.unwrap();
    let bytes = connection.last("SELECT coalesce(sum(bytes), 0), count(*) FROM written").await.unwrap();
    connection.run("DELETE FROM written").await.unwrap();
    bytes
}

/// Returns how many parts there are.
pub(super) async fn parts(store: &SqlStore) -> i64 {
    let mut connection = store.0.database.connection().await.unwrap();
    connection.last::<(i64,)>("SELECT count(*) FROM tool_runtime_parts").await.unwrap().0
}

#[tokio::test]
async fn a_step_writes_what_is_new_and_a_lease_writes_none_of_the_text() {
    let (_folder, store) = new().await;
    edit(
        &store,
        "CREATE TABLE written (bytes INTEGER); \
         CREATE TRIGGER a AFTER INSERT ON tool_runtime_parts BEGIN INSERT INTO written VALUES (length(NEW.body)); END; \
         CREATE TRIGGER b AFTER INSERT ON tool_runtime_documents BEGIN \
             INSERT INTO written VALUES (length(NEW.body) + coalesce(length(NEW.parts), 0)); END; \
         CREATE TRIGGER c AFTER UPDATE ON tool_runtime_documents BEGIN \
             INSERT INTO written VALUES (length(NEW.body) + coalesce(length(NEW.parts), 0)); END",
    )
    .await;
    for (turns, share) in [(5, 1), (50, 2), (500, 6)] {
        let first = conversation(turns);
        keep(&store, "run", first).await.unwrap();
        written(&store).await;
        let next = conversation(turns + 1);
        keep(&store, "run", next.clone()).await.unwrap();
        let (step, _) = written(&store).await;
        assert_eq!(text_of(&store, "run").await, Some(next.clone()));

        let key = Key::run("run");
        for until in ["2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"] {
            written(&store).await;
            let (named, kept) = (key.clone(), next.clone());
            let lease = move |transaction: &mut Transaction| {
                let run = transaction.document(&named).expect("the run");
                assert!(text(&run) == kept, "the worker gets the text");
                transaction.put(leased(&run, until))
            };
            store.update(vec![key.clone()], Box::new(lease)).await.unwrap();
        }
        let (renewed, rows) = written(&store).await;
        assert_eq!(rows, 1, "the head alone");
        let whole = i64::try_from(next.len()).unwrap();
        println!("{turns} turns: {whole} bytes, a step writes {step}, a renewed lease {renewed}");
        assert!(step * share < whole && renewed * 4 < whole, "{turns} turns: {step} and {renewed} of {whole}");
    }
}

#[tokio::test]
async fn parts_come_and_go_with_their_run() {
    let (_folder, store) = new().await;
    for run in ["one", "two"] {
        keep(&store, run, conversation(20)).await.unwrap();
    }
    keep(&store, "short", "saved".to_owned()).await.unwrap();
    let both = parts(&store).await;
    let listed = store.list(&Query { due: Some(jiff::Timestamp::MAX), ..Query::new(DocumentKind::Run) }).await.unwrap();
    let texts: Vec<_> = listed.iter().map(text).collect();
    assert_eq!(texts, [conversation(20), conversation(20), "saved".to_owned()], "in their order");
    let page = Query { after: listed[0].position, limit: 1, ..Query::new(DocumentKind::Run) };
    assert_eq!(store.list(&page).await.unwrap()[0].key, Key::run("two"));

    keep(&store, "one", "short now".to_owned()).await.unwrap();
    assert_eq!((text_of(&store, "one").await.as_deref(), parts(&store).await), (Some("short now"), both / 2));
    let remove = |transaction: &mut Transaction| transaction.remove(&Key::run("two"));
    store.update(vec![Key::run("two")], Box::new(remove)).await.unwrap();
    assert_eq!((text_of(&store, "two").await, parts(&store).await), (None, 0));

    // The list is damaged: a piece of it is missing.
    keep(&store, "four", conversation(500)).await.unwrap();
    edit(
        &store,
        "DELETE FROM tool_runtime_parts WHERE rowid = (SELECT min(rowid) FROM tool_runtime_parts WHERE hash LIKE '+%')",
    )
    .await;
    assert!(parts(&store).await > 0);
    let remove = |transaction: &mut Transaction| transaction.remove(&Key::run("four"));
    store.update(vec![Key::run_head("four")], Box::new(remove)).await.unwrap();
    assert_eq!(parts(&store).await, 0);

    keep(&store, "three", conversation(20)).await.unwrap();
    edit(&store, "DELETE FROM tool_runtime_parts WHERE rowid = (SELECT max(rowid) FROM tool_runtime_parts)").await;
    assert_eq!(store.read(&[Key::run("three")]).await.unwrap_err().code(), "store_corrupt");
}
