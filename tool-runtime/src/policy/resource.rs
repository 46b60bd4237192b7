//! The inputs of a policy decision: the run ([`PolicyContext`]) and the tool ([`PolicyResource`]).

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::call::Caller;
use crate::tool::{Hash, NoSchemaMode, Schema, ToolEffect, ToolSpec};

/// The properties of a run that a policy can read. They are borrowed, so that a decision usually does not allocate.
///
/// [`ToolPolicy::decide`](crate::ToolPolicy::decide) has an example.
#[derive(Debug, Clone, Copy)]
pub struct PolicyContext<'a> {
    /// The id of the run. No rule of a policy reads it.
    pub run: &'a str,
    /// The source of the run's calls.
    pub caller: &'a Caller,
    /// The principal that the run acts for.
    pub principal: Option<&'a str>,
    /// The principal's attributes: pairs of a name and a value, several for an attribute with several values.
    pub attributes: &'a [(Arc<str>, Arc<str>)],
    /// The tenant that the run belongs to.
    pub tenant: Option<&'a str>,
    /// The principal's roles.
    pub roles: &'a [Arc<str>],
    /// The run's current trust labels: marks that a run gets, for example from results of tools, and never loses.
    pub labels: &'a [Arc<str>],
    /// The only tools that the run may use; `None` if the run sets no such list.
    pub tools: Option<&'a BTreeSet<Box<str>>>,
}

impl Default for PolicyContext<'_> {
    /// A direct call of a run without a principal, attributes, a tenant, roles, labels or a list of tools.
    fn default() -> Self {
        Self {
            run: "",
            caller: &Caller::Direct,
            principal: None,
            attributes: &[],
            tenant: None,
            roles: &[],
            labels: &[],
            tools: None,
        }
    }
}

/// The roles and attributes of a run's principal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Standing {
    pub(crate) roles: Vec<Arc<str>>,
    pub(crate) attributes: Vec<(Arc<str>, Arc<str>)>,
}

/// The properties of a tool and its call that a policy reads.
///
/// [`ToolPolicy::decide`](crate::ToolPolicy::decide) has an example.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct PolicyResource<'a> {
    /// The tool's name.
    pub name: &'a str,
    /// The effect that the tool declares.
    pub effect: ToolEffect,
    /// The tool's tags.
    pub tags: &'a [Arc<str>],
    /// The mode of a tool whose arguments have no schema; `None` if they have one.
    pub(crate) no_schema: Option<NoSchemaMode>,
    /// For a tool of an MCP server, the hash of the definition that the server publishes. It has to equal the policy's
    /// pin. `None` for other tools, and while the server publishes no definition or another one than the catalog has.
    pub pin: Option<Hash>,
    /// Whether the arguments had to be repaired.
    pub repaired: bool,
    /// The schema of the arguments, which determines their Cedar types.
    #[cfg_attr(not(feature = "cedar"), expect(dead_code, reason = "only the Cedar engine reads it"))]
    pub(crate) input_schema: Option<&'a Schema>,
}

impl<'a> PolicyResource<'a> {
    /// Describes a tool by name and effect alone.
    #[must_use]
    pub const fn new(name: &'a str, effect: ToolEffect) -> Self {
        Self { name, effect, tags: &[], no_schema: None, pin: None, repaired: false, input_schema: None }
    }

    /// Describes a tool by its definition.
    #[must_use]
    pub fn of(spec: &'a ToolSpec) -> Self {
        Self {
            name: spec.name.as_str(),
            effect: spec.effect,
            tags: &spec.tags,
            no_schema: spec.no_schema,
            pin: spec.pin,
            repaired: false,
            input_schema: Some(&spec.input_schema),
        }
    }

    /// Sets whether the arguments of the call were repaired.
    #[must_use]
    pub const fn repaired(mut self, repaired: bool) -> Self {
        self.repaired = repaired;
        self
    }
}
