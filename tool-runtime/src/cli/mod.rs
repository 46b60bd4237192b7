//! The command line that an application embeds: [`App`] and [`main`].
//!
//! Data goes to stdout, messages to stderr. Exit codes: 0 done, 1 the tool failed, 2 usage or unreadable input,
//! 3 denied, 4 arguments invalid, 5 approval needed, 6 the client must act.

mod app;
mod args;
mod call;
mod catalog;
mod chat;
mod exit;
mod http_record;
mod hydrate;
mod input;
mod recorded;
mod replay;
mod session;
mod terminal;
mod wire;

pub use app::{Adapters, App};

use std::process::ExitCode;

use args::{Arguments, Command};
use clap::{CommandFactory, FromArgMatches};
use exit::{Exit, Failure};

/// Runs the command line of an application and returns its exit code.
#[must_use]
pub fn main(app: &App) -> ExitCode {
    let command = Arguments::command().name(app.name).bin_name(app.name).version(app.version).about(app.about);
    let arguments = match command.try_get_matches().and_then(|matches| Arguments::from_arg_matches(&matches)) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are data, everything else is a usage error; clap knows which stream is which.
            let shown = error.print();
            return if shown.is_ok() && !error.use_stderr() { Exit::Done } else { Exit::Usage }.into();
        }
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report(&Failure::usage(format!("the async runtime did not start: {error}"))),
    };
    let ended = runtime.block_on(dispatch(app, arguments));
    // A tool that was left on a blocking thread must not keep the process alive.
    runtime.shutdown_background();
    if terminal::lost_output() {
        return report(&Failure::failed("the output could not be written: is there room for it?"));
    }
    match ended {
        Ok(exit) => exit.into(),
        Err(failure) => report(&failure),
    }
}

async fn dispatch(app: &App, arguments: Arguments) -> Result<Exit, Failure> {
    let Arguments { global, command } = arguments;
    match command {
        Command::List => catalog::list(app, &global),
        Command::Show { name, format, strict } => catalog::show(app, &name, format, strict),
        Command::Export { format, strict } => catalog::export(app, &global, format, strict),
        Command::Check => catalog::check(app, &global),
        Command::Call(call) => call::call(app, &global, call).await,
        Command::Chat(chat) => chat::chat(app, &global, chat).await,
        Command::Replay { format, files, user_text } => replay::replay(app, &global, format, &files, user_text).await,
        Command::Wire { direction } => wire::wire(&direction),
        Command::Hydrate { tools, calls } => hydrate::hydrate(&tools, &calls),
    }
}

fn report(failure: &Failure) -> ExitCode {
    terminal::message(&format!("error: {}", failure.message));
    failure.exit.into()
}
