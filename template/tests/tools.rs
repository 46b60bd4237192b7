//! The tools as a model sees them: through the gate, on adapters made for the test.

use std::sync::{Arc, Mutex};

use tool_runtime::catalog::ToolLock;
use tool_runtime::{Capabilities, ToolCall, ToolCatalog, ToolPolicy, ToolRunner, testing};

use {{crate_name}}::shelf::{Book, ShelfReader, ShelfWriter};

#[derive(Default)]
struct Shelf(Mutex<Vec<Book>>);

impl ShelfReader for Shelf {
    fn books(&self) -> std::io::Result<Vec<Book>> {
        Ok(self.0.lock().unwrap().clone())
    }
}

impl ShelfWriter for Shelf {
    fn add(&self, key: &str, title: &str) -> std::io::Result<Book> {
        let mut books = self.0.lock().unwrap();
        let book = Book {
            number: books.len() as u64 + 1,
            title: title.into(),
            key: key.into(),
        };
        books.push(book.clone());
        Ok(book)
    }
}

fn capabilities() -> Capabilities {
    let shelf = Arc::new(Shelf::default());
    Capabilities::new()
        .with::<dyn ShelfReader>(Arc::clone(&shelf) as _)
        .with::<dyn ShelfWriter>(shelf)
}

#[tokio::test]
async fn what_was_added_is_listed_without_its_key() {
    let run = testing::run(ToolCatalog::collect().unwrap(), capabilities()).unwrap();
    let added = run
        .exec(ToolCall::text(
            "call_1",
            "shelf__add",
            r#"{"title":"Dune"}"#,
        ))
        .await;
    assert_eq!(added.to_model(), r#"{"number":1,"title":"Dune"}"#);
    let listed = run
        .exec(ToolCall::text("call_2", "shelf__list", "{}"))
        .await;
    assert_eq!(listed.to_model(), r#"[{"number":1,"title":"Dune"}]"#);
}

#[tokio::test]
async fn a_book_needs_a_title() {
    let run = testing::run(ToolCatalog::collect().unwrap(), capabilities()).unwrap();
    let refused = run
        .exec(ToolCall::text("call_1", "shelf__add", r#"{"title":""}"#))
        .await;
    assert_eq!(refused.outcome().code(), "validation_error");
}

#[test]
fn the_policy_fits_the_tools() {
    let policy = ToolPolicy::from_toml(include_str!("../policy.toml")).unwrap();
    let runner = ToolRunner::builder(ToolCatalog::collect().unwrap(), policy)
        .capabilities(capabilities())
        .build();
    assert!(runner.is_ok(), "{runner:?}");
}

#[test]
fn the_definitions_are_the_locked_ones() {
    let lock = ToolLock::parse(include_str!("../tools.lock")).unwrap();
    let report = lock.compare(&ToolLock::of(&ToolCatalog::collect().unwrap()));
    assert!(
        report.is_current(),
        "{report}\nwrite it with `cargo run -- check --lock tools.lock --write`"
    );
}
