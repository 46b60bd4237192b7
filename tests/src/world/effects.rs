//! [`Effects`]: how often each call took effect, over all processes of a test program.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tool_runtime::ToolContext;

/// How often each call took effect, by run and call.
#[derive(Debug, Default)]
pub struct Effects(Mutex<BTreeMap<(String, String), u32>>);

impl Effects {
    /// Creates a count without effects.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// Counts an effect of a call.
    pub fn happen(&self, ctx: &ToolContext) {
        let key = (ctx.run_id().to_owned(), ctx.call_id().to_string());
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default() += 1;
    }

    /// How often each call of a run took effect.
    #[must_use]
    pub fn of(&self, run: &str) -> BTreeMap<String, u32> {
        let effects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        effects.iter().filter(|((of, _), _)| of == run).map(|((_, call), times)| (call.clone(), *times)).collect()
    }
}
