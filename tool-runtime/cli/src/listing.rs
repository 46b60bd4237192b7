//! Pages through documents of a store.

use tool_runtime::store::{Query, Store, StoreError, StoredDocument, pages};

/// Passes on each document of a query, oldest first.
pub(super) async fn each(
    store: &dyn Store,
    query: Query,
    mut take: impl FnMut(StoredDocument),
) -> Result<(), StoreError> {
    let mut pages = pages(store, query);
    while let Some(page) = pages.next().await? {
        page.into_iter().for_each(&mut take);
    }
    Ok(())
}
