//! [`Rights`]: compares the principals, properties and permissions of two runs of an MCP server.
//!
//! The code is in a separate file because only builds with `mcp-server` have it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;

use crate::call::Decider;
use crate::policy::RunTools;
use crate::runner::RunOptions;
use crate::tool::Hash;

/// A principal with its properties and tools. Lists are sets, because the order and repetitions do not affect any rule.
#[derive(PartialEq, Eq, Serialize)]
pub(crate) struct Rights<'a> {
    pub(in crate::runner) party: Party<'a>,
    pub(in crate::runner) tools: Option<&'a RunTools>,
}

/// A tenant, a principal, its roles and its attributes.
type Party<'a> =
    (&'a Option<Arc<str>>, &'a Option<Arc<str>>, BTreeSet<&'a Arc<str>>, BTreeSet<&'a (Arc<str>, Arc<str>)>);

impl Rights<'_> {
    /// Returns a digest with which another process can compare the rights.
    pub(crate) fn digest(&self) -> Hash {
        // The serialisation of strings cannot fail.
        Hash::sha256(serde_json::to_vec(self).unwrap_or_default())
    }
}

impl RunOptions {
    /// Whether both options name the same principal and tenant. Permissions are not compared.
    pub(crate) fn is_principal_of(&self, other: &Self) -> bool {
        self.principal == other.principal && self.tenant == other.tenant
    }

    /// Returns the tenant and the principal.
    pub(crate) fn named_party(&self) -> (Option<Arc<str>>, Option<Arc<str>>) {
        (self.tenant.clone(), self.principal.clone())
    }

    /// Returns the principal as a decider with the tenant and the roles of the options. `None` without a principal.
    pub(crate) fn as_decider(&self) -> Option<Decider> {
        let decider = Decider::new(Arc::clone(self.principal.as_ref()?));
        let decider = self.tenant.iter().cloned().fold(decider, Decider::tenant);
        Some(self.roles.iter().cloned().fold(decider, Decider::role))
    }

    /// Whether both options name the same principal with the same properties, tools and connections.
    pub(crate) fn is_party_of(&self, other: &Self) -> bool {
        self.has_rights_of(other) && self.connections == other.connections
    }

    /// Whether both options name the same principal with the same properties and tools. Connections are not compared,
    /// because their ids can differ between the sessions of a principal.
    pub(crate) fn has_rights_of(&self, other: &Self) -> bool {
        self.rights() == other.rights()
    }

    /// Returns the principal with its properties and tools, in a canonical order. Parties with equal rights are one
    /// party to a server.
    pub(crate) fn rights(&self) -> Rights<'_> {
        let (roles, attributes) = (self.roles.iter().collect(), self.attributes.iter().collect());
        Rights { party: (&self.tenant, &self.principal, roles, attributes), tools: self.tools.as_ref() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_lists_roles_in_another_order_is_of_the_same_party() {
        let ada = || RunOptions::new().principal("ada").tenant("acme");
        let buyer = ada().role("buyer").role("head");
        assert!(buyer.is_party_of(&ada().role("head").role("buyer").role("head")));
        for other in [ada(), ada().role("buyer"), ada().role("buyer").role("head").role("admin")] {
            assert!(!buyer.is_party_of(&other) && !other.is_party_of(&buyer));
        }
        assert_eq!(buyer.rights().digest(), ada().role("head").role("buyer").role("head").rights().digest());
        let one = ada().attribute("site", "graz").attribute("site", "wien");
        assert!(one.is_party_of(&ada().attribute("site", "wien").attribute("site", "graz")));
        assert!(!one.is_party_of(&ada().attribute("site", "wien")));
    }
}
