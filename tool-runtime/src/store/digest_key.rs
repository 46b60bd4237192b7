//! The store's own key for digests of arguments, created on first use.

use crate::call::DigestKey;
use crate::store::document::StoredDigestKey;
use crate::store::{Document, Key, Store, StoreError, StoredDocument, Transaction, transact};

/// Returns the key in a document. `None` if the store has none yet.
pub(crate) fn read(document: Option<StoredDocument>) -> Option<DigestKey> {
    match document.map(|stored| stored.document) {
        Some(Document::DigestKey(key)) => Some(key.0),
        _ => None,
    }
}

/// Returns the store's key. `None` if it has none yet.
pub(crate) async fn find(store: &(impl Store + ?Sized)) -> Result<Option<DigestKey>, StoreError> {
    Ok(read(store.read(&[Key::digest_key()]).await?.pop().flatten()))
}

/// Returns the store's key, and creates it if there is none.
pub(crate) async fn find_or_create(store: &(impl Store + ?Sized)) -> Result<DigestKey, StoreError> {
    if let Some(key) = find(store).await? {
        return Ok(key);
    }
    let candidate = DigestKey::generate();
    let change = move |transaction: &mut Transaction| get_or_insert(transaction, &candidate);
    transact(store, vec![Key::digest_key()], change).await
}

/// Returns the store's key. If there is none, `candidate` becomes the key. All processes get the same key.
pub(crate) fn get_or_insert(transaction: &mut Transaction, candidate: &DigestKey) -> Result<DigestKey, StoreError> {
    if let Some(Document::DigestKey(key)) = transaction.get(&Key::digest_key()) {
        return Ok(key.0.clone());
    }
    transaction.set(&Key::digest_key(), Document::DigestKey(StoredDigestKey(candidate.clone())))?;
    Ok(candidate.clone())
}
