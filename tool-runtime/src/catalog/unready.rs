//! Whether tools that a policy allows can run.

use std::collections::BTreeMap;

use crate::catalog::{Entry, ToolCatalog};
use crate::policy::{ToolPolicy, Unready};
use crate::tool::{Schema, is_discovered};

impl ToolCatalog {
    /// Returns why no call of a tool can run under this policy, whatever its arguments and its caller. `None` if the
    /// policy can allow a call, and for a name without a server's prefix that no tool has.
    ///
    /// ```
    /// use tool_runtime::policy::Unready;
    /// use tool_runtime::{ToolCatalog, ToolError, ToolPolicy, tool};
    /// # /// Adds.
    /// # #[tool(name = "math__add", effect = read_only, redact = ["$"])]
    /// # fn add(
    /// #     /// One.
    /// #     a: i64,
    /// # ) -> Result<i64, ToolError> { Ok(a) }
    ///
    /// let catalog = ToolCatalog::builder().tool::<add>().build()?;
    /// let policy = ToolPolicy::allow(["math__add", "mcp__files__read"]);
    /// assert_eq!(catalog.unready(&policy, "math__add"), None);
    /// assert_eq!(catalog.unready(&policy, "mcp__files__read"), Some(Unready::Unlisted));
    /// assert_eq!(catalog.all_unready(&policy).len(), 1);
    /// # Ok::<(), tool_runtime::catalog::CatalogError>(())
    /// ```
    #[must_use]
    pub fn unready(&self, policy: &ToolPolicy, name: &str) -> Option<Unready> {
        let server = self.servers().iter().find(|server| name.starts_with(server.server().prefix()));
        let of_server = || server.and_then(|server| server.server().unready(name));
        match self.entry(name) {
            Some(entry) => entry.unready(policy).or_else(of_server),
            None if is_discovered(name) => of_server().or(Some(Unready::Unlisted)),
            None => None,
        }
    }

    /// Returns the tools that the policy may allow but that no call can run, each with the reason.
    #[must_use]
    pub fn all_unready(&self, policy: &ToolPolicy) -> BTreeMap<String, Unready> {
        policy.mentioned().filter_map(|name| Some((name.to_owned(), self.unready(policy, name)?))).collect()
    }
}

impl Entry {
    fn unready(&self, policy: &ToolPolicy) -> Option<Unready> {
        let name = self.spec.name.as_str();
        let unpinned = policy.unpinned(name, self.spec.pin, self.subject().pin);
        let rules = || {
            let mut problems = Vec::new();
            policy.check_tool(name, &self.spec, &mut problems);
            Some(Unready::Rules(problems.first()?.to_string()))
        };
        // An allowlist of its own is checked when the catalog is built.
        unpinned.or_else(rules).or_else(|| {
            let schema = || self.shown().map(Schema::to_value);
            if self.projector.is_some() { None } else { policy.unshown(name, schema().as_ref()) }
        })
    }
}
