//! Pages through documents of a store.

use crate::store::{Query, Store, StoreError, StoredDocument};

/// Hands out each document of a query, oldest first.
pub(super) async fn each(
    store: &dyn Store,
    mut query: Query,
    mut take: impl FnMut(StoredDocument),
) -> Result<(), StoreError> {
    loop {
        let page = store.list(&query).await?;
        let next = page.last().filter(|_| page.len() >= query.limit).map(|listed| listed.position);
        page.into_iter().for_each(&mut take);
        let Some(next) = next else { return Ok(()) };
        query.after = next;
    }
}
