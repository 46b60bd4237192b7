//! Writes whose handles were dropped: from outside the runtime, too many of them, and changes that panic.

use tool_runtime::ToolInvocationRecord;
use tool_runtime::store::{Key, Store, Transaction};

use crate::store::tests::{edit, kept, new, put};

#[tokio::test]
async fn a_destructor_outside_the_runtime_can_write() {
    struct Guard(super::SqlStore);
    impl Drop for Guard {
        fn drop(&mut self) {
            assert!(tokio::runtime::Handle::try_current().is_err());
            drop(self.0.append(ToolInvocationRecord::example("run", "a").into()));
        }
    }
    let (_folder, store) = new().await;
    let guard = Guard(store.clone());
    std::thread::scope(|scope| scope.spawn(move || drop(guard)).join().unwrap());
    store.flush().await.unwrap();
    assert_eq!(kept(&store).await, ["a"]);
}

#[tokio::test]
async fn a_change_that_panics_fails_alone() {
    let (_folder, store) = new().await;
    let receipts = [
        store.append(ToolInvocationRecord::example("run", "a").into()),
        store.update(vec![Key::run("run")], Box::new(|_: &mut Transaction| panic!("a change"))),
        store.append(ToolInvocationRecord::example("run", "b").into()),
    ];
    let mut codes = Vec::new();
    for receipt in receipts {
        codes.push(receipt.await.map_err(|error| error.code()));
    }
    assert_eq!(codes, [Ok(()), Err("store_panicked"), Ok(())]);
    assert_eq!(kept(&store).await, ["a", "b"]);
}

#[tokio::test]
async fn more_writes_than_may_wait_are_refused() {
    let (_folder, store) = new().await;
    let mut holder = store.0.database.connection().await.unwrap();
    holder.run("BEGIN IMMEDIATE").await.unwrap();
    // This test's runtime has one thread, so no worker takes a write meanwhile.
    let mut receipts: Vec<_> = (0..4097)
        .map(|number| store.append(ToolInvocationRecord::example("run", &number.to_string()).into()))
        .collect();
    let refused = receipts.pop().unwrap().await.unwrap_err();
    assert_eq!(refused.code(), "store_busy");
    holder.run("ROLLBACK").await.unwrap();
    for receipt in receipts {
        receipt.await.unwrap();
    }
    assert_eq!(put(&store, "next").await, Ok(()));
    assert_eq!(kept(&store).await.len(), 4097);
}

#[tokio::test]
async fn a_write_that_was_lost_is_found_when_flushing() {
    let (_folder, store) = new().await;
    edit(&store, "ALTER TABLE tool_runtime_records RENAME TO elsewhere").await;
    drop(store.append(ToolInvocationRecord::example("run", "a").into()));
    assert_eq!(store.flush().await.unwrap_err().code(), "store_unavailable");
    edit(&store, "ALTER TABLE elsewhere RENAME TO tool_runtime_records").await;
    store.flush().await.unwrap();
    assert_eq!(put(&store, "b").await, Ok(()), "the next call works");
}

#[test]
fn a_runtime_that_ends_loses_what_waits_and_says_so() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let first = runtime();
    let (_folder, store) = first.block_on(new());
    let lost = [
        store.append(ToolInvocationRecord::example("run", "a").into()),
        store.append(ToolInvocationRecord::example("run", "b").into()),
    ];
    drop(first);
    let after = store.append(ToolInvocationRecord::example("run", "c").into());
    runtime().block_on(async {
        for receipt in lost.into_iter().chain([after]) {
            assert_eq!(receipt.await.unwrap_err().code(), "store_lost");
        }
    });
}
