//! [`Settings`]: what hydration needs from its surroundings.

use std::sync::{Arc, Mutex};

use crate::call::RunFields;
use crate::catalog::CompiledCatalog;
use crate::contain::caught;
use crate::hydrate::{EvidenceSet, Repairer, repair};
use crate::json;
use crate::policy::ToolLimits;

/// What hydration needs from its surroundings.
pub(crate) struct Settings<'a> {
    /// The deepest nesting of arguments that is read.
    pub(crate) depth: usize,
    /// What one call of the tool may use.
    pub(crate) of_tool: ToolLimits,
    /// The run that hydrates.
    pub(crate) run: &'a Arc<RunFields>,
    pub(crate) compiled: &'a CompiledCatalog,
    /// Whether the model of this run can call a tool, so that a hint may name it.
    pub(crate) lists: &'a dyn Fn(&str) -> bool,
    /// The longest call id that is taken, in bytes.
    pub(crate) call_id_bytes: usize,
    /// Those of the application, beside the built-in ones.
    pub(crate) repairers: &'a [Arc<dyn Repairer>],
    /// Whether the policy allows one of them, by name. There is one attempt at most.
    pub(crate) repairs: &'a dyn Fn(&str) -> bool,
    /// What was seen in this run.
    pub(crate) evidence: Option<&'a Mutex<EvidenceSet>>,
    /// Whether the caller wants to know how the call was read.
    pub(crate) provenance: bool,
}

impl Settings<'_> {
    /// The one attempt: the first allowed repairer that knows what to do.
    pub(super) fn repair(&self, text: &str, error: &json::ParseError) -> Option<repair::Repaired> {
        if error.kind.is_limit() {
            return None;
        }
        let own = self.repairers.iter().map(AsRef::as_ref);
        let all = own.chain(repair::BUILT_IN);
        // A repairer may be the application's.
        caught(|| repair::attempt(all.filter(|one| (self.repairs)(one.name())), text))?
    }
}
