//! [`Shared`]: the parts that all runs of a runner share.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::call::{ToolExecResult, Verdict};
use crate::capability::{Capabilities, ConnectionBroker, NameLookup};
use crate::catalog::{CatalogView, CompiledCatalog, Entry, ToolCatalog};
use crate::contain::discard;
use crate::hydrate::repair::Repair;
use crate::policy::{PolicyContext, RunPolicy, ToolPolicy};
use crate::runner::ledger::digests::Digests;
use crate::runner::report::contained::Contained;
use crate::runner::report::failure::Failures;
use crate::runner::run::views::Views;
use crate::store::{Clock, Store, StoreClock};
use crate::tool::Hash;
#[cfg(feature = "agent")]
use crate::tool::Hashing;

/// The look-ups that turn the ids in an argument into names for an approver, by tool and argument.
pub(super) type Lookups<L> = BTreeMap<(Arc<str>, Arc<str>), L>;

/// The parts that all runs of a runner share. Parts that the application wrote are called only through [`Contained`],
/// which catches their panics.
pub(super) struct Shared {
    /// The store that [`ToolRunner::store`](super::ToolRunner::store) returns. Unlike `store`, it never corrects the
    /// clock.
    pub(super) store_of_application: Arc<dyn Store>,
    /// Whether the store is the default one in memory, which no other process can reach.
    #[cfg_attr(not(feature = "mcp-server"), expect(dead_code, reason = "only a server reads it"))]
    pub(super) store_is_own: bool,
    pub(super) catalog: Arc<ToolCatalog>,
    pub(super) policy: ToolPolicy,
    pub(super) capabilities: Capabilities,
    pub(super) broker: Option<Contained<dyn ConnectionBroker>>,
    pub(super) approvals: bool,
    pub(super) approval_ttl: Duration,
    /// How long other processes treat a call in the ledger as running after its last renewal.
    pub(super) lease: Duration,
    /// The id of this runner, unique among the runners of the store. The ids of its attempts start with it.
    pub(super) owner: String,
    /// The number of attempts so far.
    pub(super) attempts: AtomicU64,
    pub(super) store: Contained<dyn Store>,
    pub(super) digests: Digests,
    pub(super) clock: Contained<dyn Clock>,
    /// The same clock as `clock`, if the store's time corrects it.
    pub(super) store_clock: Option<Arc<StoreClock>>,
    pub(super) compiled: CompiledCatalog,
    /// The cache of the tools that runs may see.
    pub(super) views: Views,
    pub(super) repairers: Vec<(String, Arc<Repair>)>,
    pub(super) names: Lookups<Contained<dyn NameLookup>>,
    pub(super) failures: Failures,
    /// The hash of catalog and policy, computed on first use.
    #[cfg_attr(not(feature = "agent"), expect(dead_code, reason = "only conversations have a version"))]
    pub(super) version: OnceLock<Hash>,
    /// Whether spans show masked arguments and projected results.
    pub(super) span_values: bool,
}

/// Drops the adapters with `discard`, which catches panics in their destructors.
impl Drop for Shared {
    fn drop(&mut self) {
        discard(std::mem::take(&mut self.capabilities));
    }
}

impl Shared {
    /// Returns the hash of the policy and of the definitions that the catalog had when it was built. Tools that MCP
    /// servers publish later do not change it; the policy pins their definitions.
    #[cfg(feature = "agent")]
    pub(super) fn version(&self) -> Hash {
        *self.version.get_or_init(|| {
            let mut hashing = Hashing::default();
            hashing.update(&self.policy.revision().0);
            for entry in self.catalog.fixed_entries() {
                hashing.update(entry.spec.name.as_str().as_bytes());
                hashing.update(&entry.spec.definition_hash.0);
                if let Some(instructions) = entry.graph.as_ref().and_then(|graph| graph.instructions) {
                    hashing.update(&instructions.0);
                }
            }
            hashing.finish()
        })
    }

    /// Returns the id of the next attempt at a call, unique across all processes.
    pub(super) fn attempt(&self) -> Arc<str> {
        format!("{}-{}", self.owner, self.attempts.fetch_add(1, Ordering::Relaxed)).into()
    }

    /// Whether this runner uses the store's time and has not read it yet.
    #[inline]
    pub(super) fn is_undated(&self) -> bool {
        self.store_clock.as_ref().is_some_and(|clock| !clock.is_known())
    }

    /// Reads the store's time. If the store cannot be reached, the clock keeps the machine's time.
    pub(super) async fn date(&self) {
        if let Err(error) = self.store.now().await {
            discard(error);
        }
    }

    /// Converts a required approval into a denial if no approval can be given.
    pub(super) const fn effective(&self, verdict: Verdict) -> Verdict {
        match verdict {
            Verdict::RequireApproval if !self.approvals => Verdict::Deny,
            verdict => verdict,
        }
    }

    /// Returns the tools that the model of a run with this context may see.
    pub(super) fn view(&self, policy: &RunPolicy, context: &PolicyContext<'_>) -> Arc<CatalogView> {
        self.views.of(&self.catalog, policy, context, |entry| self.visible(policy, context, entry))
    }

    /// Whether the model of a run with this context may see the tool.
    fn visible(&self, policy: &RunPolicy, context: &PolicyContext<'_>, entry: &Entry) -> bool {
        self.effective(policy.admit(context, &entry.policy_resource()).verdict) != Verdict::Deny
    }
}

/// The argument of [`ToolRunner::exec`](super::ToolRunner::exec). No type implements it: calls need the principal and
/// the budgets of a run.
#[diagnostic::on_unimplemented(
    message = "a runner executes no calls; a run does",
    label = "needs a run",
    note = "write `runner.run(RunOptions::new().principal(..)).exec(call)`, and keep the run for the whole conversation"
)]
pub trait OfARun {
    #[doc(hidden)]
    fn never(self) -> ToolExecResult;
}
