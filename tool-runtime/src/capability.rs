//! Capabilities, connections and secrets. Tools borrow them; only the runner hands them out.
//!
//! [`Capabilities`] binds the adapters of an application to the traits that [`#[capability]`](macro@crate::capability)
//! marks. A [`ConnectionBroker`] opens the account of a user for one call, as a [`Connection`](crate::Connection).
//! [`Progress`], [`Elicit`] and [`Sample`] are built-in capabilities that reach the client that made the call.
//! A [`NameLookup`] finds names for ids, for the people who approve calls; tools do not borrow it.

#[cfg(feature = "mcp-client")]
mod bearer;
mod broker;
pub(crate) mod cap;
pub(crate) mod capabilities;
mod client;
pub(crate) mod connection;
pub(crate) mod injected;
mod names;
pub(crate) mod recording;
pub(crate) mod requirement;
pub(crate) mod secret;

#[cfg(feature = "mcp-client")]
pub(crate) use bearer::BearerToken;
pub use broker::{ConnectionBroker, ConnectionError, ConnectionHandle, ConnectionRequest};
pub(crate) use cap::Cap;
pub(crate) use cap::bound;
pub(crate) use capabilities::Bindable;
pub(crate) use capabilities::Capabilities;
pub(crate) use client::without_client;
pub use client::{ClientError, Elicit, Progress, Sample};
pub use connection::ConnectionId;
#[doc(hidden)]
pub use connection::ConnectionKind;
pub(crate) use injected::Bind;
pub use names::{NameLookup, NameRequest};
pub(crate) use recording::Recorder;
pub(crate) use requirement::{InjectedFrom, Requirement};
#[cfg(any(feature = "http", feature = "mcp-client", feature = "mcp-server"))]
pub(crate) use secret::Secret;
