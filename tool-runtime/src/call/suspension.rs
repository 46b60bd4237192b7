//! [`Suspension`]: the event that a suspended call waits for.

use serde::{Deserialize, Serialize};

/// The event that a suspended call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Suspension {
    /// The decision of a person.
    Approval,
    /// The result of a client, which executes the call.
    Client,
}
