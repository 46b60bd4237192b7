//! Pages through documents of a store.

use tool_runtime::store::{Listed, Query, Store, StoreError};

/// Hands out each document of a query, oldest first.
pub(super) async fn each(store: &dyn Store, mut query: Query, mut take: impl FnMut(Listed)) -> Result<(), StoreError> {
    loop {
        let page = store.list(&query).await?;
        let next = page.last().filter(|_| page.len() >= query.limit).map(|listed| listed.position);
        page.into_iter().for_each(&mut take);
        let Some(next) = next else { return Ok(()) };
        query.after = next;
    }
}
