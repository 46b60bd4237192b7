//! [`Suspension`]: the party that a suspended call waits for.

use serde::{Deserialize, Serialize};

/// The party that a suspended call waits for: a person or a client.
///
/// [`ChatReader`](crate::wire::ui::ChatReader) has an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Suspension {
    /// A person, who decides on the call.
    Approval,
    /// A client, which executes the call and returns its result.
    Client,
}
