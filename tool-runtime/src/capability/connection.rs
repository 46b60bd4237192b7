//! Connections: access to an account of the principal, which a tool borrows for one call.
//!
//! A run maps each kind of account, such as `calendar`, to a [`ConnectionId`]; a [`ConnectionBroker`] turns the id into
//! a handle when the tool is about to run. Arguments, policies, events and records contain neither ids nor credentials.

use std::any::TypeId;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::capability::injected::{Directly, Injected};
use crate::capability::recording::Recorder;
use crate::capability::requirement::InjectedFrom;

/// A trait with `#[capability(.., kind = "..")]`. It needs an account, so a broker provides an adapter for each call.
///
/// The attribute implements this trait. Applications read the kind from [`Connection::KIND`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no kind, so there is no connection for it",
    label = "not a kind of connection",
    note = "give its trait a kind: `#[capability(effect = .., kind = \"calendar\")]`"
)]
#[doc(hidden)]
pub trait ConnectionKind: Injected {
    /// The kind, for example `calendar`.
    const KIND: &'static str;
}

/// A resolved connection, injected into one call. It dereferences to the trait, and cannot be serialised or printed.
///
/// A function tool borrows `&Connection<dyn Trait>`; a struct tool lists `Cap<Connection<dyn Trait>>`.
///
/// ```
/// use tool_runtime::{Call, Cap, Connection, ToolComponent, ToolError, capability, tool};
///
/// /// A user's calendar.
/// #[capability(effect = read_only, kind = "calendar")]
/// trait Calendar { fn next(&self) -> String; }
///
/// /// Title of the next entry.
/// #[tool(name = "calendar__next", effect = read_only, redact = ["$"])]
/// fn next(calendar: &Connection<dyn Calendar>) -> Result<String, ToolError> {
///     Ok(calendar.next())
/// }
///
/// /// The same as a struct.
/// #[tool(name = "calendar__upcoming", effect = read_only, redact = ["$"])]
/// struct Upcoming {}
///
/// impl ToolComponent for Upcoming {
///     type Capabilities = (Cap<Connection<dyn Calendar>>,);
///     type Output = String;
///
///     async fn run(self, (calendar,): Self::Capabilities, _: &Call<Self>) -> Result<String, ToolError> {
///         Ok(calendar.next())
///     }
/// }
/// ```
pub struct Connection<C: ?Sized>(Arc<C>);

impl<C: ?Sized> Connection<C> {
    pub(crate) fn new(adapter: Arc<C>) -> Self {
        Self(adapter)
    }
}

impl<C: ?Sized + ConnectionKind> Connection<C> {
    /// The kind of the trait, for example `calendar`.
    pub const KIND: &'static str = C::KIND;
}

impl<C: ?Sized> Deref for Connection<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.0
    }
}

impl<C: ?Sized> fmt::Debug for Connection<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connection(..)")
    }
}

impl<C: ?Sized + ConnectionKind> Injected for Connection<C> {
    type Effect = C::Effect;
    type Borrowing = Directly;
    const NAME: &'static str = C::NAME;

    fn source() -> InjectedFrom {
        InjectedFrom::Connection(C::KIND)
    }

    fn recording(connection: Arc<Self>, recorder: &Recorder) -> Option<Arc<Self>> {
        Some(Arc::new(Self(C::recording(Arc::clone(&connection.0), recorder)?)))
    }
}

/// An opaque reference to an account. It gives no access by itself, and `Debug` does not show it.
///
/// ```
/// use tool_runtime::capability::ConnectionId;
///
/// let id = ConnectionId::from("ada@work");
/// assert_eq!(id.as_str(), "ada@work");
/// assert_eq!(format!("{id:?}"), "ConnectionId(..)");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ConnectionId(Arc<str>);

impl ConnectionId {
    /// Wraps the application's own reference to an account.
    #[must_use]
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// Returns the reference, for the broker.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<T: Into<Arc<str>>> From<T> for ConnectionId {
    fn from(id: T) -> Self {
        Self::new(id)
    }
}

impl AsRef<str> for ConnectionId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConnectionId(..)")
    }
}

/// Returns the type id of a connection to `C`, which brokers and the runner compare.
pub(crate) fn connection_type<C: ConnectionKind + ?Sized>() -> TypeId {
    TypeId::of::<Connection<C>>()
}
