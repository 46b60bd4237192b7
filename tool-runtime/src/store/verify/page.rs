//! Reads records a page at a time, with an error in the place of each unreadable record.

use crate::store::{Finding, RecordFilter, SealedRecord, Store, StoreError};

impl RecordFilter {
    /// Returns the next page of records, and moves [`after`](Self::after) past them. `None` at the end. A record that
    /// cannot be read is an error in its place, and the records around it are still read. The page length is the
    /// [`limit`](Self::limit), so set one.
    ///
    /// ```
    /// use tool_runtime::store::{MemoryStore, RecordFilter};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let (store, mut filter) = (MemoryStore::new(), RecordFilter { limit: Some(500), ..RecordFilter::default() });
    /// while let Some(page) = filter.next_page(&store).await? {
    ///     for record in page {
    ///         match record {
    ///             Ok(sealed) => println!("{}", sealed.record.code()),
    ///             Err(unreadable) => eprintln!("{unreadable}"),
    ///         }
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The store cannot be reached.
    pub async fn next_page(
        &mut self,
        store: &dyn Store,
    ) -> Result<Option<Vec<Result<SealedRecord, Finding>>>, StoreError> {
        let (mut wrong, mut end) = match store.records(self).await {
            Ok(records) => {
                let Some(last) = records.last() else { return Ok(None) };
                self.after = last.position;
                return Ok(Some(records.into_iter().map(Ok).collect()));
            }
            Err(error) => Finding::of_error(error)?,
        };
        // Read the records before the unreadable one, one at a time.
        let (mut read, mut one) = (Vec::new(), Self { limit: Some(1), ..self.clone() });
        loop {
            match store.records(&one).await {
                Ok(mut record) => {
                    let Some(sealed) = record.pop().filter(|sealed| sealed.position < end) else { break };
                    one.after = sealed.position;
                    read.push(Ok(sealed));
                }
                Err(error) => {
                    (wrong, end) = Finding::of_error(error)?;
                    break;
                }
            }
        }
        read.push(Err(wrong));
        self.after = end;
        Ok(Some(read))
    }
}
