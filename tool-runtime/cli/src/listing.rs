//! Pages through documents of a store.

use tool_runtime::store::{Query, Store, StoreError, StoredDocument};

/// Passes on each document of a query, oldest first.
pub(super) async fn each(
    store: &dyn Store,
    mut query: Query,
    mut take: impl FnMut(StoredDocument),
) -> Result<(), StoreError> {
    while let Some(page) = query.next_page(store).await? {
        page.into_iter().for_each(&mut take);
    }
    Ok(())
}
