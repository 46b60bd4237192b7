//! [`Adapters`]: the capabilities, the broker and the name look-ups of an application.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use tool_runtime::Capabilities;
use tool_runtime::capability::{ConnectionBroker, ConnectionId, NameLookup};

/// The adapters of an application. [`App::adapters`](crate::App::adapters) makes them for its data folder.
///
/// ```
/// use std::sync::Arc;
///
/// use async_trait::async_trait;
/// use tool_runtime::capability::{
///     ConnectionBroker, ConnectionError, ConnectionHandle, ConnectionId, ConnectionRequest,
/// };
/// use tool_runtime::{Capabilities, capability};
/// use tool_runtime_cli::Adapters;
///
/// /// Reads a mailbox.
/// #[capability(effect = read_only, kind = "mail")]
/// trait Mailbox {
///     /// How many mails are unread.
///     fn unread(&self) -> u32;
/// }
///
/// struct Local;
///
/// impl Mailbox for Local {
///     fn unread(&self) -> u32 { 7 }
/// }
///
/// #[async_trait]
/// impl ConnectionBroker for Local {
///     async fn resolve(&self, _: ConnectionRequest<'_>) -> Result<ConnectionHandle, ConnectionError> {
///         Ok(ConnectionHandle::new::<dyn Mailbox>(Arc::new(Self)))
///     }
/// }
///
/// let accounts = [("mail", ConnectionId::new("mine"))];
/// let adapters = Adapters::new(Capabilities::new()).connections(Arc::new(Local), accounts);
/// assert!(adapters.broker.is_some());
/// ```
#[derive(Default)]
#[non_exhaustive]
pub struct Adapters {
    /// The capabilities that tools may borrow.
    pub capabilities: Capabilities,
    /// The broker that resolves connections.
    pub broker: Option<Arc<dyn ConnectionBroker>>,
    /// The accounts that runs may use, by kind.
    pub connections: BTreeMap<String, ConnectionId>,
    /// The look-ups that find names for argument values, by tool and argument.
    pub names: BTreeMap<(String, String), Arc<dyn NameLookup>>,
}

impl Adapters {
    /// Creates adapters without connections.
    #[must_use]
    pub fn new(capabilities: Capabilities) -> Self {
        Self { capabilities, ..Self::default() }
    }

    /// Adds connections: the broker that resolves them, and the account of each kind that runs use. A tool borrows a
    /// connection as `&Connection<dyn Trait>`.
    #[must_use]
    pub fn connections(
        mut self,
        broker: Arc<dyn ConnectionBroker>,
        connections: impl IntoIterator<Item = (impl Into<String>, ConnectionId)>,
    ) -> Self {
        self.broker = Some(broker);
        self.connections.extend(connections.into_iter().map(|(kind, id)| (kind.into(), id)));
        self
    }

    /// Adds a look-up that finds names for the values of an argument. A person who decides on a call sees the names.
    #[must_use]
    pub fn names(mut self, tool: impl Into<String>, argument: impl Into<String>, lookup: Arc<dyn NameLookup>) -> Self {
        self.names.insert((tool.into(), argument.into()), lookup);
        self
    }
}

impl fmt::Debug for Adapters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adapters").field("capabilities", &self.capabilities).finish_non_exhaustive()
    }
}
