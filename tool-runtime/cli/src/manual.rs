//! `completions` and `man`, generated from the grammar.

use clap_complete::Shell;

use crate::app::App;
use crate::exit::{Exit, Failure};
use crate::{args, terminal};

pub(super) fn completions(app: &App, shell: Shell) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut args::command(app), app.name, &mut script);
    terminal::bytes(&script);
    Exit::Done
}

pub(super) fn page(app: &App, name: Option<&str>) -> Result<Exit, Failure> {
    let mut command = args::command(app).disable_help_subcommand(true);
    command.build();
    let chosen = match name {
        None => command,
        Some(name) => {
            let found = command.get_subcommands().find(|one| one.get_name() == name).cloned();
            let title = format!("{}-{name}", app.name);
            found
                .ok_or_else(|| Failure::usage(format!("there is no command `{name}`; see `{} help`", app.name)))?
                .name(title)
        }
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(chosen).render(&mut page).map_err(|error| Failure::failed(error.to_string()))?;
    terminal::bytes(&page);
    Ok(Exit::Done)
}
