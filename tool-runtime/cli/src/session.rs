//! [`Cli`], [`Gate`] and [`Session`]: the settings of a command, its runner and store, and its run.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use tokio::sync::OnceCell;
use tool_runtime::call::{Decider, DigestKey};
use tool_runtime::capability::ConnectionId;
#[cfg(feature = "mcp-client")]
use tool_runtime::mcp::source::ToolSource;
use tool_runtime::store::{PendingCall, RecordFilter, SealedRecord, Store};
use tool_runtime::{Event, ToolInvocationRecord};
use tool_runtime::{Run, RunOptions, ToolCatalog, ToolPolicy, ToolRunner};

use crate::app::App;
use crate::config::Settings;
use crate::exit::Failure;
#[cfg(feature = "mcp-client")]
use crate::mcp::settings;
use crate::text::{nearest, option};
use crate::{input, log, private_file, terminal};

/// The command line of a running command: the application and the settings of the command.
pub struct Cli<'a> {
    pub(super) app: &'a App,
    pub(super) settings: Settings,
    /// The store. It is opened when a command first needs it.
    pub(super) opened: OnceCell<Arc<dyn Store>>,
    /// The MCP servers of the configuration file. They are connected when a command first needs them.
    #[cfg(feature = "mcp-client")]
    pub(super) servers: OnceCell<ToolSource>,
}

/// The options of commands that decide: the decider and the reason. `--role` sets the decider's roles.
#[derive(Debug, Args)]
pub(crate) struct DeciderArgs {
    /// The decider, with the roles of --role; the principal by default, if the policy lets it decide its own calls.
    /// Required for a call of that principal in a run of the store
    #[arg(long = "as", value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) decider: Option<String>,
    /// The reason, for the audit record; the model does not read it
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

/// The principal, the tenant, the roles and the attributes for which a command acts.
pub(super) struct Party {
    pub(super) principal: Option<Arc<str>>,
    pub(super) tenant: Option<Arc<str>>,
    pub(super) roles: Vec<Arc<str>>,
    pub(super) attributes: Vec<(Arc<str>, Arc<str>)>,
}

impl Cli<'_> {
    /// Returns whether stdout has to be JSON (`--json`).
    #[must_use]
    pub const fn json(&self) -> bool {
        self.settings.json
    }

    /// Opens the application's data, connects to the MCP servers of the configuration file, and builds the gate. The
    /// tools of a server that does not answer are missing; a note on stderr reports this.
    ///
    /// # Errors
    /// The catalog, the policy, the data folder, the store, the digest key or the settings of an MCP server cannot be
    /// used, or a tool needs a capability that the application does not bind.
    pub async fn gate(&self) -> Result<Gate, Failure> {
        #[cfg(feature = "mcp-client")]
        if self.servers.get().is_none() {
            // A command of the application may need tools of any server, so it waits for all.
            self.connect(Awaited::All).await?;
        }
        self.open().await
    }

    /// Returns the party, from the settings or the application's defaults.
    pub(super) fn party(&self) -> Party {
        let chosen = |given: &Option<String>, own: &Option<String>| {
            given.as_ref().or(own.as_ref()).map(|name| name.as_str().into())
        };
        Party {
            principal: chosen(&self.settings.principal, &self.app.principal),
            tenant: chosen(&self.settings.tenant, &self.app.tenant),
            roles: self.settings.roles.iter().map(|role| role.as_str().into()).collect(),
            attributes: self.settings.attributes.clone(),
        }
    }

    /// Reads the key for digests. `None` if the settings name no file; the store then keeps the key.
    pub(super) fn digest_key(&self) -> Result<Option<DigestKey>, Failure> {
        let Some(path) = &self.settings.digest_key else { return Ok(None) };
        if let Some(mode) = private_file::shared_mode(path) {
            terminal::note(&private_file::warning(path, mode));
        }
        let shown = path.display().to_string();
        let text = input::text(input::file(path)?, &shown)?;
        let key = input::digest_key(&text).ok_or_else(|| {
            Failure::usage(format!("{shown}: write the key as 64 hexadecimal digits")).code("unreadable_input")
        })?;
        Ok(Some(key))
    }

    /// Returns the decider: the person that `--as` names, or the principal.
    pub(super) fn decider(&self, named: Option<&str>, reason: Option<&str>) -> Decider {
        let Party { principal, tenant, roles, .. } = self.party();
        // `operator` is the person at the keyboard, if neither the options nor the application name a principal.
        let name = named.map(Arc::from).or(principal).unwrap_or_else(|| "operator".into());
        // In commands that decide, `--role` sets the roles of the decider, not those of the run (see `options_of`).
        let decider = roles.into_iter().fold(Decider::new(name), Decider::role);
        let decider = tenant.into_iter().fold(decider, Decider::tenant);
        reason.into_iter().fold(decider, Decider::because)
    }

    /// Returns the decider on a call in a run of the store. If that is the principal of the run, `--as` must name it.
    pub(super) fn named_decider(&self, call: &PendingCall, who: &DeciderArgs) -> Result<Decider, Failure> {
        let decider = self.decider(who.decider.as_deref(), who.reason.as_deref());
        if who.decider.is_none() && Some(decider.principal()) == call.principal.as_deref() {
            let (name, own) = (terminal::safe(decider.principal()), option("--as", decider.principal()));
            return Err(Failure::usage(format!(
                "the run acts for {name}; name the decider: --as NAME ({} if the policy lets it decide its own calls)",
                own.trim_start()
            )));
        }
        Ok(decider)
    }

    /// Returns the catalog, with the tools of the MCP servers of the configuration file.
    pub(super) fn catalog(&self) -> Result<Arc<ToolCatalog>, Failure> {
        let catalog = (self.app.collect)();
        #[cfg(feature = "mcp-client")]
        let catalog = catalog.and_then(|catalog| match self.servers.get() {
            Some(servers) => catalog.with_source(servers),
            None => Ok(catalog),
        });
        catalog.map(Arc::new).map_err(|error| Failure::usage(error.to_string()).code("catalog_problem"))
    }

    /// Connects to the MCP servers of the configuration file, and waits for the servers that the command needs. A
    /// server that does not answer is reported, and adds no tools.
    #[cfg(feature = "mcp-client")]
    pub(super) async fn connect(&self, awaited: Awaited<'_>) -> Result<(), Failure> {
        let servers = settings::servers(&self.settings.mcp)?;
        if servers.is_empty() {
            return Ok(());
        }
        let source = settings::start(servers)?;
        match awaited {
            Awaited::All => {
                source.wait_for_all().await;
                settings::note(&source.notes());
            }
            Awaited::Of(tool) => {
                // The name is `mcp__SERVER__TOOL`. The command ignores the other servers and their problems.
                if let Some((server, _)) = tool.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) {
                    source.wait_for(server).await;
                    let mut notes = source.notes();
                    notes.retain(|id, _| id == server);
                    settings::note(&notes);
                }
            }
            #[cfg(feature = "mcp-server")]
            Awaited::Later => {
                let source = source.clone();
                tokio::spawn(async move {
                    source.wait_for_all().await;
                    settings::note(&source.notes());
                });
            }
        }
        // `set` cannot fail, because no other code sets the cell.
        let _ = self.servers.set(source);
        Ok(())
    }

    /// Returns the policy: the file of `--policy`, the application's own, or an empty one, which denies every call.
    pub(super) fn policy(&self) -> Result<ToolPolicy, Failure> {
        let policy = match (&self.settings.policy, self.app.policy) {
            (Some(path), _) => ToolPolicy::from_path(path).map_err(|error| error.to_string()),
            (None, Some(text)) => ToolPolicy::from_toml(text)
                .map_err(|error| format!("the policy that {} ships is broken: {error}", self.app.name)),
            (None, None) => Ok(ToolPolicy::deny_all()),
        };
        let policy = policy.map_err(|message| Failure::usage(message).code("policy_problem"))?;
        self.note_unknown_roles(&policy);
        Ok(policy)
    }

    /// Prints a note about each role that the policy does not name, because such a role has no effect.
    fn note_unknown_roles(&self, policy: &ToolPolicy) {
        // Some roles occur only in `[approvals]`.
        let known = &policy.roles() | &policy.decider_roles();
        for role in self.settings.roles.iter().filter(|role| !known.contains(role.as_str())) {
            let meant = match nearest(role, known.iter().copied()) {
                Some(nearest) => format!("; did you mean `{nearest}`?"),
                None if known.is_empty() => "; it names no role".to_owned(),
                None => format!("; its roles are {}", known.iter().copied().collect::<Vec<_>>().join(", ")),
            };
            let text = format!("the policy has no role `{role}`, so it changes nothing{meant}");
            terminal::note(&terminal::safe(&text));
        }
    }

    /// Returns the policy, after the checks against the catalog that building a runner makes.
    pub(super) fn checked_policy(&self, catalog: &Arc<ToolCatalog>) -> Result<ToolPolicy, Failure> {
        Self::checked(catalog, self.policy()?)
    }

    /// Checks another policy against the catalog.
    pub(super) fn checked(catalog: &Arc<ToolCatalog>, policy: ToolPolicy) -> Result<ToolPolicy, Failure> {
        let found = ToolRunner::builder(Arc::clone(catalog), policy.clone()).check();
        let problems: Vec<_> = found.iter().map(ToString::to_string).collect();
        if problems.is_empty() { Ok(policy) } else { Err(Failure::usage(problems.join("\n")).code("policy_problem")) }
    }

    /// Opens the application's data and builds the gate.
    pub(super) async fn open(&self) -> Result<Gate, Failure> {
        let (catalog, policy) = (self.catalog()?, self.policy()?);
        let data = &self.settings.data;
        let adapters = (self.app.bind)(data).map_err(|error| {
            Failure::usage(format!("cannot open the data folder {}: {error}", data.display())).code("data_unavailable")
        })?;
        #[cfg(feature = "mcp-client")]
        let adapters = {
            let Party { principal, tenant, .. } = self.party();
            settings::connected(adapters, &self.settings.mcp, (principal, tenant))
        };
        let store = self.store().await?;
        let mut builder = ToolRunner::builder(catalog, policy)
            .capabilities(adapters.capabilities)
            // The person at the terminal can decide; `approvals` decides later on calls that wait.
            .approvals(true)
            .failures(log::failure)
            .store(Arc::clone(&store));
        if let Some(key) = self.digest_key()? {
            builder = builder.digest_key(key);
        }
        if let Some(broker) = adapters.broker {
            builder = builder.broker(broker);
        }
        for ((tool, argument), lookup) in adapters.names {
            builder = builder.names(tool, argument, lookup);
        }
        let runner = builder.build().map_err(|error| {
            let is_unbound = error.problems().iter().any(|problem| problem.code() == "capability_unbound");
            let hint = if is_unbound { UNBOUND } else { "" };
            Failure::usage(format!("{error}{hint}")).code(error.code())
        })?;
        Ok(Gate { runner, store, connections: adapters.connections, party: self.party() })
    }

    /// Opens the gate and starts a run on it.
    pub(super) async fn start(&self, user_text: Option<&str>, events: Option<Sink>) -> Result<Session, Failure> {
        let gate = self.open().await?;
        let mut options = gate.options(events);
        if let Some(text) = user_text {
            options = options.user_text(text);
        }
        let run = gate.runner.run(options);
        Ok(Session { gate, run })
    }
}

/// The advice after an error about unbound adapters, whose own text names a builder that the command line hides.
const UNBOUND: &str = "\nthis program binds them in `App::adapters`: `Adapters::new(capabilities)`, and \
                       `.connections(broker, [(kind, account)])` for accounts";

/// A callback for the events of a run.
pub(crate) type Sink = Arc<dyn Fn(Event) + Send + Sync>;

/// A runner with the application's adapters, and the store with its records.
pub struct Gate {
    /// The runner.
    pub runner: ToolRunner,
    pub(super) store: Arc<dyn Store>,
    connections: BTreeMap<String, ConnectionId>,
    party: Party,
}

impl Gate {
    /// Returns the options for the run of a waiting call. The roles and attributes come from the call, because in a
    /// command that decides, `--role` sets the decider's roles.
    pub(super) fn options_of(&self, call: &PendingCall, events: Option<Sink>) -> RunOptions {
        let (roles, attributes) = (call.roles.clone(), call.attributes.clone());
        let (principal, tenant) = (self.party.principal.clone(), self.party.tenant.clone());
        self.options_for(&Party { principal, tenant, roles, attributes }, events)
    }

    /// Returns the options for a run: the principal, the tenant, the roles and the attributes of this command, and the
    /// application's connections. `events` receives the events of the run.
    pub fn options(&self, events: Option<Sink>) -> RunOptions {
        self.options_for(&self.party, events)
    }

    /// Adds the application's connections to the options.
    pub(super) fn connected(&self, options: RunOptions) -> RunOptions {
        self.connections.iter().fold(options, |options, (kind, id)| options.connection(kind, id.clone()))
    }

    fn options_for(&self, party: &Party, events: Option<Sink>) -> RunOptions {
        let mut options = self.connected(RunOptions::new());
        if let Some(principal) = &party.principal {
            options = options.principal(Arc::clone(principal));
        }
        if let Some(tenant) = &party.tenant {
            options = options.tenant(Arc::clone(tenant));
        }
        for role in &party.roles {
            options = options.role(Arc::clone(role));
        }
        for (name, value) in &party.attributes {
            options = options.attribute(Arc::clone(name), Arc::clone(value));
        }
        match events {
            Some(sink) => options.events(move |event| sink(event)),
            None => options,
        }
    }
}

/// A gate and one run on it.
pub(super) struct Session {
    pub(super) gate: Gate,
    pub(super) run: Run,
}

impl Session {
    /// Returns the records of calls, the open ones last.
    pub(super) async fn records(&self) -> Result<Vec<ToolInvocationRecord>, Failure> {
        let mut records = self.gate.store.calls(&self.own()).await?;
        records.extend(self.open_records().await?);
        Ok(records)
    }

    /// Returns the records of calls that wait.
    pub(super) async fn open_records(&self) -> Result<Vec<ToolInvocationRecord>, Failure> {
        Ok(self.gate.store.open_records(&self.own()).await?)
    }

    /// Returns all records, with their hashes.
    pub(super) async fn sealed(&self) -> Result<Vec<SealedRecord>, Failure> {
        Ok(self.gate.store.records(&self.own()).await?)
    }

    fn own(&self) -> RecordFilter {
        RecordFilter::run(self.run.id())
    }
}

impl fmt::Debug for Cli<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cli").field("app", &self.app).finish_non_exhaustive()
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("runner", &self.runner).finish_non_exhaustive()
    }
}

/// The MCP servers for which a command waits before it begins.
#[cfg(feature = "mcp-client")]
#[derive(Debug, Clone, Copy)]
pub(crate) enum Awaited<'a> {
    /// All servers.
    All,
    /// The server of this tool. A tool of the application needs none.
    Of(&'a str),
    /// No server. Their tools are added while the command runs.
    #[cfg(feature = "mcp-server")]
    Later,
}
