//! The grammar of the command line.

use clap::{Parser, Subcommand};
use clap_complete::Shell;
use tool_runtime::wire::Format;

use crate::app::App;
use crate::approvals::Approvals;
use crate::audit::Audit;
use crate::call::Call;
use crate::chat::Chat;
use crate::check::Check;
use crate::command::Own;
use crate::config::Global;
use crate::grants::Grants;
#[cfg(any(feature = "mcp-client", feature = "mcp-server"))]
use crate::mcp::McpAction;
use crate::notices::Notices;
use crate::outcomes::Outcomes;
use crate::pick::PickArgs;
use crate::policy::Policy;
#[cfg(feature = "mcp-client")]
use crate::session::Awaited;
use crate::store::StoreAction;
use crate::values::Form;
use crate::worker::WorkerArgs;
use crate::{help, values};

#[derive(Debug, Parser)]
#[command(arg_required_else_help = true)]
pub(super) struct Arguments {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// Returns the grammar with the name, the version and the commands of an application.
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

/// Returns the name of a command of the application that another command already has.
pub(super) fn taken(app: &App) -> Option<&'static str> {
    let of_others = |name: &str| Command::has_subcommand(name) || Manual::has_subcommand(name) || name == "help";
    let names = app.commands.iter().map(|own| own.name).enumerate();
    let twice = |at: usize, name: &str| app.commands[..at].iter().any(|other| other.name == name);
    names.into_iter().find(|(at, name)| of_others(name) || twice(*at, name)).map(|(_, name)| name)
}

/// Returns the version of the application, with details for bug reports: this package, the system and the build.
fn long_version(app: &App) -> String {
    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    let (system, machine) = (std::env::consts::OS, std::env::consts::ARCH);
    format!(
        "{}\n{} {}\n{system} {machine}, {build} build",
        app.version,
        env!("CARGO_PKG_NAME"),
        env!("CARGO_PKG_VERSION")
    )
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List the tools with their effect, execution, policy decision, hash and source
    List,
    /// Show one definition: its arguments, and who sees which part of its output
    Show {
        /// The name of the tool
        name: String,
        /// Print it as data in this form
        #[arg(long = "as", value_parser = values::forms(), value_name = "FORM")]
        format: Option<Form>,
        /// Print the schema as a provider's strict mode needs it: no object accepts undeclared members
        #[arg(long)]
        strict: bool,
    },
    /// Print the parts of a provider's request that offer the visible tools
    Export {
        /// The provider's format
        #[arg(long = "as", value_parser = values::formats(), value_name = "FORMAT")]
        format: Format,
        /// Print the schemas as the provider's strict mode needs them: no object accepts undeclared members
        #[arg(long)]
        strict: bool,
        /// Only the tools that fit this request
        #[arg(long, value_name = "QUERY")]
        pick: Option<String>,
        /// The maximum number of tools to pick
        #[arg(short, value_name = "TOOLS", default_value_t = 3, value_parser = values::most, requires = "pick")]
        k: usize,
    },
    /// Rank the visible tools, or the tools of a file, by how well they fit a request
    Pick(PickArgs),
    /// Report every problem of the catalog and the policy, and changes since a lock was written; fails if there are any
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
    /// List, add or revoke the grants of the tenant
    Grants {
        #[command(subcommand)]
        action: Grants,
    },
    /// List and settle the calls whose outcome is unknown
    Outcomes {
        #[command(subcommand)]
        action: Outcomes,
    },
    /// List, send and retry the notices about calls, for a webhook
    Notices {
        #[command(subcommand)]
        action: Notices,
    },
    /// List, check and export records, and anchor their chains
    Audit {
        #[command(subcommand)]
        action: Audit,
    },
    /// Explain the decision of the policy on a tool, or decide recorded calls again under another policy
    Policy {
        #[command(subcommand)]
        action: Policy,
    },
    /// Serve the tools to clients of the Model Context Protocol (MCP), or review and pin the tools of MCP servers
    #[cfg(any(feature = "mcp-client", feature = "mcp-server"))]
    Mcp {
        #[command(subcommand)]
        action: McpAction,
    },
    /// Continue the conversations of a store (`--store`), together with other workers
    Worker(Box<WorkerArgs>),
    /// Create or migrate the tables of a store, and hold back or release runs after a restore
    Store {
        #[command(subcommand)]
        action: StoreAction,
    },
}

/// The commands that the help lists after the application's commands.
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

#[cfg(feature = "mcp-client")]
impl Command {
    /// Returns the MCP servers of the configuration file that the command waits for; `None` for a command that starts
    /// without them. The catalog of such a command does not have their tools.
    pub(crate) fn awaited(&self) -> Option<Awaited<'_>> {
        match self {
            #[cfg(feature = "mcp-server")]
            Self::Mcp { action: McpAction::Serve { .. } } => Some(Awaited::Later),
            Self::Call(call) => Some(Awaited::Of(&call.name)),
            Self::Show { name, .. } => Some(Awaited::Of(name)),
            Self::Policy { action: Policy::Explain(explain) } => Some(Awaited::Of(&explain.name)),
            // The tools of a file replace those of the catalog.
            Self::Pick(pick) if pick.tools.is_some() => None,
            Self::List
            | Self::Pick(_)
            | Self::Grants { action: Grants::Add(_) }
            | Self::Outcomes { action: Outcomes::Settle(_) }
            | Self::Store { action: StoreAction::Sweep { tools: true, .. } }
            | Self::Export { .. }
            | Self::Check(_)
            | Self::Chat(_)
            | Self::Approvals { .. }
            | Self::Policy { .. }
            | Self::Worker(_) => Some(Awaited::All),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::taken;
    use crate::{App, AppCommand, Cli, Exit, Failure};

    #[derive(clap::Args)]
    struct Own<const LISTS: bool>;

    impl<const LISTS: bool> AppCommand for Own<LISTS> {
        const NAME: &'static str = if LISTS { "list" } else { "probe" };
        const EXAMPLES: &'static str = "% probe";

        async fn run(self, _: &Cli<'_>) -> Result<Exit, Failure> {
            Ok(Exit::Done)
        }
    }

    #[test]
    fn a_command_has_a_name_of_its_own() {
        let app = || App::new("mine", "0.1.0", "Mine");
        assert_eq!(taken(&app().command::<Own<false>>()), None);
        assert_eq!(taken(&app().command::<Own<true>>()), Some("list"));
        assert_eq!(taken(&app().command::<Own<false>>().command::<Own<false>>()), Some("probe"));
    }
}
