//! [`App`]: what an application tells its command line.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::capability::{Capabilities, ConnectionBroker, ConnectionId};
use crate::catalog::{CatalogError, ToolCatalog};

type Error = Box<dyn std::error::Error + Send + Sync>;
type Bind = Box<dyn Fn(&Path) -> Result<Adapters, Error>>;
type Inspect = Box<dyn Fn(&Path) -> Result<Vec<String>, Error>>;
type Collect = Box<dyn Fn() -> Result<ToolCatalog, CatalogError>>;

/// An application as its command line sees it: a name, a catalog, a default policy, and how adapters are bound.
pub struct App {
    pub(super) name: &'static str,
    pub(super) version: &'static str,
    pub(super) about: &'static str,
    pub(super) policy: Option<&'static str>,
    pub(super) collect: Collect,
    pub(super) bind: Bind,
    pub(super) inspect: Option<Inspect>,
}

impl App {
    /// An application without a default policy, which denies everything, and without adapters.
    #[must_use]
    pub fn new(name: &'static str, version: &'static str, about: &'static str) -> Self {
        Self {
            name,
            version,
            about,
            policy: None,
            collect: Box::new(ToolCatalog::collect),
            bind: Box::new(|_| Ok(Adapters::default())),
            inspect: None,
        }
    }

    /// The policy in force when `--policy` is not given, as TOML.
    #[must_use]
    pub fn policy(mut self, toml: &'static str) -> Self {
        self.policy = Some(toml);
        self
    }

    /// Makes the catalog; every linked registration by default.
    #[must_use]
    pub fn catalog(mut self, collect: impl Fn() -> Result<ToolCatalog, CatalogError> + 'static) -> Self {
        self.collect = Box::new(collect);
        self
    }

    /// Opens the adapters over the data folder (`--data`). Called by commands that run tools, not by others.
    #[must_use]
    pub fn adapters(mut self, bind: impl Fn(&Path) -> Result<Adapters, Error> + 'static) -> Self {
        self.bind = Box::new(bind);
        self
    }

    /// Lists the state that tools change, a line each, so that `chat` can show what a call really did.
    #[must_use]
    pub fn inspect(mut self, inspect: impl Fn(&Path) -> Result<Vec<String>, Error> + 'static) -> Self {
        self.inspect = Some(Box::new(inspect));
        self
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The adapters of an application, bound to its data folder.
#[derive(Default)]
#[non_exhaustive]
pub struct Adapters {
    /// What tools may borrow.
    pub capabilities: Capabilities,
    /// Resolves connections.
    pub broker: Option<Arc<dyn ConnectionBroker>>,
    /// The accounts of the person at the keyboard, by kind.
    pub connections: BTreeMap<String, ConnectionId>,
    /// The tenant of those accounts.
    pub organisation: Option<String>,
    /// The person at the keyboard.
    pub user: Option<String>,
}

impl Adapters {
    /// Adapters without connections.
    #[must_use]
    pub fn new(capabilities: Capabilities) -> Self {
        Self { capabilities, ..Self::default() }
    }

    /// Adds connections: who resolves them, for which user of which organisation.
    #[must_use]
    pub fn connections(
        mut self,
        broker: Arc<dyn ConnectionBroker>,
        organisation: impl Into<String>,
        user: impl Into<String>,
        connections: impl IntoIterator<Item = (String, ConnectionId)>,
    ) -> Self {
        self.broker = Some(broker);
        self.organisation = Some(organisation.into());
        self.user = Some(user.into());
        self.connections.extend(connections);
        self
    }
}

impl fmt::Debug for Adapters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adapters").field("capabilities", &self.capabilities).finish_non_exhaustive()
    }
}
