//! Tests of the tools through the gate, with an adapter for tests.

use std::sync::{Arc, Mutex};

use serde_json::json;
use tool_runtime::catalog::ToolLock;
use tool_runtime::testing::{self, Harness};
use tool_runtime::{Capabilities, ToolCatalog, ToolPolicy, ToolRunner, assert_catalog_ok};

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

fn harness() -> Harness {
    testing::harness(ToolCatalog::collect().unwrap()).capabilities(capabilities())
}

#[tokio::test]
async fn what_was_added_is_listed_without_its_key() {
    let harness = harness();
    let added = harness.call("shelf__add", json!({ "title": "Dune" })).await;
    added.assert_value(json!({ "number": 1, "title": "Dune" }));
    let listed = harness.call("shelf__list", json!({})).await;
    listed.assert_value(json!([{ "number": 1, "title": "Dune" }]));
}

#[tokio::test]
async fn a_book_needs_a_title() {
    let refused = harness().call("shelf__add", json!({ "title": "" })).await;
    refused.assert_violation("/title");
}

#[test]
fn schemas_and_parsers_agree() {
    assert_catalog_ok!();
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
