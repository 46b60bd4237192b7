//! [`StoredAnchors`]: reads the anchors of a store one after the other, past unreadable ones.

use std::collections::VecDeque;

use crate::store::anchors::only;
use crate::store::document::Anchor;
use crate::store::finding::{Finding, Wrong};
use crate::store::{Document, DocumentKind, Key, Query, Store, StoreError, StoredDocument};

/// The number of anchors that are read at a time. Each has at most a thousand heads.
const PAGE: usize = 16;

/// The number of consecutive missing anchors that is treated as the end, if the store cannot list the anchors.
const MOST_MISSING: u64 = 1000;

/// The anchors of a store, oldest first.
pub(super) struct StoredAnchors<'s> {
    store: &'s dyn Store,
    /// The query for the pages that are not listed yet. `None` once a page cannot be read: its anchors and all later
    /// ones are then read one by one, by their numbers.
    rest: Option<Query>,
    listed: VecDeque<StoredDocument>,
    /// The number of the next anchor to read by its number.
    number: u64,
    /// How many numbers directly before `number` have no anchor.
    missing: u64,
    /// Whether a finding already reports the unreadable document.
    is_named: bool,
}

impl dyn Store + '_ {
    /// Reads the anchors of the store, oldest first, and passes each of them to `each`. An anchor that cannot be read
    /// is passed as a [`Finding`] in its place. The later anchors are still read.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tool_runtime::store::{MemoryStore, Store};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    /// store
    ///     .anchors(|read| match read {
    ///         Ok(anchor) => println!("anchor {} of {}", anchor.number, anchor.at),
    ///         Err(finding) => eprintln!("{finding}"),
    ///     })
    ///     .await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The store cannot be reached.
    pub async fn anchors(&self, mut each: impl FnMut(Result<Anchor, Finding>) + Send) -> Result<(), StoreError> {
        let mut anchors = StoredAnchors::of(self);
        while let Some(read) = anchors.next().await? {
            each(read);
        }
        Ok(())
    }
}

impl<'s> StoredAnchors<'s> {
    pub(super) fn of(store: &'s dyn Store) -> Self {
        let rest = Some(Query { limit: PAGE, ..Query::new(DocumentKind::Anchor) });
        Self { store, rest, listed: VecDeque::new(), number: 0, missing: 0, is_named: false }
    }

    /// Returns the next anchor, or the defect of an anchor that cannot be read or is stored under another number.
    /// `None` at the end.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub(super) async fn next(&mut self) -> Result<Option<Result<Anchor, Finding>>, StoreError> {
        loop {
            while let Some(listed) = self.listed.pop_front() {
                if let Document::Anchor(anchor) = listed.document {
                    return Ok(Some(self.placed(&listed.key, *anchor)));
                }
            }
            let Some(rest) = &mut self.rest else { return self.by_number().await };
            match rest.next_page(self.store).await {
                Ok(None) => return Ok(None),
                Ok(Some(page)) => self.listed.extend(page),
                Err(StoreError::Corrupt(_)) => self.rest = None,
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads the next anchor by its number.
    async fn by_number(&mut self) -> Result<Option<Result<Anchor, Finding>>, StoreError> {
        while self.missing < MOST_MISSING {
            let number = self.number;
            self.number = number.saturating_add(1);
            match only(self.store, Key::anchor(number)).await {
                Ok(Some(anchor)) => {
                    self.missing = 0;
                    return Ok(Some(self.placed(&Key::anchor(number), anchor)));
                }
                Ok(None) => self.missing += 1,
                Err(StoreError::Corrupt(_)) => {
                    (self.missing, self.is_named) = (0, true);
                    return Ok(Some(Err(Wrong::Anchor { number, wrong: "it cannot be read" }.into())));
                }
                Err(error) => return Err(error),
            }
        }
        if std::mem::replace(&mut self.is_named, true) {
            return Ok(None);
        }
        match only(self.store, Key::last_anchor()).await {
            // All anchors were read. Only the copy of the last one is unreadable.
            Err(StoreError::Corrupt(_)) => Ok(None),
            last => {
                last?;
                let (number, wrong) =
                    (self.number.saturating_sub(self.missing + 1), "a document after it cannot be read");
                Ok(Some(Err(Wrong::Anchor { number, wrong }.into())))
            }
        }
    }

    fn placed(&mut self, key: &Key, anchor: Anchor) -> Result<Anchor, Finding> {
        let number = anchor.number;
        if *key != Key::anchor(number) {
            return Err(Wrong::Anchor { number, wrong: "it is stored under another number" }.into());
        }
        // A forged anchor with a much larger number must not hide the anchors before it.
        if number.checked_sub(self.number).is_some_and(|skipped| skipped < MOST_MISSING) {
            self.number = number.saturating_add(1);
        }
        Ok(anchor)
    }
}
