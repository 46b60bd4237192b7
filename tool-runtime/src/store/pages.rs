//! [`Query::next_page`] and [`Search`]: the loops over the documents that a query lists.

use crate::store::{Finding, Query, Store, StoreError, StoredDocument};

impl Query {
    /// Returns the next page of the documents that the query lists, oldest first, and moves past it. `None` at the end.
    /// A page has at most [`limit`](Self::limit) documents.
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
        Ok(self.past(page))
    }

    /// Moves past a page. `None` if the page is empty, which is the end.
    fn past(&mut self, page: Vec<StoredDocument>) -> Option<Vec<StoredDocument>> {
        self.after = page.last()?.position;
        Some(page)
    }
}

/// A search through all documents that a query lists, up to an empty page. A document that cannot be read does not stop
/// the search. The search continues after it, and [`end`](Self::end) returns the first such [`Finding`].
#[derive(Debug)]
pub(crate) struct Search {
    /// The query of the next page. Its limit is reduced before a document that cannot be read.
    query: Query,
    limit: usize,
    failed: Result<(), StoreError>,
}

impl Search {
    pub(crate) const fn of(query: Query) -> Self {
        Self { limit: query.limit, query, failed: Ok(()) }
    }

    /// Returns the next page. `None` at the end.
    ///
    /// # Errors
    /// The store cannot be reached. The next call requests the same page again.
    pub(crate) async fn next<S: Store + ?Sized>(
        &mut self,
        store: &S,
    ) -> Result<Option<Vec<StoredDocument>>, StoreError> {
        let listed = store.list(&self.query).await;
        self.listed(listed)
    }

    /// Like [`next`](Self::next), but passes each document that cannot be read to `broken`. [`end`](Self::end) does not
    /// return it.
    pub(crate) async fn next_reporting<S: Store + ?Sized>(
        &mut self,
        store: &S,
        broken: impl FnOnce(Finding),
    ) -> Result<Option<Vec<StoredDocument>>, StoreError> {
        let listed = store.list(&self.query).await;
        self.pass(listed, |_, finding| broken(finding))
    }

    /// Returns a page that the query listed, and moves past it. `None` at the end.
    fn listed(
        &mut self,
        listed: Result<Vec<StoredDocument>, StoreError>,
    ) -> Result<Option<Vec<StoredDocument>>, StoreError> {
        self.pass(listed, |search, finding| search.note(Err(finding.into())))
    }

    /// Moves past a page, or past one document that cannot be read.
    fn pass(
        &mut self,
        listed: Result<Vec<StoredDocument>, StoreError>,
        broken: impl FnOnce(&mut Self, Finding),
    ) -> Result<Option<Vec<StoredDocument>>, StoreError> {
        let error = match listed {
            Ok(page) => {
                self.query.limit = self.query.limit.saturating_mul(2).min(self.limit);
                return Ok(self.query.past(page));
            }
            Err(error) => error,
        };
        let (finding, position) = Finding::of_error(error)?;
        if position <= self.query.after {
            return Err(finding.into());
        }
        if self.query.limit > 1 {
            // Read the documents before the unreadable one first.
            self.query.limit /= 2;
            return Ok(Some(Vec::new()));
        }
        self.query.after = position;
        broken(self, finding);
        Ok(Some(Vec::new()))
    }

    /// Stores an error about a listed document. [`end`](Self::end) returns the first such error.
    pub(crate) fn note(&mut self, result: Result<(), StoreError>) {
        self.noted(result);
    }

    /// Like [`note`](Self::note), but returns the value. `None` if there is an error.
    pub(crate) fn noted<T>(&mut self, result: Result<T, StoreError>) -> Option<T> {
        result.map_err(|error| self.failed = std::mem::replace(&mut self.failed, Ok(())).and(Err(error))).ok()
    }

    /// Ends the search.
    ///
    /// # Errors
    /// The first error that was [noted](Self::note), or the first document that could not be read.
    pub(crate) fn end(self) -> Result<(), StoreError> {
        self.failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{DocumentKind, Key, MemoryStore, Transaction};

    async fn store(documents: u64) -> MemoryStore {
        let store = MemoryStore::new();
        for number in 0..documents {
            let run = StoredDocument::example(&number.to_string(), "", None);
            let key = run.key.clone();
            let put = move |transaction: &mut Transaction| transaction.put(run.clone());
            store.update(vec![key], Box::new(put)).await.unwrap();
        }
        store
    }

    #[tokio::test]
    async fn each_document_is_in_one_page() {
        for (count, lengths) in [(0, vec![]), (1, vec![1]), (2, vec![2]), (3, vec![2, 1]), (4, vec![2, 2])] {
            let store = store(count).await;
            let mut query = Query { limit: 2, ..Query::new(DocumentKind::Run) };
            let mut search = Search::of(query.clone());
            let mut found = Vec::new();
            while let Some(page) = query.next_page(&store).await.unwrap() {
                assert_eq!(search.next(&store).await.unwrap().map(|page| page.len()), Some(page.len()));
                found.push(page.len());
            }
            assert_eq!(found, lengths, "{count}");
            assert!(query.next_page(&store).await.unwrap().is_none(), "the end stays the end");
            assert!(search.next(&store).await.unwrap().is_none());
            search.end().unwrap();
        }
    }

    /// Lists at most `most` documents, like a store that cannot read the documents at these positions.
    async fn page(
        store: &MemoryStore,
        query: &Query,
        most: usize,
        damaged: &[u64],
    ) -> Result<Vec<StoredDocument>, StoreError> {
        let listed = store.list(&Query { limit: query.limit.min(most), ..query.clone() }).await?;
        match listed.iter().find(|listed| damaged.contains(&listed.position)) {
            Some(found) => Err(Finding::unreadable_document(&found.key, Some(found.position)).into()),
            None => Ok(listed),
        }
    }

    #[tokio::test]
    async fn what_cannot_be_read_stops_no_other() {
        let store = store(40).await;
        let all = store.list(&Query::new(DocumentKind::Run)).await.unwrap();
        let places: Vec<_> = all.iter().map(|listed| listed.position).collect();
        for most in [usize::MAX, 3, 1] {
            for damaged in [vec![0], vec![39], vec![7, 8, 30], (0..40).step_by(2).collect(), (0..40).collect()] {
                let damaged: Vec<_> = damaged.into_iter().map(|index: usize| places[index]).collect();
                let mut search = Search::of(Query { limit: 16, ..Query::new(DocumentKind::Run) });
                let (mut found, mut requests) = (Vec::new(), 0);
                loop {
                    // Every other request fails, and the search stays in its place.
                    let lost = StoreError::Unavailable("lost".into());
                    assert_eq!(search.listed(Err(lost)).unwrap_err().code(), "store_unavailable");
                    requests += 1;
                    let listed = page(&store, &search.query, most, &damaged).await;
                    let Some(page) = search.listed(listed).unwrap() else { break };
                    found.extend(page.into_iter().map(|listed| listed.position));
                }
                let whole: Vec<_> = places.iter().copied().filter(|place| !damaged.contains(place)).collect();
                assert_eq!(found, whole);
                let first = Finding::of_error(search.end().unwrap_err()).unwrap().1;
                assert_eq!(first, damaged[0], "the first finding is reported at the end");
                assert!(requests < 4 * 40, "{requests}");
            }
        }
    }

    #[test]
    fn a_finding_of_an_earlier_place_ends_the_search() {
        let mut search = Search::of(Query { after: 7, ..Query::new(DocumentKind::Run) });
        let finding = Finding::unreadable_document(&Key::run("run"), Some(7));
        assert_eq!(search.listed(Err(finding.into())).unwrap_err().code(), "store_corrupt");
    }
}
