//! The command line that an application embeds: [`App`] and [`main`].
//!
//! Data goes to stdout, messages to stderr. With `--json` an error is one line on stderr:
//! `{"error":{"code":"..","message":".."}}`. Exit codes: 0 done, 1 the tool failed, 2 usage or unreadable input,
//! 3 denied, 4 arguments invalid, 5 approval needed, 6 the client must act.

mod accounts;
mod app;
mod approvals;
mod args;
mod attend;
mod audit;
mod call;
mod catalog;
mod chat;
mod check;
mod config;
mod definitions;
mod describe;
mod exit;
mod fold;
mod frozen;
mod grants;
mod http_record;
mod hydrate;
mod input;
mod listing;
mod log;
mod manual;
#[cfg(any(feature = "mcp-client", feature = "mcp-server"))]
mod mcp;
mod pick;
mod places;
mod policy;
mod progress;
mod recorded;
mod replace;
mod replay;
mod saved;
mod session;
mod store;
mod table;
mod terminal;
mod wire;
mod worker;

pub use app::{Adapters, App};
pub(crate) use hydrate::hydrate;
pub(crate) use terminal::safe;

use std::ffi::OsString;
use std::process::ExitCode;

use args::{Arguments, Command};
use clap::FromArgMatches;
use clap::error::ErrorKind;
use config::Settings;
use exit::{Exit, Failure};
use session::Cli;

use crate::catalog::PickOptions;

/// Runs the command line of an application over the arguments of this process and returns its exit code.
#[must_use]
pub fn main(app: &App) -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    // A usage error has to be JSON too, although nothing was parsed.
    let json = words.iter().skip(1).take_while(|word| *word != "--").any(|word| word == "--json");
    let ended = run(app, words);
    terminal::clear_progress();
    if terminal::lost_output() {
        let failure = Failure::failed("the output could not be written: is there room for it?").code("output_lost");
        return report(&failure, json);
    }
    match ended {
        Ok(_) if log::lost_a_record() => {
            let text = "a record could not be kept: what happened is in no audit (-v says why)";
            report(&Failure::failed(text).code("record_lost"), json)
        }
        Ok(exit) => exit.into(),
        Err(failure) => report(&failure, json),
    }
}

fn run(app: &App, words: Vec<OsString>) -> Result<Exit, Failure> {
    let parsed = args::command(app).try_get_matches_from(words);
    let arguments = match parsed.and_then(|matches| Arguments::from_arg_matches(&matches)) {
        Ok(arguments) => arguments,
        Err(error) => return unparsed(&error),
    };
    let Arguments { global, command } = arguments;
    let settings = Settings::read(app.name, global)?;
    terminal::configure(settings.color, settings.quiet);
    log::install(app, &settings)?;
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
        if let Some(awaited) = command.awaited() {
            cli.connect(awaited).await?;
        }
        let ended = Box::pin(dispatch(&cli, command)).await;
        let closed = cli.close().await;
        ended.and_then(|exit| closed.map(|()| exit))
    });
    // A tool that was left on a blocking thread must not keep the process alive.
    runtime.shutdown_background();
    ended
}

/// Help and version are data; anything else that clap has to say is a usage error.
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
        Command::Audit { action } => audit::audit(cli, action).await,
        Command::Policy { action } => policy::policy(cli, action),
        #[cfg(any(feature = "mcp-client", feature = "mcp-server"))]
        Command::Mcp { action } => Box::pin(mcp::mcp(cli, action)).await,
        Command::Worker(command) => worker::worker(cli, *command).await,
        Command::Store { action } => store::command(cli, &action).await,
        Command::Replay { format, files, user_text } => Box::pin(replay::replay(cli, format, &files, user_text)).await,
        Command::Wire { direction } => wire::wire(&direction),
        Command::Hydrate { tools, calls } => hydrate(&tools, &calls),
        Command::Completions { shell } => Ok(manual::completions(cli.app, shell)),
        Command::Man { command } => manual::page(cli.app, command.as_deref()),
    }
}

fn report(failure: &Failure, json: bool) -> ExitCode {
    if json {
        terminal::message(&terminal::safe_json(&failure.to_json()));
    } else {
        // It may quote names of files, keys and options, and what a library says of them.
        let text = terminal::safe_lines(&failure.message);
        terminal::message(&format!("{} {text}", terminal::tone(terminal::Tone::Bad, "error:")));
    }
    failure.exit.into()
}
