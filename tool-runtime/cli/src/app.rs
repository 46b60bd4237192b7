//! [`App`]: the description of an application for its command line.

use std::cell::RefCell;
use std::fmt;
use std::path::{Path, PathBuf};

use tool_runtime::ToolCatalog;
use tool_runtime::error::BuildError;
use tracing_subscriber::{Layer, Registry};

use crate::adapters::Adapters;
use crate::command::{AppCommand, Own};

type Error = Box<dyn std::error::Error + Send + Sync>;
type Bind = Box<dyn Fn(&Path) -> Result<Adapters, Error>>;
type Inspect = Box<dyn Fn(&Path) -> Result<Vec<String>, Error>>;
pub(crate) type BoxedLayer = Box<dyn Layer<Registry> + Send + Sync>;
type Collect = Box<dyn Fn() -> Result<ToolCatalog, BuildError>>;

/// The description of an application for its command line: a name, a catalog, a default policy, and a function that
/// binds adapters.
///
/// ```no_run
/// use std::process::ExitCode;
/// use tool_runtime::Capabilities;
/// use tool_runtime_cli::{Adapters, App};
///
/// fn main() -> ExitCode {
///     let app = App::new("mine", env!("CARGO_PKG_VERSION"), "My tools")
///         .principal("ada")
///         .adapters(|_data| Ok(Adapters::new(Capabilities::new())));
///     tool_runtime_cli::main(&app)
/// }
/// ```
pub struct App {
    pub(super) name: &'static str,
    pub(super) version: &'static str,
    pub(super) about: &'static str,
    pub(super) policy: Option<&'static str>,
    pub(super) data: Option<PathBuf>,
    pub(super) principal: Option<String>,
    pub(super) tenant: Option<String>,
    pub(super) collect: Collect,
    pub(super) bind: Bind,
    pub(super) inspect: Option<Inspect>,
    /// Additional `tracing` layers. They are in a cell, because the subscriber takes them from a borrowed `App`.
    pub(super) layers: RefCell<Vec<BoxedLayer>>,
    /// The names of variables, with their meanings.
    pub(super) variables: Vec<(&'static str, &'static str)>,
    pub(super) commands: Vec<Own>,
}

impl App {
    /// Creates an application without adapters and without a default policy. Unless [`policy`](Self::policy) sets one
    /// or the command names one (`--policy`), every call is denied.
    #[must_use]
    pub fn new(name: &'static str, version: &'static str, about: &'static str) -> Self {
        Self {
            name,
            version,
            about,
            policy: None,
            data: None,
            principal: None,
            tenant: None,
            collect: Box::new(ToolCatalog::collect),
            bind: Box::new(|_| Ok(Adapters::default())),
            inspect: None,
            layers: RefCell::default(),
            variables: Vec::new(),
            commands: Vec::new(),
        }
    }

    /// Sets the default policy, as TOML. `--policy`, its environment variable and the configuration file override it.
    #[must_use]
    pub fn policy(mut self, toml: &'static str) -> Self {
        self.policy = Some(toml);
        self
    }

    /// Sets the default data folder. `--data`, its environment variable and the configuration file override it. Without
    /// this setting it is `data` in the current folder, so commands in another folder have other data and records.
    #[must_use]
    pub fn data(mut self, folder: impl Into<PathBuf>) -> Self {
        self.data = Some(folder.into());
        self
    }

    /// Sets the default principal of runs. `--principal`, its environment variable and the configuration file override
    /// it.
    #[must_use]
    pub fn principal(mut self, name: impl Into<String>) -> Self {
        self.principal = Some(name.into());
        self
    }

    /// Sets the default tenant of runs. `--tenant`, its environment variable and the configuration file override it.
    #[must_use]
    pub fn tenant(mut self, name: impl Into<String>) -> Self {
        self.tenant = Some(name.into());
        self
    }

    /// Sets the function that builds the catalog; by default it contains every linked tool.
    #[must_use]
    pub fn catalog(mut self, collect: impl Fn() -> Result<ToolCatalog, BuildError> + 'static) -> Self {
        self.collect = Box::new(collect);
        self
    }

    /// Sets the function that opens the adapters for the data folder (`--data`). Only commands that run or serve tools,
    /// write to a conversation, decide on calls, add grants or settle outcomes call it, and `store sweep --tools`;
    /// `list`, `show`, `check` and `audit` do not.
    #[must_use]
    pub fn adapters(mut self, bind: impl Fn(&Path) -> Result<Adapters, Error> + 'static) -> Self {
        self.bind = Box::new(bind);
        self
    }

    /// Sets the function that lists the state that tools can change, one line per item. `chat --transcript` calls it
    /// before and after all calls of the recorded response, and prints the lines that are only in one of the two lists.
    #[must_use]
    pub fn inspect(mut self, inspect: impl Fn(&Path) -> Result<Vec<String>, Error> + 'static) -> Self {
        self.inspect = Some(Box::new(inspect));
        self
    }

    /// Adds a layer to the `tracing` subscriber that [`main`](crate::main) installs, such as one that exports spans and
    /// metrics. It receives spans and events at level `INFO` and above, and the library's metrics. It receives neither
    /// the texts of failures, which can contain private data, nor the spans and events of libraries that see requests
    /// (for HTTP, TLS and MCP) or lines from the keyboard. If the application has installed its own subscriber, the
    /// layer has no effect.
    #[must_use]
    pub fn layer(self, layer: impl Layer<Registry> + Send + Sync + 'static) -> Self {
        self.layers.borrow_mut().push(Box::new(layer));
        self
    }

    /// Adds a command of the application. `C` defines its arguments and its help.
    #[must_use]
    pub fn command<C: AppCommand + 'static>(mut self) -> Self {
        self.commands.push(Own::of::<C>());
        self
    }

    /// Adds an environment variable of the application to the list in the help; `sets` is its meaning.
    #[must_use]
    pub fn variable(mut self, name: &'static str, sets: &'static str) -> Self {
        self.variables.push((name, sets));
        self
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("name", &self.name).finish_non_exhaustive()
    }
}
