//! [`LegalHold`]: a prohibition on the removal of data.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::call::Decider;

/// The data that a legal hold covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HoldScope {
    /// The run with this id.
    Run(Arc<str>),
    /// The runs that act for a principal.
    Principal {
        /// The principal.
        principal: Arc<str>,
        /// The tenant of the runs. `None` for the principal's runs in every tenant and without a tenant.
        tenant: Option<Arc<str>>,
    },
    /// The runs of a tenant.
    Tenant(Arc<str>),
}

impl HoldScope {
    /// Whether one of the ids is empty, so that the scope covers no data.
    pub(in crate::store) fn is_empty(&self) -> bool {
        match self {
            Self::Run(id) | Self::Tenant(id) => id.is_empty(),
            Self::Principal { principal, tenant } => {
                principal.is_empty() || tenant.as_ref().is_some_and(|tenant| tenant.is_empty())
            }
        }
    }
}

/// A prohibition on the removal of data, until a person lifts the hold.
/// [`Retention::purge`](crate::store::Retention::purge) and [`Retention::erase`](crate::store::Retention::erase) keep
/// the data. Sweeps, notifiers and MCP servers keep the grants, effect keys, notices and runs that the hold covers.
///
/// [`Retention`](crate::store::Retention) has an example.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct LegalHold {
    /// The id of the hold.
    pub id: Arc<str>,
    /// The data that the hold covers.
    pub(crate) scope: HoldScope,
    /// The person who placed the hold, with the reason.
    pub by: Decider,
    /// When the hold was placed, by the clock of the store.
    pub since: Timestamp,
}

impl LegalHold {
    /// Returns the run that the hold covers. `None` for a hold on a principal or a tenant.
    #[must_use]
    pub fn run_id(&self) -> Option<&Arc<str>> {
        if let HoldScope::Run(run_id) = &self.scope { Some(run_id) } else { None }
    }

    /// Returns the principal whose runs the hold covers. `None` for a hold on a run or a tenant.
    #[must_use]
    pub fn principal(&self) -> Option<&Arc<str>> {
        if let HoldScope::Principal { principal, .. } = &self.scope { Some(principal) } else { None }
    }

    /// Returns the tenant of the runs that the hold covers. `None` for a hold on a run, and for a hold on a principal
    /// in every tenant.
    #[must_use]
    pub fn tenant(&self) -> Option<&Arc<str>> {
        match &self.scope {
            HoldScope::Run(_) => None,
            HoldScope::Principal { tenant, .. } => tenant.as_ref(),
            HoldScope::Tenant(tenant) => Some(tenant),
        }
    }
}
