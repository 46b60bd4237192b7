//! What tools may reach: capabilities, connections and secrets. Tools borrow them; only the runner hands them out.

mod bindings;
mod cap;
mod capabilities;
mod connection;
mod secret;

pub use bindings::{Bindings, Requirement, Source};
pub use cap::{AllowedIn, Cap, Injected, Within};
pub use capabilities::Capabilities;
pub use connection::{
    Connection, ConnectionBroker, ConnectionError, ConnectionHandle, ConnectionId, ConnectionKind, ConnectionRequest,
};
pub use secret::Secret;
