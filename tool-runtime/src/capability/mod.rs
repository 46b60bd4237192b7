//! What tools may reach: capabilities, connections and secrets. Tools borrow them; only the runner hands them out.

mod cap;
mod capabilities;
mod connection;
pub(crate) mod injected;
pub(crate) mod requirement;
mod secret;

pub use cap::Cap;
pub use capabilities::Capabilities;
pub use connection::{
    Connection, ConnectionBroker, ConnectionError, ConnectionHandle, ConnectionId, ConnectionKind, ConnectionRequest,
};
pub(crate) use requirement::{Requirement, Source};
pub use secret::Secret;
