//! [`ToolPolicy`]: policy data, made ready to decide.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use crate::json;
use crate::policy::budget::{Budgets, ToolBudget, ToolLimits};
use crate::policy::compile::{Compiled, index};
use crate::policy::data::{Grant, PolicyData, PolicyLimits, RepairRule, RuleVerdict, ToolRule};
use crate::policy::label::LabelRule;
use crate::policy::ledger::Ledger;
use crate::policy::loop_guard::{LoopGuard, LoopThresholds};
use crate::policy::names::NameMap;
use crate::policy::parse;
use crate::policy::problem::{PolicyError, PolicyErrorKind};
use crate::tool::{Hash, ToolEffect};

/// Data that decides: which tools run, which wait for a person, what a run may spend. Cheap to clone.
///
/// ```
/// use tool_runtime::policy::ToolPolicy;
///
/// let policy = ToolPolicy::from_toml(r#"
///     allowed_tools = ["core__get_current_time", "tasks__update_task"]
///     require_approval_for_effects = ["state_change", "external_side_effect"]
///
///     [budgets.run]
///     calls = 20
/// "#)?;
/// assert_eq!(policy.data().allowed_tools.len(), 2);
///
/// let error = ToolPolicy::from_toml("allowd_tools = []").unwrap_err();
/// assert!(error.to_string().starts_with("policy, line 1, column 1: unknown field `allowd_tools`"));
/// assert!(error.to_string().ends_with("did you mean `allowed_tools`?"));
/// # Ok::<(), tool_runtime::policy::PolicyError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ToolPolicy(Arc<Ready>);

#[derive(Debug)]
struct Ready {
    data: PolicyData,
    index: NameMap<Compiled>,
    limits: ToolLimits,
    approved_effects: [bool; 3],
    revision: OnceLock<Hash>,
}

impl ToolPolicy {
    /// Makes data ready.
    #[must_use]
    pub fn new(data: PolicyData) -> Self {
        let index = index(&data);
        let limits = data.budgets.limits_of(None, &data.limits);
        let approved_effects = [ToolEffect::ReadOnly, ToolEffect::StateChange, ToolEffect::ExternalSideEffect]
            .map(|effect| data.require_approval_for_effects.contains(&effect));
        Self(Arc::new(Ready { data, index, limits, approved_effects, revision: OnceLock::new() }))
    }

    /// The policy of somebody who wrote none.
    #[must_use]
    pub fn deny_all() -> Self {
        Self::new(PolicyData::default())
    }

    /// Allows these tools, by exact name, and nothing else.
    #[must_use]
    pub fn allow<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Self {
        Self::new(PolicyData { allowed_tools: names.into_iter().map(Into::into).collect(), ..PolicyData::default() })
    }

    /// Reads a policy from TOML.
    pub fn from_toml(text: &str) -> Result<Self, PolicyError> {
        parse::toml(text).map(Self::new)
    }

    /// Reads a policy from JSON.
    pub fn from_json(text: &str) -> Result<Self, PolicyError> {
        parse::json(text).map(Self::new)
    }

    /// Reads a policy from a file named `*.toml` or `*.json`.
    pub fn from_path(path: impl AsRef<Path>) -> Result<Self, PolicyError> {
        let path = path.as_ref();
        read(path).map_err(|error| error.in_file(path))
    }

    /// The policy as it was written.
    #[must_use]
    pub fn data(&self) -> &PolicyData {
        &self.0.data
    }

    /// SHA-256 of the policy's canonical text. An approval holds for one revision.
    #[must_use]
    pub fn revision(&self) -> Hash {
        *self.0.revision.get_or_init(|| {
            // Fields have one order and every collection in them is sorted, so this text is canonical. It cannot
            // fail to be written; if it did, no approval would ever match another policy's.
            let text = serde_json::to_vec(&self.0.data).unwrap_or_default();
            json::digest(text)
        })
    }

    /// What one call of this tool may use.
    #[must_use]
    pub fn limits_of(&self, name: &str) -> ToolLimits {
        self.compiled(name).and_then(|compiled| compiled.limits).unwrap_or(self.0.limits)
    }

    /// Some principal may be allowed this tool: it is in `allowed_tools`, or a role, principal or tenant has it.
    #[must_use]
    pub fn mentions(&self, name: &str) -> bool {
        let allows = |compiled: &Compiled| compiled.allowed || compiled.grants.iter().any(|grant| grant.allow);
        self.compiled(name).is_some_and(allows)
    }

    /// The rules for this tool alone.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&ToolRule> {
        self.0.data.tools.get(name)
    }

    /// An empty ledger for a new run.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        Ledger::new(self.0.data.budgets.run)
    }

    /// A guard for a new run.
    #[must_use]
    pub fn loop_guard(&self) -> LoopGuard {
        LoopGuard::new(self.0.data.loop_guard)
    }

    /// Adds effects whose calls wait for a person.
    #[must_use]
    pub fn with_approval_for_effects(self, effects: impl IntoIterator<Item = ToolEffect>) -> Self {
        self.edit(|data| data.require_approval_for_effects.extend(effects))
    }

    /// Adds tools whose calls wait for a person.
    #[must_use]
    pub fn with_approval_for_tools<S: Into<String>>(self, names: impl IntoIterator<Item = S>) -> Self {
        self.edit(|data| data.require_approval_for_tools.extend(names.into_iter().map(Into::into)))
    }

    /// Sets what one call and one run may spend.
    #[must_use]
    pub fn with_budgets(self, budgets: Budgets) -> Self {
        self.edit(|data| data.budgets = budgets)
    }

    /// Sets what one call of this tool may use.
    #[must_use]
    pub fn with_tool_budget(self, name: impl Into<String>, budget: ToolBudget) -> Self {
        self.edit(|data| {
            data.budgets.tools.insert(name.into(), budget);
        })
    }

    /// Sets what a role adds and takes away.
    #[must_use]
    pub fn with_role(self, role: impl Into<String>, grant: Grant) -> Self {
        self.edit(|data| {
            data.roles.insert(role.into(), grant);
        })
    }

    /// Sets where a label comes from and what it means.
    #[must_use]
    pub fn with_label(self, label: impl Into<String>, rule: LabelRule) -> Self {
        self.edit(|data| {
            data.labels.insert(label.into(), rule);
        })
    }

    /// Sets what a tag means.
    #[must_use]
    pub fn with_tag(self, tag: impl Into<String>, verdict: RuleVerdict) -> Self {
        self.edit(|data| {
            data.tags.insert(tag.into(), verdict);
        })
    }

    /// Sets the rules for this tool alone.
    #[must_use]
    pub fn with_tool(self, name: impl Into<String>, rule: ToolRule) -> Self {
        self.edit(|data| {
            data.tools.insert(name.into(), rule);
        })
    }

    /// Sets whether malformed arguments may be repaired.
    #[must_use]
    pub fn with_repair(self, repair: RepairRule) -> Self {
        self.edit(|data| data.repair = repair)
    }

    /// Sets when repeated calls are stopped.
    #[must_use]
    pub fn with_loop_guard(self, thresholds: LoopThresholds) -> Self {
        self.edit(|data| data.loop_guard = thresholds)
    }

    /// Sets the size limits.
    #[must_use]
    pub fn with_limits(self, limits: PolicyLimits) -> Self {
        self.edit(|data| data.limits = limits)
    }

    /// Sets how many `read_only` calls of one turn run at the same time; 0 counts as 1.
    #[must_use]
    pub fn with_parallel(self, calls: usize) -> Self {
        self.edit(|data| data.parallel = calls.max(1))
    }

    pub(super) fn compiled(&self, name: &str) -> Option<&Compiled> {
        self.0.index.get(name)
    }

    pub(super) fn approves(&self, effect: ToolEffect) -> bool {
        let [read_only, state_change, external_side_effect] = self.0.approved_effects;
        match effect {
            ToolEffect::ReadOnly => read_only,
            ToolEffect::StateChange => state_change,
            ToolEffect::ExternalSideEffect => external_side_effect,
        }
    }

    fn edit(self, change: impl FnOnce(&mut PolicyData)) -> Self {
        let mut data = self.0.data.clone();
        change(&mut data);
        Self::new(data)
    }
}

fn read(path: &Path) -> Result<ToolPolicy, PolicyError> {
    let format = match path.extension().and_then(|extension| extension.to_str()) {
        Some("toml") => ToolPolicy::from_toml,
        Some("json") => ToolPolicy::from_json,
        _ => {
            let message = "name the file `*.toml` or `*.json`, after what it holds".to_owned();
            return Err(PolicyError::new(PolicyErrorKind::Format, None, message));
        }
    };
    let bytes = std::fs::read(path).map_err(|error| {
        let (kind, message) = match error.kind() {
            std::io::ErrorKind::NotFound => {
                (PolicyErrorKind::Missing, "there is no such file; write one, or correct the path".to_owned())
            }
            _ => (PolicyErrorKind::Unreadable, format!("the file cannot be read ({error}); check its permissions")),
        };
        PolicyError::new(kind, None, message)
    })?;
    format(parse::utf8(&bytes)?)
}

impl PartialEq for ToolPolicy {
    fn eq(&self, other: &Self) -> bool {
        self.0.data == other.0.data
    }
}

impl Serialize for ToolPolicy {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.data.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ToolPolicy {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parse::table(deserializer).map(Self::new)
    }
}
