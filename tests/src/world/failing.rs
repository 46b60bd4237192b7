//! A store that fails on demand.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tool_runtime::store::{Store, StoreError};

use super::{HookAction, HookedStore};

/// Makes a store fail on demand.
#[derive(Clone, Default)]
pub struct Fault(Arc<AtomicBool>);

impl Fault {
    /// Wraps a store. While it fails, every method except `append` returns an error.
    #[must_use]
    pub fn over(&self, store: Arc<dyn Store>) -> HookedStore {
        let failing = Arc::clone(&self.0);
        HookedStore::new(store, move |method| {
            if failing.load(Ordering::Acquire) && method != "append" {
                return HookAction::Fail(StoreError::Unavailable("the disk is gone".into()));
            }
            HookAction::Pass
        })
    }

    /// Sets whether it fails.
    pub fn fail(&self, failing: bool) {
        self.0.store(failing, Ordering::Release);
    }
}
