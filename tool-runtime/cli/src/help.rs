//! The parts of the help after the options: examples, exit codes, environment variables and files.

use std::fmt::Write as _;

use clap::Command;

use crate::app::App;
use crate::{places, terminal};

const EXIT: &str = "\
Exit codes:
  0  done; for chat: the model answered, even if calls failed
  1  the tool or the model failed
  2  usage, or input that cannot be read
  3  denied by the policy, a budget or a person; no such tool; a late or unfit approval
  4  the arguments are invalid or too large
  5  a call waits for an approval
  6  a call waits for its client";

/// The examples of the overview.
const FIRST: &str = "\
Examples:
  % list
  % call NAME '{\"key\": \"value\"}'
  % chat --model-url http://127.0.0.1:8080 --model MODEL
  % approvals list
  % audit show
  % policy explain NAME
  % help chat    # explains a command, with examples

Guide:
  https://github.com/tool-runtime/tool-runtime/blob/main/docs/src/command-line.md";

/// The commands with the examples in their help. `%` stands for the application's name.
const EXAMPLES: &[(&str, &str)] = &[
    ("list", "% list\n% list --json --principal bob --role admin"),
    ("show", "% show NAME\n% show NAME --as anthropic --strict"),
    ("export", "% export --as openai-chat > tools.json\n% export --as anthropic --pick \"List my tasks.\" -k 5"),
    ("pick", "% pick \"List my tasks.\"\n% pick -k 5 --tools tools.jsonl \"send an invoice\" --json"),
    (
        "check",
        "% check\n% check --policy policy.toml && echo in order\n% check --lock tools.lock\n\
         % check --lock tools.lock --write --accept major,review",
    ),
    (
        "call",
        "% call NAME '{\"key\": \"value\"}'\necho '{}' | % call NAME -\n% call NAME @arguments.json --view audit\n\
         % --json call NAME    # the whole result as one JSON object",
    ),
    (
        "chat",
        "% chat --model-url http://127.0.0.1:8080 --model MODEL \"Which tasks are open?\"\n\
         % chat --continue \"And which of them are late?\"\n\
         % chat --store sqlite:shared.db --continue RUN \"And who has them?\"\n\
         % chat --continue --file plan.png --file report.pdf \"Do these agree?\"\n\
         cat question.txt | % chat --model-url http://127.0.0.1:8080 --model MODEL -\n\
         % chat --transcript response.http \"Mark the task as done.\"",
    ),
    (
        "approvals",
        "% approvals list\n% approvals show CALL\n% approvals approve CALL\n% approvals deny CALL \"not this week\"\n\
         % approvals --store sqlite:shared.db approve RUN/CALL --as grace --role approver --wait 30s",
    ),
    ("outcomes", "% outcomes list\n% outcomes settle CALL --did-not-happen --as grace --reason 'the bank shows none'"),
    (
        "notices",
        "% notices list\n% notices send --watch    # the webhook is in the configuration file\n% notices retry NOTICE",
    ),
    ("grants", "% grants list\n% grants --store sqlite:shared.db revoke GRANT --as grace"),
    (
        "audit",
        "% audit show --outcome outcome_unknown\n\
         % audit show --store sqlite:shared.db --decider grace\n\
         % audit verify --anchors anchors.jsonl\n\
         % audit export --since 2026-01-01 > records.jsonl\n\
         % audit verify --records records.jsonl --part\n\
         % audit anchor >> anchors.jsonl\n\
         % audit purge --before 365d --as grace --reason 'our records are kept for a year' --dry-run\n\
         % audit hold add --principal ada --as grace --reason 'case 17/26'\n\
         % audit erase --principal ada --tenant acme --as grace --reason 'request of 2 May'",
    ),
    #[cfg(feature = "mcp-client")]
    (
        "mcp",
        "% mcp tools -- npx -y @modelcontextprotocol/server-filesystem /srv/documents\n\
         % mcp tools --id files --url http://127.0.0.1:8080/mcp\n\
         % mcp pin --policy policy.toml    # the servers of the configuration file\n\
         % mcp pin --policy policy.toml --tool mcp__files__read_file --id files -- npx -y SERVER",
    ),
    (
        "policy",
        "% policy explain NAME --role editor\n% policy explain NAME --label untrusted --arguments '{\"key\": \"value\"}'\n\
         % policy replay --records records.jsonl --with stricter.toml --differences\n\
         % audit export | % policy replay --records - --with stricter.toml",
    ),
    (
        "worker",
        "% --store sqlite:shared.db worker --model-url http://127.0.0.1:8080 --model MODEL --concurrency 4\n\
         % --store sqlite:shared.db worker put \"Mark the task as done.\"\n\
         % --store sqlite:shared.db worker post RUN \"And the other one, too.\"\n\
         % --store sqlite:shared.db worker show RUN",
    ),
    (
        "store",
        "% store migrate --store sqlite:shared.db\n% store migrate --store-prefix orders_    # as the owner of the database\n\
         % store restored --store sqlite:shared.db --anchors anchors.jsonl\n% store release --store sqlite:shared.db RUN\n\
         % store sweep --store sqlite:shared.db --for 10s",
    ),
];

/// The same for the commands that the help lists after the application's commands.
const MANUAL_EXAMPLES: &[(&str, &str)] = &[
    ("completions", "% completions bash > ~/.local/share/bash-completion/completions/%\n% completions fish | source"),
    ("man", "% man > %.1\n% man chat | man -l -"),
];

/// Adds examples, exit codes, environment variables and files to the help, and fits the help to the terminal.
pub(crate) fn write(command: Command, app: &App) -> Command {
    let first = FIRST.replace('%', app.name);
    let long = format!("{first}\n\n{}\n\n{EXIT}", settings(app));
    let mut command = command.after_help(format!("{first}\n\n{EXIT}")).after_long_help(long);
    let own = app.commands.iter().map(|own| (own.name, own.examples));
    // `mut_subcommand` moves each command to the end, so completions have this order, too.
    for (name, examples) in EXAMPLES.iter().copied().chain(own).chain(MANUAL_EXAMPLES.iter().copied()) {
        let examples = examples.replace('%', app.name).replace('\n', "\n  ");
        let text = format!("Examples:\n  {examples}\n\n{EXIT}");
        command = command.mut_subcommand(name, |one| one.after_help(text));
    }
    match terminal::width() {
        Some(width) => command.term_width(width),
        None => command.term_width(100),
    }
}

fn settings(application: &App) -> String {
    let app = application.name;
    let prefix = places::prefix(app);
    let mut text = String::from("Environment:\n");
    for (variable, meaning) in places::VARIABLES {
        let name = format!("{prefix}_{variable}");
        let _ = writeln!(text, "  {name:24}  {meaning}");
    }
    for (name, meaning) in &application.variables {
        let _ = writeln!(text, "  {name:24}  {meaning}");
    }
    text += "  NO_COLOR, CLICOLOR, TERM  whether colours are used\n  COLUMNS                   the width of tables and help\n";
    let (place, keys) = (places::usual_place(app), places::KEYS);
    let _ = write!(
        text,
        "\nConfiguration:\n  {place}, or the file that --config or {prefix}_CONFIG names: TOML with the keys\n  {keys}.\n  \
         An option on the command line wins over the environment, the environment over the file."
    );
    text
}
