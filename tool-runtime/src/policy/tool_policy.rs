//! [`ToolPolicy`]: policy data, compiled for decisions.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use crate::error::BuildError;
use crate::json;
use crate::policy::budget::ToolLimits;
use crate::policy::cedar::CedarRules;
use crate::policy::compile::{Compiled, index};
use crate::policy::data::{PolicyData, ToolRule};
use crate::policy::names::{NameMap, ToolNames};
use crate::policy::parse;
use crate::policy::problem::PolicyErrorKind;
use crate::policy::read;
use crate::policy::terms::Terms;
use crate::policy::toml_text;
use crate::tool::{Hash, Redaction, ToolEffect, ToolSpec, graph_of};

/// The longest file that is read as a policy, in bytes.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// The rules of an application, as data: allowed tools, calls that wait for a person, budgets. Cheap to clone.
///
/// ```
/// use tool_runtime::ToolPolicy;
///
/// let policy = ToolPolicy::from_toml(r#"
///     allowed_tools = ["core__get_current_time", "tasks__update_task"]
///     require_approval_for_effects = ["state_change", "external_side_effect"]
///
///     [budgets.run]
///     calls = 20
/// "#)?;
/// assert!(policy.mentions("tasks__update_task"));
///
/// let error = ToolPolicy::from_toml("allowd_tools = []").unwrap_err();
/// assert!(error.to_string().starts_with("policy, line 1, column 1: unknown field `allowd_tools`"));
/// assert!(error.to_string().ends_with("did you mean `allowed_tools`?"));
/// # Ok::<(), tool_runtime::error::BuildError>(())
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
    /// Compiles the data.
    pub(crate) fn new(data: PolicyData) -> Self {
        let index = index(&data);
        let limits = data.limits_of(None);
        let approved_effects = ToolEffect::ALL.map(|effect| data.require_approval_for_effects.contains(&effect));
        Self(Arc::new(Ready { data, index, limits, approved_effects, revision: OnceLock::new() }))
    }

    /// Returns the allowlist of a tool's output under this policy. An allowlist in the policy replaces the tool's own;
    /// [`RunnerBuilder::build`](crate::runner::RunnerBuilder::build) fails if it names a path that the tool's own does
    /// not have. A tool of an MCP server has no allowlist of its own.
    #[must_use]
    pub fn redaction_of(&self, spec: &ToolSpec) -> Redaction {
        let rule = self.tool(spec.name.as_str()).filter(|_| self.is_as_pinned(spec));
        match rule.and_then(|rule| Some((rule.redact.clone()?, rule.model.clone()))) {
            Some((allow, model)) => Redaction { allow, model, prepare: spec.redaction.prepare.clone() },
            None => spec.redaction.clone(),
        }
    }

    /// Creates a policy that denies everything.
    #[must_use]
    pub fn deny_all() -> Self {
        Self::new(PolicyData::default())
    }

    /// Creates a policy that allows these tools, by exact name, and nothing else.
    #[must_use]
    pub fn allow(names: impl ToolNames) -> Self {
        Self::new(PolicyData { allowed_tools: names.into_names(), ..PolicyData::default() })
    }

    /// Creates a policy that allows these tools and graphs, by the names of their tools.
    pub(crate) fn allow_all<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        let mut data = PolicyData::default();
        for name in names {
            match graph_of(name) {
                Some(graph) => data.allowed_graphs.insert(graph.to_owned()),
                None => data.allowed_tools.insert(name.to_owned()),
            };
        }
        Self::new(data)
    }

    /// Reads a policy from TOML, with the feature `toml`.
    ///
    /// # Errors
    /// The text is not TOML, or has an unknown key or an invalid value.
    #[cfg(feature = "toml")]
    pub fn from_toml(text: &str) -> Result<Self, BuildError> {
        toml_text::read(text).map(Self::new)
    }

    /// Needs the feature `toml`. Without it, no call compiles, because no type is [`TomlText`](toml_text::TomlText).
    ///
    /// # Errors
    /// Always: this build reads no TOML.
    #[cfg(not(feature = "toml"))]
    pub fn from_toml(text: &(impl toml_text::TomlText + ?Sized)) -> Result<Self, BuildError> {
        toml_text::read(text.as_ref()).map(Self::new)
    }

    /// Reads a policy from JSON.
    ///
    /// # Errors
    /// The text is not JSON, or has an unknown key or an invalid value.
    pub fn from_json(text: &str) -> Result<Self, BuildError> {
        read::json(text).map(Self::new)
    }

    /// Reads a policy from a file named `*.toml` or `*.json`.
    ///
    /// # Errors
    /// The file cannot be read, is longer than 4 MiB, has another name, or contains no policy. A build without the
    /// feature `toml` refuses `*.toml`.
    pub fn from_path(path: impl AsRef<Path>) -> Result<Self, BuildError> {
        let path = path.as_ref();
        file(path).map_err(|error| error.in_file(path))
    }

    /// Returns the policy as it was written.
    pub(crate) fn data(&self) -> &PolicyData {
        &self.0.data
    }

    /// Returns the policy with notices that list only the arguments that this policy and `other` list.
    pub(super) fn listing_as(&self, other: &Self) -> Self {
        let listed = (&self.data().notices, &other.data().notices);
        let notices = if let (Some(own), Some(other)) = listed { Some(own.listing_as(other)) } else { None };
        Self::new(PolicyData { notices, ..self.data().clone() })
    }

    /// Returns the SHA-256 of the policy's canonical text. It leaves out `notices`, which affect no decision. An
    /// approval is valid for one revision.
    #[must_use]
    pub fn revision(&self) -> Hash {
        *self.0.revision.get_or_init(|| {
            // Fields have a fixed order and every collection in them is sorted, so this text is canonical. Writing it
            // cannot fail.
            let text = match &self.0.data.notices {
                None => serde_json::to_vec(&self.0.data),
                Some(_) => serde_json::to_vec(&PolicyData { notices: None, ..self.0.data.clone() }),
            };
            let text = text.unwrap_or_default();
            json::digest(text)
        })
    }

    /// Returns the rules that apply to every call of a tool.
    pub(crate) fn terms_of(&self, name: &str, declared: ToolEffect) -> Terms {
        let compiled = self.compiled(name);
        Terms {
            effect: compiled.map_or(declared, |compiled| compiled.effect_of(name, declared)),
            limits: compiled.and_then(|compiled| compiled.limits).unwrap_or(self.0.limits),
            has_argument_rules: self.data().cedar.is_some()
                || compiled.is_some_and(|compiled| !compiled.arguments.is_empty()),
        }
    }

    /// Returns the maximum number of `read_only` calls of one turn that may run at the same time, at least 1. An agent
    /// can set a lower number.
    #[must_use]
    pub fn parallel(&self) -> usize {
        self.0.data.parallel.max(1)
    }

    /// Whether some run may call this tool. The policy allows it to every run, or to a role, principal, attribute or
    /// tenant, and no rule disables its server.
    #[must_use]
    pub fn mentions(&self, name: &str) -> bool {
        let allows = |compiled: &Compiled| compiled.allowed || compiled.grants.iter().any(|grant| grant.allow);
        self.compiled(name).is_some_and(|compiled| compiled.disabled.is_none() && allows(compiled))
    }

    /// Returns the names of the tools that some run may call.
    pub(crate) fn mentioned(&self) -> impl Iterator<Item = &str> {
        self.0.index.keys().map(|name| &**name).filter(|name| self.mentions(name))
    }

    /// Returns the roles for which the policy adds or removes tools, and the roles in its Cedar policies. The roles of
    /// deciders are in [`decider_roles`](Self::decider_roles).
    #[must_use]
    pub fn roles(&self) -> BTreeSet<&str> {
        let data = self.data();
        let within = data.tenants.values().flat_map(|tenant| tenant.roles.keys());
        let cedar = data.cedar.iter().flat_map(CedarRules::roles);
        data.roles.keys().chain(within).chain(cedar).map(String::as_str).collect()
    }

    /// Returns the attributes of principals that the policy names.
    pub(crate) fn attributes(&self) -> BTreeSet<&str> {
        let cedar = self.data().cedar.iter().flat_map(CedarRules::attributes);
        self.data().attributes.keys().chain(cedar).map(String::as_str).collect()
    }

    /// Returns whether the principal of a run may decide on the run's waiting calls of a tool, and the roles for
    /// deciders. A decider needs one of the roles; `None` requires none. `effect` is the tool's effect under the
    /// policy, see [`effect_of`](Self::effect_of).
    #[must_use]
    pub fn deciders(&self, tool: &str, effect: ToolEffect) -> (bool, Option<&BTreeSet<String>>) {
        self.data().approvals.of(tool, effect)
    }

    /// Returns the principals who may decide on waiting calls of a tool. `None` if the policy names none.
    #[must_use]
    pub fn decider_principals(&self, tool: &str, effect: ToolEffect) -> Option<&BTreeSet<String>> {
        self.data().approvals.principals_of(tool, effect)
    }

    /// Returns how many different deciders have to approve a call of a tool that waits because of `rules`, which
    /// [`explain`](Self::explain) returns. `effect` is the tool's effect under the policy.
    #[must_use]
    pub fn required_approvals<'r>(
        &self,
        tool: &str,
        effect: ToolEffect,
        rules: impl IntoIterator<Item = &'r str>,
    ) -> u32 {
        self.data().approvals.required(tool, effect, rules)
    }

    /// Returns the roles of deciders that the policy names.
    #[must_use]
    pub fn decider_roles(&self) -> BTreeSet<&str> {
        self.data().approvals.named_roles().map(String::as_str).collect()
    }

    /// Returns the rules for this tool alone.
    pub(crate) fn tool(&self, name: &str) -> Option<&ToolRule> {
        self.0.data.tools.get(name)
    }

    /// Adds effects whose calls wait for a person.
    #[must_use]
    pub fn with_approval_for_effects(self, effects: impl IntoIterator<Item = ToolEffect>) -> Self {
        self.edit(|data| data.require_approval_for_effects.extend(effects))
    }

    /// Sets how many different deciders have to approve each call that waits for a person.
    /// [`RunnerBuilder::build`](crate::runner::RunnerBuilder::build) fails for a number outside 1 to 16.
    #[must_use]
    pub fn with_required_approvals(self, number: u32) -> Self {
        self.edit(|data| data.approvals.required = Some(number))
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

fn file(path: &Path) -> Result<ToolPolicy, BuildError> {
    let format = match path.extension().and_then(|extension| extension.to_str()) {
        Some("toml") => toml_text::read,
        Some("json") => read::json,
        _ => {
            let message = "name the file `*.toml` or `*.json`, after its format".to_owned();
            return Err(PolicyErrorKind::Format.error(None, message));
        }
    };
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes));
    read.map_err(|error| {
        let (kind, message) = match error.kind() {
            std::io::ErrorKind::NotFound => {
                (PolicyErrorKind::Missing, "the file does not exist; write one, or correct the path".to_owned())
            }
            _ => (PolicyErrorKind::Unreadable, format!("the file cannot be read ({error}); check its permissions")),
        };
        kind.error(None, message)
    })?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        let message = "the file is larger than 4 MiB, too large for a policy; correct the path".to_owned();
        return Err(PolicyErrorKind::Unreadable.error(None, message));
    }
    format(read::utf8(&bytes)?).map(ToolPolicy::new)
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
