//! Several processes send the notices of one database.

use std::collections::BTreeSet;

use tests::server::{Reply, Server, WEBHOOK_SECRET as SECRET};
use tests::spans::Traced;
use tests::world::{HookAction, HookedStore};
use tool_runtime::agent::http::Notifier;
use tool_runtime::store::{Key, MemoryStore, StoreError};
use tool_runtime_sql::{SqlOptions, SqlStore};

use super::*;

/// Two processes send at the same time, each in its own thread and with its own connections. Each notice is sent once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_share_the_notices_of_a_database() {
    const CALLS: usize = 12;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("notices.db");
    let open = || async { Arc::new(SqlStore::sqlite(&path, SqlOptions::new()).await.expect("a store")) };
    let stores = [open().await as Arc<dyn Store>, open().await as Arc<dyn Store>];
    wait_in(&stores[0], CALLS).await;
    let server = Server::start([Reply::body("200 OK", "", b"")]).expect("a free port");
    let sending = stores.clone().map(|store| {
        let notifier = Notifier::new(store, &server.url(), [SECRET]).expect("a webhook");
        tokio::spawn(async move { notifier.send_due().await })
    });
    let mut delivered = 0;
    for sending in sending {
        delivered += sending.await.expect("it ends").expect("a store");
    }
    assert_eq!(delivered, CALLS as u64);
    let asked = server.asked();
    let bodies: BTreeSet<_> = asked.iter().map(|asked| &asked.body).collect();
    assert_eq!((asked.len(), bodies.len()), (CALLS, CALLS));
    for notice in notices(&*stores[1]).await {
        assert_eq!((notice.state(), notice.attempts().len()), ("delivered", 1));
    }
}

/// One damaged row stops no other notice.
#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_notice_stops_no_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("notices.db");
    let store: Arc<dyn Store> = Arc::new(SqlStore::sqlite(&path, SqlOptions::new()).await.expect("a store"));
    wait_in(&store, 3).await;
    let file = rusqlite::Connection::open(&path).expect("a database");
    let damage = "UPDATE tool_runtime_documents SET body = '{' WHERE number = \
                  (SELECT number FROM tool_runtime_documents WHERE space = 'notice' ORDER BY number LIMIT 1 OFFSET 1)";
    assert_eq!(file.execute(damage, []).expect("it is written"), 1);
    let server = Server::start([Reply::body("200 OK", "", b"")]).expect("a free port");
    let notifier = Notifier::new(Arc::clone(&store), &server.url(), [SECRET]).expect("a webhook");
    let traced = Traced::default();
    let tracing = tracing::subscriber::set_default(traced.subscriber());
    assert_eq!(notifier.send_due().await.expect("a store"), 2);
    assert_eq!(notifier.send_due().await.expect("a store"), 0);
    drop(tracing);
    assert_eq!(server.asked().len(), 2);
    let text = traced.text();
    let warned: Vec<_> = text.lines().filter(|line| line.contains("document_unreadable")).collect();
    assert!(
        matches!(&warned[..], [line] if line.contains("run 1") && line.contains("msg_")),
        "once, with its key: {text}"
    );
    let all = StoredNotice::all(&*store, Some("acme")).await.expect("notices");
    assert!(matches!(&all[..], [Ok(_), Ok(_), Err(_)]));
}

/// A notice that is listed, and damaged before it is claimed, stops no other notice of the round.
#[tokio::test(flavor = "multi_thread")]
async fn a_notice_that_cannot_be_claimed_stops_no_other() {
    const CALLS: usize = 3;
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    wait_in(&store, CALLS).await;
    let damaged = notices(&*store).await.swap_remove(0);
    let key = Key::from_parts(DocumentKind::Notice, damaged.run_id, damaged.id);
    let unreadable = move |keys: &[Key]| keys.contains(&key).then(|| StoreError::Corrupt("a damaged row".into()));
    let hooked = HookedStore::new(store, |_| HookAction::Pass).refusing(unreadable);
    let server = Server::start([Reply::body("200 OK", "", b"")]).expect("a free port");
    let notifier = Notifier::new(Arc::new(hooked), &server.url(), [SECRET]).expect("a webhook");
    assert_eq!(notifier.send_due().await.expect_err("one is damaged").code(), "store_corrupt");
    assert_eq!(server.asked().len(), CALLS - 1);
}
