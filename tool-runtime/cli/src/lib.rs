//! A command line that an application embeds: describe the application with [`App`], and call [`main`].
//!
//! The application supplies a name, a catalog, a policy and its adapters. The command line adds commands for
//! definitions and the policy (`list`, `show`, `export`, `pick`, `check`, `policy`), for calls and conversations
//! (`call`, `chat`, `worker`), for decisions (`approvals`, `grants`, `outcomes`), for webhooks (`notices`), for records
//! (`audit`, `store`) and for MCP (`mcp`). [`AppCommand`] adds the application's own commands.
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! use tool_runtime::Capabilities;
//! use tool_runtime_cli::{Adapters, App};
//!
//! fn main() -> ExitCode {
//!     let app = App::new("mine", env!("CARGO_PKG_VERSION"), "My tools")
//!         .policy("allowed_tools = []")
//!         .principal("ada")
//!         .adapters(|_data| Ok(Adapters::new(Capabilities::new())));
//!     tool_runtime_cli::main(&app)
//! }
//! ```
//!
//! Data goes to stdout, messages to stderr. With `--json` an error is one line on stderr:
//! `{"error":{"code":"..","message":".."}}`. Exit codes: 0 success; 1 the tool, the model or the command failed; 2
//! wrong usage, or input, settings, a policy or a store that cannot be used; 3 the policy, a budget or a person denied
//! the call, the call names a tool that the run does not have, or the approval is late or does not fit; 4 the arguments
//! are invalid or too large; 5 a person has to approve the call; 6 a client has to answer it.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod accounts;
mod adapters;
mod app;
mod approvals;
mod args;
mod attend;
mod audit;
mod call;
mod catalog;
mod chat;
mod check;
mod command;
mod config;
mod definitions;
mod describe;
mod endpoint;
mod exit;
mod fold;
mod follow_up;
mod frozen;
mod grants;
mod help;
mod http_record;
pub mod input;
mod log;
mod manual;
#[cfg(any(feature = "mcp-client", feature = "mcp-server"))]
mod mcp;
mod notices;
mod outcomes;
mod pick;
mod places;
mod policy;
mod private_file;
mod progress;
mod recorded;
mod replace;
mod saved;
mod session;
mod store;
mod table;
pub mod terminal;
mod text;
mod tree;
mod values;
mod webhook;
mod worker;
mod written;

pub use adapters::Adapters;
pub use app::App;
pub use command::AppCommand;
pub use definitions::{Definition, read_definitions};
pub use exit::{Exit, Failure};
pub use progress::Progress;
pub use recorded::read_response;
pub use session::{Cli, Gate};
pub use values::formats;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{ArgMatches, FromArgMatches, Subcommand as _};
use tool_runtime::catalog::PickOptions;

use crate::args::{Arguments, Command, Manual};
use crate::command::Own;
use crate::config::{Global, Settings};

/// Runs the command line of an application with the arguments of this process, and returns its exit code.
#[must_use]
pub fn main(app: &App) -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    // clap has not parsed `--json` yet, but a usage error has to be JSON, too.
    let json = words.iter().skip(1).take_while(|word| *word != "--").any(|word| word == "--json");
    let ended = run(app, words);
    terminal::clear_progress();
    if terminal::lost_output() {
        let failure = Failure::failed("the output could not be written; check the free space").code("output_lost");
        return report(&failure, json);
    }
    match ended {
        Ok(_) if log::lost_a_record() => report(&log::record_lost(), json),
        Ok(exit) => exit.into(),
        Err(failure) => report(&failure, json),
    }
}

fn run(app: &App, words: Vec<OsString>) -> Result<Exit, Failure> {
    if let Some(own) = args::taken(app) {
        let text = format!(
            "the application's command `{own}` has the name of a built-in command or is added twice; rename it"
        );
        return Err(Failure::failed(text));
    }
    let matches = match args::command(app).try_get_matches_from(words) {
        Ok(matches) => matches,
        Err(error) => return unparsed(&error),
    };
    let (global, chosen) = match Chosen::of(app, &matches) {
        Ok(chosen) => chosen,
        Err(error) => return unparsed(&error),
    };
    let settings = Settings::read(app.name, app.data.as_deref(), global)?;
    terminal::configure(settings.color, settings.quiet);
    log::install(app.layers.take(), &settings)?;
    let cli = Cli {
        app,
        settings,
        opened: tokio::sync::OnceCell::new(),
        #[cfg(feature = "mcp-client")]
        servers: tokio::sync::OnceCell::new(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::failed(format!("the async runtime did not start: {error}")))?;
    let ended = runtime.block_on(async {
        #[cfg(feature = "mcp-client")]
        if let Chosen::Command(command) = &chosen
            && let Some(awaited) = command.awaited()
        {
            cli.connect(awaited).await?;
        }
        let ended = match chosen {
            Chosen::Command(command) => Box::pin(dispatch(&cli, *command)).await,
            Chosen::Own(own, matches) => own.run(matches, &cli).await,
            Chosen::Manual(Manual::Completions { shell }) => Ok(manual::completions(app, shell)),
            Chosen::Manual(Manual::Man { command }) => manual::page(app, command.as_deref()),
        };
        let closed = cli.close().await;
        ended.and_then(|exit| closed.map(|()| exit))
    });
    // The process does not wait for a tool that still runs on a blocking thread.
    runtime.shutdown_background();
    ended
}

/// The chosen command.
enum Chosen<'a> {
    Command(Box<Command>),
    /// A command of the application.
    Own(&'a Own, &'a ArgMatches),
    Manual(Manual),
}

impl<'a> Chosen<'a> {
    fn of(app: &'a App, matches: &'a ArgMatches) -> Result<(Global, Self), clap::Error> {
        let (name, below) = matches.subcommand().unwrap_or(("", matches));
        if let Some(own) = app.commands.iter().find(|own| own.name == name) {
            return Ok((Global::from_arg_matches(matches)?, Self::Own(own, below)));
        }
        if Manual::has_subcommand(name) {
            return Ok((Global::from_arg_matches(matches)?, Self::Manual(Manual::from_arg_matches(matches)?)));
        }
        let Arguments { global, command } = Arguments::from_arg_matches(matches)?;
        Ok((global, Self::Command(Box::new(command))))
    }
}

/// Prints help and version on stdout. Turns any other message of clap into a usage error.
fn unparsed(error: &clap::Error) -> Result<Exit, Failure> {
    let text = error.render().to_string();
    if !error.use_stderr() {
        terminal::part(&text);
        return Ok(Exit::Done);
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return Err(Failure::usage(format!("a command is missing\n\n{}", text.trim_end())));
    }
    Err(Failure::usage(text.trim_start_matches("error: ").trim_end()))
}

async fn dispatch(cli: &Cli<'_>, command: Command) -> Result<Exit, Failure> {
    match command {
        Command::List => catalog::list(cli),
        Command::Show { name, format, strict } => catalog::show(cli, &name, format, strict),
        Command::Export { format, strict, pick, k } => {
            let picked = pick.as_deref().map(|query| (query, PickOptions::new(k)));
            catalog::export(cli, format, strict, picked)
        }
        Command::Pick(command) => pick::pick(cli, &command),
        Command::Check(lock) => check::check(cli, &lock),
        Command::Call(call) => Box::pin(call::call(cli, call)).await,
        Command::Chat(chat) => Box::pin(chat::chat(cli, chat)).await,
        Command::Approvals { action } => Box::pin(approvals::approvals(cli, action)).await,
        Command::Grants { action } => grants::grants(cli, action).await,
        Command::Outcomes { action } => outcomes::outcomes(cli, action).await,
        Command::Notices { action } => notices::notices(cli, action).await,
        Command::Audit { action } => audit::audit(cli, action).await,
        Command::Policy { action } => policy::policy(cli, action),
        #[cfg(any(feature = "mcp-client", feature = "mcp-server"))]
        Command::Mcp { action } => Box::pin(mcp::mcp(cli, action)).await,
        Command::Worker(command) => worker::worker(cli, *command).await,
        Command::Store { action } => store::command(cli, &action).await,
    }
}

fn report(failure: &Failure, json: bool) -> ExitCode {
    if json {
        terminal::message(&terminal::safe_json(&failure.to_json()));
    } else {
        // The message can quote untrusted text: names of files, keys and options, and errors of libraries.
        let text = terminal::safe_lines(&failure.message);
        terminal::message(&format!("{} {text}", terminal::tone(terminal::Tone::Bad, "error:")));
    }
    failure.exit.into()
}
