//! Whether a tool that a policy allows can run.

use crate::catalog::Entry;
use crate::policy::{ToolPolicy, Unready};
use crate::tool::Schema;

impl Entry {
    pub(super) fn unready(&self, policy: &ToolPolicy) -> Option<Unready> {
        let name = self.spec.name.as_str();
        let unpinned = Unready::of_pin(policy, name, self.spec.pin, self.policy_resource().pin);
        let rules = || {
            let mut problems = Vec::new();
            policy.check_tool(name, &self.spec, &mut problems);
            Some(Unready::Rules(problems.first()?.to_string()))
        };
        // The build of the catalog checks the tool's own allowlist.
        unpinned.or_else(rules).or_else(|| {
            let schema = || self.shown().map(Schema::to_value);
            if self.projector.is_some() { None } else { Unready::of_allowlist(policy, name, schema().as_ref()) }
        })
    }
}
