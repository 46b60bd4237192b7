//! [`Settings`]: the limits and helpers of a hydration.

use std::sync::{Arc, Mutex};

use crate::call::RunFields;
use crate::catalog::CompiledCatalog;
use crate::contain::caught;
use crate::hydrate::{EvidenceSet, repair};
use crate::json;
use crate::policy::ToolLimits;

/// The limits and helpers of a hydration.
pub(crate) struct Settings<'a> {
    /// The maximum depth of arguments.
    pub(crate) depth: usize,
    /// The limits of one call of the tool.
    pub(crate) of_tool: ToolLimits,
    /// The run that hydrates the call.
    pub(crate) run: &'a Arc<RunFields>,
    pub(crate) compiled: &'a CompiledCatalog,
    /// Returns whether the model of this run can call a tool, so that hints may name it.
    pub(crate) lists: &'a dyn Fn(&str) -> bool,
    /// The maximum number of bytes of a call id.
    pub(crate) call_id_bytes: usize,
    /// The application's repairers by name, in addition to the built-in ones.
    pub(crate) repairers: &'a [(String, Arc<repair::Repair>)],
    /// Returns whether the policy allows a repairer, by its name.
    pub(crate) repairs: &'a dyn Fn(&str) -> bool,
    /// The ids that this run has seen in results and in the user's texts.
    pub(crate) evidence: Option<&'a Mutex<EvidenceSet>>,
    /// Whether the caller requests the provenance: how the call was changed and checked.
    pub(crate) provenance: bool,
}

impl Settings<'_> {
    /// Makes the only attempt at a repair, with the repairers that the policy allows.
    pub(super) fn repair(&self, text: &str, error: &json::ParseError) -> Option<repair::Repaired> {
        if error.kind.is_limit() {
            return None;
        }
        let own = self.repairers.iter().map(|(name, repair)| (name.as_str(), &**repair));
        let all = own.chain(repair::built_in());
        // An application's repairer may panic.
        caught(|| repair::attempt(all.filter(|(name, _)| (self.repairs)(name)), text))?
    }
}
