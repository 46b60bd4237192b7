//! [`StoredAccount`]: the amounts that a principal or a tenant used in one window.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::policy::{Holder, Spend};

/// The amounts used in one window. In each tenant, every principal has one account, and all runs without a principal
/// share one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredAccount {
    /// The tenant. `None` for runs without a tenant.
    pub tenant: Option<Arc<str>>,
    /// The principal. `None` for the account of a tenant, and for runs without a principal.
    pub principal: Option<Arc<str>>,
    /// Whether the account is a tenant's or a principal's.
    pub(crate) holder: Holder,
    /// When the window began.
    pub(crate) from: Timestamp,
    /// When the window ends.
    pub(crate) until: Timestamp,
    /// The amounts used so far, plus the amounts reserved by running calls.
    pub(crate) booked: Spend,
    /// A random mark of the last write. A store compares the mark to find out whether an unacknowledged write happened,
    /// because two writers can write the same amounts.
    pub(crate) mark: u64,
}
