//! Reading records a page at a time, with each one that cannot be read in its place.

use crate::store::chain::ChainError;
use crate::store::{RecordFilter, SealedRecord, Store, StoreError};

/// Reads the next records, and moves the filter behind them. `None` at the end. A record that cannot be read is an error
/// in its place: those before it are read one by one.
pub(crate) async fn page(
    store: &dyn Store,
    filter: &mut RecordFilter,
) -> Result<Option<Vec<Result<SealedRecord, ChainError>>>, StoreError> {
    let (wrong, end) = match store.records(filter).await {
        Ok(records) => {
            let Some(last) = records.last() else { return Ok(None) };
            filter.after = last.position;
            return Ok(Some(records.into_iter().map(Ok).collect()));
        }
        Err(error) => unreadable(error)?,
    };
    let (mut read, mut one) = (Vec::new(), RecordFilter { limit: Some(1), ..filter.clone() });
    while let Ok(mut record) = store.records(&one).await {
        let Some(sealed) = record.pop().filter(|sealed| sealed.position < end) else { break };
        one.after = sealed.position;
        read.push(Ok(sealed));
    }
    read.push(Err(wrong));
    filter.after = end;
    Ok(Some(read))
}

/// The record that cannot be read, and its position. Any other error stays one.
fn unreadable(error: StoreError) -> Result<(ChainError, u64), StoreError> {
    let StoreError::Corrupt(source) = error else { return Err(error) };
    match source.downcast::<ChainError>() {
        Ok(wrong) => match wrong.position {
            Some(position) => Ok((*wrong, position)),
            None => Err(StoreError::Corrupt(wrong)),
        },
        Err(source) => Err(StoreError::Corrupt(source)),
    }
}
