//! [`Query::next_page`]: the loop over the documents that a query lists.

use crate::store::verify::unreadable;
use crate::store::{Finding, Query, Store, StoreError, StoredDocument};

impl Query {
    /// Returns the next page of the documents that the query lists, oldest first, and moves past it. `None` at the end.
    /// A page has [`limit`](Self::limit) documents at most.
    ///
    /// ```
    /// use tool_runtime::store::{DocumentKind, MemoryStore, Query};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let store = MemoryStore::new();
    /// let mut grants = Query::new(DocumentKind::Grant);
    /// while let Some(page) = grants.next_page(&store).await? {
    ///     for grant in page.iter().filter_map(|document| document.as_grant()) {
    ///         println!("{}", grant.id);
    ///     }
    /// }
    /// # Ok::<(), tool_runtime::store::StoreError>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The store cannot be reached, or its contents cannot be read. The next call requests the same page again.
    pub async fn next_page<S: Store + ?Sized>(&mut self, store: &S) -> Result<Option<Vec<StoredDocument>>, StoreError> {
        let page = store.list(self).await?;
        let Some(last) = page.last() else { return Ok(None) };
        self.after = last.position;
        Ok(Some(page))
    }

    /// Returns the next page without documents that cannot be read, so that one of them stops no other. Each is passed
    /// to `broken`.
    pub(crate) async fn next_readable(
        &mut self,
        store: &dyn Store,
        broken: impl FnOnce(&Finding),
    ) -> Result<Option<Vec<StoredDocument>>, StoreError> {
        let (finding, end) = match self.next_page(store).await {
            Ok(page) => return Ok(page),
            Err(error) => unreadable(error)?,
        };
        broken(&finding);
        // The documents before it are read one by one.
        let (mut read, mut one) = (Vec::new(), Self { limit: 1, ..self.clone() });
        while let Ok(Some(page)) = one.next_page(store).await {
            read.extend(page.into_iter().filter(|listed| listed.position < end));
            if one.after >= end {
                break;
            }
        }
        self.after = end;
        Ok(Some(read))
    }
}

/// The part of a query that was not listed yet.
#[derive(Debug)]
pub(crate) struct Rest(Option<Query>);

impl Rest {
    pub(crate) const fn of(query: Query) -> Self {
        Self(Some(query))
    }

    /// Returns the query of the next page. `None` at the end.
    pub(crate) const fn query(&self) -> Option<&Query> {
        self.0.as_ref()
    }

    /// Moves past a page. A page that is shorter than its limit is the last one.
    pub(crate) fn after(&mut self, page: Vec<StoredDocument>) -> Option<Vec<StoredDocument>> {
        let query = self.0.as_mut()?;
        match page.last() {
            Some(last) if page.len() >= query.limit => query.after = last.position,
            _ => self.0 = None,
        }
        (!page.is_empty()).then_some(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{DocumentKind, MemoryStore, Transaction};

    #[tokio::test]
    async fn each_document_is_in_one_page() {
        let store = MemoryStore::new();
        for (count, lengths) in [(0, vec![]), (1, vec![1]), (2, vec![2]), (3, vec![2, 1]), (4, vec![2, 2])] {
            if count > 0 {
                let run = StoredDocument::example(&count.to_string(), "", None);
                let key = run.key.clone();
                let put = move |transaction: &mut Transaction| transaction.put(run.clone());
                store.update(vec![key], Box::new(put)).await.unwrap();
            }
            let mut query = Query { limit: 2, ..Query::new(DocumentKind::Run) };
            let mut found = Vec::new();
            while let Some(page) = query.next_page(&store).await.unwrap() {
                found.push(page.len());
            }
            assert_eq!(found, lengths, "{count}");
            assert!(query.next_page(&store).await.unwrap().is_none(), "the end stays the end");
        }
    }
}
