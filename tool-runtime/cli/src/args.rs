//! The grammar of the command line.

mod approvals;
mod audit;
mod call;
mod chat;
mod check;
mod grants;
mod help;
#[cfg(any(feature = "mcp-client", feature = "mcp-server"))]
mod mcp;
mod pick;
mod settings;
mod store;
mod values;
mod worker;

pub(super) use approvals::{Approvals, By, Who};
pub(super) use audit::{Audit, Source, Which};
pub(super) use call::Call;
pub(super) use chat::{Chat, Endpoint};
pub(super) use check::{Accept, Check};
pub(super) use grants::{Add, Grants, Scope};
#[cfg(any(feature = "mcp-client", feature = "mcp-server"))]
pub(super) use mcp::McpAction;
#[cfg(feature = "mcp-client")]
pub(super) use mcp::{Awaited, Servers};
pub(super) use pick::Pick;
pub(super) use store::{StoreAction, StoreOptions, patience};
pub use values::formats;
pub(super) use values::{Form, View, attribute, name, named};
pub(super) use worker::{Worker, WorkerAction};

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

use crate::app::App;
use crate::command::Own;
use crate::terminal::Color;
use tool_runtime::call::Caller;
use tool_runtime::wire::Format;

#[derive(Debug, Parser)]
#[command(arg_required_else_help = true)]
pub(super) struct Arguments {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// The grammar of an application: its name, its version, and the texts that name both.
pub(super) fn command(app: &App) -> clap::Command {
    let own = app.commands.iter().map(Own::grammar);
    let command = own.fold(<Arguments as clap::CommandFactory>::command(), clap::Command::subcommand);
    let command = Manual::augment_subcommands(command)
        .name(app.name)
        .bin_name(app.name)
        .version(app.version)
        .long_version(long_version(app))
        .about(app.about);
    help::write(command, app)
}

/// A command of the application that has the name of another one.
pub(super) fn taken(app: &App) -> Option<&'static str> {
    let of_others = |name: &str| Command::has_subcommand(name) || Manual::has_subcommand(name) || name == "help";
    let names = app.commands.iter().map(|own| own.name).enumerate();
    let twice = |at: usize, name: &str| app.commands[..at].iter().any(|other| other.name == name);
    names.into_iter().find(|(at, name)| of_others(name) || twice(*at, name)).map(|(_, name)| name)
}

/// The version with what a report of a fault needs: the library, the system, how it was built.
fn long_version(app: &App) -> String {
    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    let (system, machine) = (std::env::consts::OS, std::env::consts::ARCH);
    format!("{}\ntool-runtime {}\n{system} {machine}, {build} build", app.version, env!("CARGO_PKG_VERSION"))
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(super) struct Global {
    /// The policy (TOML, or JSON when the name ends in .json); the application's own by default
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) policy: Option<PathBuf>,
    /// The folder of the application's data; `data` by default
    #[arg(long, global = true, value_name = "DIR")]
    pub(super) data: Option<PathBuf>,
    /// The store of records, calls that wait and shared runs: sqlite:FILE or `postgres://..`; in memory by default. A URL
    /// with a password belongs into the environment or the configuration file, because others can see the command line
    #[arg(long, global = true, value_name = "URL")]
    pub(super) store: Option<String>,
    #[command(flatten)]
    pub(super) store_options: StoreOptions,
    /// The principal to act for, as the policy names it
    #[arg(long, global = true, value_name = "NAME")]
    pub(super) principal: Option<String>,
    /// The tenant to act in
    #[arg(long, global = true, value_name = "NAME")]
    pub(super) tenant: Option<String>,
    /// A role of the principal; repeat it for several
    #[arg(long = "role", global = true, value_name = "NAME")]
    pub(super) roles: Vec<String>,
    /// An attribute of the principal; repeat it for several
    #[arg(long = "attribute", global = true, value_name = "NAME=VALUE", value_parser = values::attribute)]
    pub(super) attributes: Vec<(String, String)>,
    /// Print JSON on stdout, and an error as one JSON object on stderr
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Print no progress, notes or hints
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(super) quiet: bool,
    /// Log to stderr, failures of tools and models with their details included; -vv and -vvv log more
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(super) verbose: u8,
    /// Log to stderr at a level (error, warn, info, debug, trace) or by a filter such as
    /// `warn,tool_runtime=debug`, or to a file; repeat it for both. Without it `RUST_LOG` is the filter
    #[arg(long, global = true, value_name = "FILTER|FILE")]
    pub(super) log: Vec<String>,
    /// When to use colours
    #[arg(long, global = true, value_enum, value_name = "WHEN")]
    pub(super) color: Option<Color>,
    /// The configuration file
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List the tools: effect, execution, what the policy decides, hash, source
    List,
    /// Show one definition
    Show {
        /// The name of the tool
        name: String,
        /// The form to show it in
        #[arg(long = "as", value_parser = values::forms(), default_value = "spec", value_name = "FORM")]
        format: Form,
        /// Close the schema for a provider's strict mode
        #[arg(long)]
        strict: bool,
    },
    /// Print the parts of a provider's request that offer the visible tools
    Export {
        /// The provider's format
        #[arg(long = "as", value_parser = values::formats(), value_name = "FORMAT")]
        format: Format,
        /// Close the schemas for the provider's strict mode
        #[arg(long)]
        strict: bool,
        /// Only the tools that fit this request
        #[arg(long, value_name = "QUERY")]
        pick: Option<String>,
        /// How many tools to pick at most
        #[arg(short, value_name = "TOOLS", default_value_t = 3, value_parser = pick::most, requires = "pick")]
        k: usize,
    },
    /// Rank the visible tools, or those of a file, by how well they fit a request
    Pick(Pick),
    /// Report every problem of the catalog and the policy, and changes since a lock; fails if there are any
    Check(Check),
    /// Run one call through the gate
    Call(Call),
    /// Talk to a model whose calls go through the gate, or replay a recorded response
    Chat(Chat),
    /// List, show and decide the calls that wait for a person or a client
    Approvals {
        #[command(subcommand)]
        action: Approvals,
    },
    /// List the grants of the tenant in the store, add one, or take one back
    Grants {
        #[command(subcommand)]
        action: Grants,
    },
    /// List, check and export records, and anchor their chains
    Audit {
        #[command(subcommand)]
        action: Audit,
    },
    /// Explain what the policy decides, or decide calls of the past again under another one
    Policy {
        #[command(subcommand)]
        action: Policy,
    },
    /// Serve the tools to clients of the Model Context Protocol (MCP), and bring in those of its servers
    #[cfg(any(feature = "mcp-client", feature = "mcp-server"))]
    Mcp {
        #[command(subcommand)]
        action: McpAction,
    },
    /// Continue the conversations of a store (`--store`), together with other workers
    Worker(Box<Worker>),
    /// Make or migrate the tables of a store
    Store {
        #[command(subcommand)]
        action: StoreAction,
    },
}

/// The commands that come behind those of the application.
#[derive(Debug, Subcommand)]
pub(super) enum Manual {
    /// Print the completions for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page, as roff
    Man {
        /// A command; the overview without one
        command: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum Policy {
    /// Say which rule decides on a tool, and why: when tools are shown, when a call arrives, and once its arguments are fixed
    Explain(Explain),
    /// Decide recorded calls again under another policy, and print what was decided then and now with both rules; fails if
    /// they differ
    Replay(Replay),
}

#[derive(Debug, Args)]
pub(super) struct Replay {
    /// Records as JSON lines, as `audit export`, `call --view audit` and `replay` print them; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub(super) records: PathBuf,
    /// The other policy
    #[arg(long, value_name = "POLICY")]
    pub(super) with: PathBuf,
    /// A label that every run has from its start; repeat it for several
    #[arg(long = "label", value_name = "NAME")]
    pub(super) labels: Vec<String>,
    /// Print only the calls on which they differ, and the counts
    #[arg(long)]
    pub(super) differences: bool,
}

#[derive(Debug, Args)]
pub(super) struct Explain {
    /// The name of the tool
    pub(super) name: String,
    /// A label of the run; repeat it for several
    #[arg(long = "label", value_name = "NAME")]
    pub(super) labels: Vec<String>,
    /// Who makes the call: `direct` or `graph:NAME`
    #[arg(long, value_name = "CALLER", default_value = "direct", value_parser = values::caller)]
    pub(super) caller: Caller,
    /// The arguments as JSON, `-` for standard input, `@FILE` for a file
    #[arg(long, value_name = "JSON")]
    pub(super) arguments: Option<String>,
}
