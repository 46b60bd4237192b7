//! [`AppCommand`]: a command that an application adds to its command line.

use std::future::Future;
use std::pin::Pin;

use clap::{ArgMatches, Args};

use crate::exit::{Exit, Failure};
use crate::session::Cli;

/// A command of an application, in addition to this package's commands. [`App::command`](crate::App::command) adds it.
///
/// The type derives [`clap::Args`] (clap 4): its fields are the arguments, and its doc comment is the help. The global
/// options (`--json`, `--policy`, ..) apply to the command, too. It prints data to stdout and messages to stderr
/// through [`terminal`](crate::terminal); the command line prints a returned [`Failure`].
///
/// ```no_run
/// use std::process::ExitCode;
/// use tool_runtime::{Capabilities, ToolCall};
/// use tool_runtime_cli::{Adapters, App, AppCommand, Cli, Exit, Failure, terminal};
///
/// /// Run a tool once with empty arguments, and print its outcome
/// #[derive(clap::Args)]
/// struct Probe {
///     /// The name of the tool
///     tool: String,
/// }
///
/// impl AppCommand for Probe {
///     const NAME: &'static str = "probe";
///     const EXAMPLES: &'static str = "% probe NAME";
///
///     async fn run(self, cli: &Cli<'_>) -> Result<Exit, Failure> {
///         let gate = cli.gate().await?;
///         let run = gate.runner.run(gate.options(None));
///         let result = run.exec(ToolCall::text("", self.tool, "{}")).await;
///         terminal::line(result.outcome().code());
///         Ok(Exit::of(result.outcome()))
///     }
/// }
///
/// fn main() -> ExitCode {
///     let app = App::new("mine", env!("CARGO_PKG_VERSION"), "My tools")
///         .adapters(|_data| Ok(Adapters::new(Capabilities::new())))
///         .command::<Probe>();
///     tool_runtime_cli::main(&app)
/// }
/// ```
pub trait AppCommand: Args {
    /// The name on the command line. It must differ from `help`, from the names of this package's commands and from the
    /// names of the application's other commands. Otherwise every command fails.
    const NAME: &'static str;

    /// The examples in the help, one per line; `%` is replaced by the application's name.
    const EXAMPLES: &'static str;

    /// Runs the command. The returned [`Exit`] is the exit code of the process.
    fn run(self, cli: &Cli<'_>) -> impl Future<Output = Result<Exit, Failure>>;
}

type Running<'a> = Pin<Box<dyn Future<Output = Result<Exit, Failure>> + 'a>>;

/// A type-erased command of the application.
pub(crate) struct Own {
    pub(crate) name: &'static str,
    pub(crate) examples: &'static str,
    augment: fn(clap::Command) -> clap::Command,
    run: for<'a> fn(&'a ArgMatches, &'a Cli<'a>) -> Running<'a>,
}

impl Own {
    pub(crate) fn of<C: AppCommand + 'static>() -> Self {
        Self { name: C::NAME, examples: C::EXAMPLES, augment: C::augment_args, run: run::<C> }
    }

    /// Returns the grammar of the command.
    pub(crate) fn grammar(&self) -> clap::Command {
        (self.augment)(clap::Command::new(self.name))
    }

    pub(crate) async fn run(&self, matches: &ArgMatches, cli: &Cli<'_>) -> Result<Exit, Failure> {
        (self.run)(matches, cli).await
    }
}

fn run<'a, C: AppCommand + 'static>(matches: &'a ArgMatches, cli: &'a Cli<'a>) -> Running<'a> {
    Box::pin(async move {
        // clap has checked the arguments with the same grammar.
        let command = C::from_arg_matches(matches).map_err(|error| Failure::usage(error.to_string()))?;
        command.run(cli).await
    })
}
