//! [`Decider`]: the person who decides on a waiting call.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::text::{is_name, sentence};

/// The maximum length of a decider's reason, in bytes.
const MAX_REASON_BYTES: usize = 2048;

/// A person who decides on a waiting call, as the application authenticated them, with their reason.
///
/// The policy's `[approvals]` states who may decide. Without a rule, everyone in the run's tenant may decide except the
/// principal that the run acts for. A decider without a name, or whose name has invisible or control characters or
/// begins or ends with white space, may not decide. The record of the decision contains the decider.
///
/// ```
/// use tool_runtime::call::Decider;
///
/// let decider = Decider::new("grace").tenant("acme").role("approver").because("It is in the budget.");
/// assert_eq!(decider.reason(), Some("It is in the budget."));
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[must_use]
pub struct Decider {
    principal: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tenant: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    roles: Vec<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<Arc<str>>,
}

impl Decider {
    /// Creates a decider without a tenant and without roles.
    pub fn new(principal: impl Into<Arc<str>>) -> Self {
        Self { principal: principal.into(), tenant: None, roles: Vec::new(), reason: None }
    }

    /// Sets the tenant, which must be the tenant of the run.
    pub fn tenant(mut self, tenant: impl Into<Arc<str>>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// Adds a role that the policy may require.
    pub fn role(mut self, role: impl Into<Arc<str>>) -> Self {
        self.roles.push(role.into());
        self
    }

    /// Sets the reason for the decision, for the record; the model does not read it. At most 2,048 bytes are kept.
    pub fn because(mut self, reason: &str) -> Self {
        self.reason = Some(sentence(reason, MAX_REASON_BYTES).into());
        self
    }

    /// Returns the principal who decides.
    #[must_use]
    pub fn principal(&self) -> &str {
        &self.principal
    }

    /// Whether both deciders are one person: the same principal of the same tenant.
    pub(crate) fn is_same_person(&self, other: &Self) -> bool {
        self.principal == other.principal && self.tenant == other.tenant
    }

    /// Whether the name is readable: not blank, without control or invisible characters, and without white space at its
    /// ends, so that one person has one name.
    pub(crate) fn is_named(&self) -> bool {
        is_name(&self.principal) && self.principal.trim() == &*self.principal
    }

    /// Returns the tenant of the decider; `None` if none was set.
    #[must_use]
    pub fn tenant_id(&self) -> Option<&str> {
        self.tenant.as_deref()
    }

    /// Returns the roles of the decider.
    #[must_use]
    pub fn roles(&self) -> &[Arc<str>] {
        &self.roles
    }

    /// Returns the reason for the decision; `None` if the decider gave none.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }
}

// The reason is free text, which stays out of logs.
impl fmt::Debug for Decider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decider")
            .field("principal", &self.principal)
            .field("tenant", &self.tenant)
            .field("roles", &self.roles)
            .finish_non_exhaustive()
    }
}
