//! Extremes of size: long keys, large bodies, many documents.

use std::sync::Arc;

use crate::call::{CallId, JsonText};
use crate::store::conformance::{listed, read, record, records::calls, run, text, update, waiting};
use crate::store::{Chain, Document, DocumentKind, Key, Query, RecordFilter, Store, StoreError, Transaction};
use crate::tool::Hash;

/// Returns a text that cannot be compressed.
fn noise(length: usize) -> String {
    let blocks = (0_u64..).map(|number| Hash::sha256(number.to_be_bytes()).to_string());
    let mut text: String = blocks.take(length / 64 + 1).collect();
    text.truncate(length);
    text
}

pub(super) async fn long_keys_are_told_apart(store: Arc<dyn Store>) {
    let store = &*store;
    let start = noise(8192);
    let [one, two] = ["1", "2"].map(|end| format!("{start}{end}"));
    for id in [&one, &two] {
        let key = Key::from_parts(DocumentKind::Waiting, id.as_str(), id.as_str());
        let (named, of) = ([key.clone(), Key::run(id.as_str())], id.clone());
        let write = move |transaction: &mut Transaction| {
            transaction.set(&key, Document::Waiting(Box::new(waiting(&of, &of, 1))))?;
            transaction.set(&Key::run(of.as_str()), run(&of, &of))?;
            transaction.append(record(&of, &of))
        };
        update(store, &named, write).await.expect("it writes");
    }
    let of_two = Query { scope: Some(two.as_str().into()), ..Query::new(DocumentKind::Waiting) };
    let keys: Vec<_> = listed(store, of_two).await.into_iter().map(|listed| listed.key).collect();
    assert_eq!(
        keys,
        [Key::from_parts(DocumentKind::Waiting, two.as_str(), two.as_str())],
        "a key is listed as it was written"
    );
    assert_eq!(text(read(store, &Key::run(one.as_str())).await.as_ref()), Some(one.as_str()), "and read");
    let of_one = store.records(&RecordFilter::call(one.as_str(), CallId::new(&one))).await.expect("it reads");
    assert_eq!((calls(&of_one), Chain::verify(&of_one)), (vec![one.as_str()], Ok(())), "and in records");
}

pub(super) async fn large_bodies_are_kept(store: Arc<dyn Store>) {
    let store = &*store;
    let (key, body) = (Key::run("large"), noise(4 << 20));
    let (named, kept) = (key.clone(), body.clone());
    let result = JsonText::known(format!("\"{body}\""));
    let write = move |transaction: &mut Transaction| {
        transaction.set(&named, run("large", &kept))?;
        let mut record = record("large", "a");
        record.result = Some(result.clone());
        transaction.append(record)
    };
    update(store, std::slice::from_ref(&key), write).await.expect("it writes");
    let document = read(store, &key).await;
    assert!(text(document.as_ref()) == Some(body.as_str()), "a large document reads as it was written");
    // This change does not need the conversation, so the store may leave it out.
    let head = Key::run_head("large");
    let named = head.clone();
    let write = move |transaction: &mut Transaction| {
        let Some(Document::Run(run)) = transaction.get(&named) else { return Err(StoreError::Fenced) };
        let mut run = run.clone();
        run.epoch += 1;
        transaction.set(&named, Document::Run(run))
    };
    update(store, std::slice::from_ref(&head), write).await.expect("it writes");
    let document = read(store, &key).await;
    assert!(matches!(&document, Some(Document::Run(run)) if run.epoch == 1), "the head is written");
    assert!(text(document.as_ref()) == Some(body.as_str()), "and the conversation stays");
    let records = store.records(&RecordFilter::run("large")).await.expect("it reads");
    assert_eq!((records.len(), Chain::verify(&records)), (1, Ok(())), "a large record reads as it was sealed");
}

pub(super) async fn many_documents_are_listed_in_pages(store: Arc<dyn Store>) {
    const MANY: usize = 10_000;
    const AT_ONCE: usize = 250;
    let store = &*store;
    for start in (0..MANY).step_by(AT_ONCE) {
        let ids: Vec<_> = (start..start + AT_ONCE).map(|number| format!("{number:05}")).collect();
        let keys: Vec<_> = ids.iter().map(|id| Key::run(id.as_str())).collect();
        let named = keys.clone();
        let write = move |transaction: &mut Transaction| {
            named.iter().zip(&ids).try_for_each(|(key, id)| transaction.set(key, run(id, id)))
        };
        update(store, &keys, write).await.expect("it writes");
    }
    let found = listed(store, Query { limit: 999, ..Query::new(DocumentKind::Run) }).await;
    let expected = (0..MANY).map(|number| Key::run(format!("{number:05}")));
    assert!(
        found.iter().map(|listed| &listed.key).eq(expected.collect::<Vec<_>>().iter()),
        "each document is listed once, in order: {} of {MANY}",
        found.len()
    );
}
