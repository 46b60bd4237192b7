//! Unacknowledged commits: a write is repeated only if the commit did not happen.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tool_runtime::ToolInvocationRecord;
use tool_runtime::store::{Chain, Clock, Key, RecordFilter, Store, StoredDocument, Transaction};

use crate::store::SqlStore;
use crate::store::apply::{Work, WrittenRows, apply};
use crate::store::tests::faults::Fault;
use crate::store::tests::{kept, new, text, text_of};
use crate::store::write;

/// Increments a number in a document, and counts how often the change ran.
fn count(
    runs: &Arc<AtomicU32>,
) -> impl FnMut(&mut Transaction) -> Result<(), tool_runtime::store::StoreError> + Send + use<> {
    let runs = Arc::clone(runs);
    move |transaction: &mut Transaction| {
        runs.fetch_add(1, Ordering::Relaxed);
        let key = Key::run("run");
        let before = transaction.document(&key).map_or(0, |run| text(&run).parse::<u32>().unwrap());
        transaction.put(StoredDocument::example("run", &(before + 1).to_string(), None))
    }
}

async fn counted(store: &SqlStore) -> u32 {
    text_of(store, "run").await.map_or(0, |text| text.parse().unwrap())
}

/// Writes two changes of one document and a record in one transaction.
async fn together(store: &SqlStore) -> (WrittenRows, crate::store::connection::Connection) {
    let mut connection = store.0.database.connection().await.unwrap();
    connection.run("BEGIN IMMEDIATE").await.unwrap();
    let (mut all, runs) = (WrittenRows::default(), Arc::default());
    let jobs = [
        Work::Update(vec![Key::run("run")], Box::new(count(&runs))),
        Work::Append(Box::new(ToolInvocationRecord::example("run", "a").into())),
        Work::Update(vec![Key::run("run")], Box::new(count(&runs))),
    ];
    for mut work in jobs {
        let Ok(written) = apply(&mut connection, &mut work, <dyn Clock>::system().now()).await else {
            panic!("it is applied")
        };
        all.then(written);
    }
    (all, connection)
}

#[tokio::test]
async fn what_was_written_together_is_kept_together() {
    let (_folder, store) = new().await;
    let (written, mut connection) = together(&store).await;
    connection.run("ROLLBACK").await.unwrap();
    drop(connection);
    assert!(!write::kept(&store.0, &written).await.unwrap(), "it was rolled back");
    assert_eq!(counted(&store).await, 0);
    let (written, mut connection) = together(&store).await;
    connection.run("COMMIT").await.unwrap();
    drop(connection);
    assert!(write::kept(&store.0, &written).await.unwrap(), "it was committed");
    assert_eq!((counted(&store).await, kept(&store).await), (2, vec!["a".to_owned()]));
}

/// Without a record, the last of several writes of one document shows whether all of them were committed.
#[tokio::test]
async fn documents_alone_are_found_as_they_were_left() {
    let (_folder, store) = new().await;
    let write_twice = async |end: &str| {
        let mut connection = store.0.database.connection().await.unwrap();
        connection.run("BEGIN IMMEDIATE").await.unwrap();
        let (mut all, runs) = (WrittenRows::default(), Arc::default());
        for _ in 0..2 {
            let mut work = Work::Update(vec![Key::run("run")], Box::new(count(&runs)));
            let Ok(written) = apply(&mut connection, &mut work, <dyn Clock>::system().now()).await else {
                panic!("applied")
            };
            all.then(written);
        }
        connection.run(end).await.unwrap();
        all
    };
    let rolled_back = write_twice("ROLLBACK").await;
    assert!(!write::kept(&store.0, &rolled_back).await.unwrap());
    let committed = write_twice("COMMIT").await;
    assert!(write::kept(&store.0, &committed).await.unwrap());
}

#[tokio::test]
async fn a_batch_whose_commit_nobody_answered_is_written_once() {
    // For all combinations of faults in the batch and in its single writes, each write happens once.
    let cases: [(&[Fault], u32); 6] = [
        (&[], 1),
        (&[Fault::Unanswered], 1),
        (&[Fault::Failed], 4),
        (&[Fault::Failed, Fault::Unanswered], 5),
        (&[Fault::Failed, Fault::Failed], 5),
        (&[Fault::Failed, Fault::None, Fault::Unanswered, Fault::Failed], 6),
    ];
    for (case, (faults, commits)) in cases.into_iter().enumerate() {
        let (_folder, store) = new().await;
        let runs = Arc::default();
        store.0.faults.plan(faults.iter().copied());
        // This test's runtime has one thread, so all of them are queued before any is written.
        let receipts = [
            store.update(vec![Key::run("run")], Box::new(count(&runs))),
            store.append(ToolInvocationRecord::example("run", "a").into()),
            store.update(vec![Key::run("run")], Box::new(count(&runs))),
        ];
        for receipt in receipts {
            receipt.await.unwrap();
        }
        assert_eq!((counted(&store).await, kept(&store).await), (2, vec!["a".to_owned()]), "case {case}");
        assert!(store.0.faults.commits() <= commits, "case {case}: {} commits", store.0.faults.commits());
        let records = store.records(&RecordFilter::default()).await.unwrap();
        assert_eq!((records.len(), Chain::verify(&records)), (1, Ok(())));
    }
}

/// If the lookup fails, nothing is repeated and every handle gets the error.
#[tokio::test]
async fn a_batch_that_nobody_can_look_for_is_not_repeated() {
    let (_folder, store) = new().await;
    let runs: Arc<AtomicU32> = Arc::default();
    store.0.faults.plan([Fault::Unanswered]);
    let receipts = [
        store.update(vec![Key::run("run")], Box::new(count(&runs))),
        store.update(vec![Key::run("run")], Box::new(count(&runs))),
        store.append(ToolInvocationRecord::example("run", "a").into()),
    ];
    store.0.faults.blind();
    let mut codes = Vec::new();
    for receipt in receipts {
        codes.push(receipt.await.map_err(|error| error.code()));
    }
    assert_eq!(codes, [Err("store_unavailable"); 3]);
    assert_eq!(runs.load(Ordering::Relaxed), 2, "no change ran again");
    store.0.faults.plan([]);
    assert_eq!(counted(&store).await, 2, "it was kept all the same");
}
