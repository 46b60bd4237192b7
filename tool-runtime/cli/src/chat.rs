//! `chat`: a conversation with the model of an endpoint. Prints each call and its way through the gate.

mod autosave;
pub(crate) mod ended;
mod file;
mod line;
mod model;
mod prompt;
mod question;
mod receive;
mod restoring;
mod screen;
mod start;
mod talk;

pub(super) use autosave::Autosave;
pub(super) use model::{agent, offline};
pub(super) use screen::Described;
use screen::{Screen, json_line};
pub(super) use talk::Talk;

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use restoring::Restoring;
use serde::Serialize;
use tool_runtime::Outcome;
use tool_runtime::agent::{Input, ModelTurn};
use tool_runtime::call::{ClientAnswer, RunSummary};
use tool_runtime::wire::{Format, Message};

use crate::accounts::Account;
use crate::endpoint::Endpoint;
use crate::exit::{Exit, Failure};
use crate::session::{Cli, Gate, Sink};
use crate::text::{Why, option};
use crate::{input, log, places, recorded, table, terminal, values};

#[derive(Debug, Args)]
pub(crate) struct Chat {
    /// A recorded HTTP response (headers and chunking included) or a bare body, in place of an endpoint; `-` is
    /// standard input
    #[arg(long, value_name = "FILE", conflicts_with = "model_url")]
    pub(crate) transcript: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) endpoint: Endpoint,
    /// Continue the last conversation: the principal's newest in --store, or the last one of the data folder. If the
    /// first word of the prompt is the id of a conversation, continue that one
    #[arg(long = "continue", short = 'c', conflicts_with_all = ["transcript", "conversation"])]
    pub(crate) last: bool,
    /// Continue this conversation of the data folder, or this run of --store
    #[arg(long, value_name = "ID", conflicts_with = "transcript")]
    pub(crate) conversation: Option<String>,
    /// How long to wait for a conversation that a worker holds, for example 30s; by default the command fails at once
    #[arg(long, value_name = "TIME", value_parser = values::time, conflicts_with = "transcript")]
    pub(crate) wait: Option<Duration>,
    /// Answer a waiting client call before anything else: its id and the output as JSON, `-` or `@FILE`
    #[arg(
        long, num_args = 2, value_names = ["CALL", "JSON"], allow_hyphen_values = true, action = clap::ArgAction::Append
    )]
    pub(crate) answer: Vec<String>,
    /// Require answers that match the JSON Schema in this file, which describes an object; `-` is standard input. Only
    /// the JSON is printed on stdout
    #[arg(long, value_name = "FILE", conflicts_with = "transcript")]
    pub(crate) answer_schema: Option<PathBuf>,
    /// A file to send with the first prompt: an image, audio, video, a PDF or text; `-` is standard input. Repeat it
    /// for several, of at most 20 MiB in total
    #[arg(long, value_name = "FILE", conflicts_with = "transcript")]
    pub(crate) file: Vec<PathBuf>,
    /// The user's messages, each one a turn of the conversation; `-` is standard input. By default they are read at a
    /// prompt
    pub(crate) prompt: Vec<String>,
}

pub(super) async fn chat(cli: &Cli<'_>, mut chat: Chat) -> Result<Exit, Failure> {
    log::report_lost_records(cli.json());
    start::name_conversation(cli, &mut chat).await?;
    let endpoint = cli.settings.endpoint(&chat.endpoint);
    let prompts = prompts(&chat)?;
    if let Some(transcript) = &chat.transcript {
        let format = endpoint.format.unwrap_or(Format::OpenAiChat);
        return recorded::chat(cli, format, transcript, &prompts.join("\n")).await;
    }
    let agent = agent(&endpoint)?
        .ok_or_else(|| Failure::usage(format!("give `--transcript FILE` or {}", places::model_url(cli.app.name))))?;
    let answers = answers(&chat.answer)?;
    let interactive = prompts.is_empty() && std::io::stdin().is_terminal();
    if prompts.is_empty() && !interactive && !chat.file.is_empty() {
        return Err(Failure::usage("a prompt for `--file` is missing; write what the model should do with the file"));
    }
    let format = endpoint.format.unwrap_or(Format::OpenAiChat);
    let files = file::files(&chat.file, format, endpoint.model.as_deref())?;
    let gate = cli.open().await?;
    let schema = chat.answer_schema.as_deref().map(schema).transpose()?;
    let described = Described::default();
    let sink = match &schema {
        Some(_) if !cli.settings.json => shown(screen(cli, &gate, &described).silent()),
        _ => events(cli, &gate, &described),
    };
    let options = gate.options(Some(sink));
    let named = (&chat, title(&prompts));
    let (conversation, autosave) = start::conversation(cli, &gate, &agent, options.clone(), named).await?;
    let mut talk = Talk::new(cli, gate, conversation, autosave, described);
    talk.restoring = Some(Restoring { agent, options });
    talk.interactive = interactive;
    if interactive {
        prompt::greet(cli, &talk, &endpoint);
    }
    talk.files = files;
    talk.schema = schema;
    let conversed = converse(&mut talk, &prompts, answers).await;
    let handed_back = talk.hand_back().await;
    conversed.and(handed_back)?;
    if cli.settings.json {
        let run = talk.conversation.run();
        let accounts = run.balances().await?.into_iter().map(Into::into).collect();
        let (summary, gravest) = (run.summary(), talk.gravest_call());
        let document = LastLine { summary, gravest, accounts, turns: talk.conversation.turns() };
        terminal::line(&terminal::json(&document)?);
    } else if interactive {
        let (app, id, same) = (cli.app.name, option("--conversation", talk.autosave.id()), cli.same_party());
        terminal::note(&format!("continue with: {app} chat{id}{same}"));
    }
    Ok(talk.exit())
}

/// The last line that `--json` prints.
#[derive(Serialize)]
struct LastLine<'a> {
    summary: RunSummary,
    /// The most severe outcome of the calls; `None` if there were no calls.
    gravest: Option<Outcome>,
    /// The budgets of the policy, each with the used amount.
    accounts: Vec<Account>,
    turns: &'a [ModelTurn],
}

/// Returns the sink that prints the events of a conversation.
pub(super) fn events(cli: &Cli<'_>, gate: &Gate, described: &Described) -> Sink {
    if cli.settings.json { Arc::new(|event| json_line(&event)) } else { shown(screen(cli, gate, described)) }
}

fn shown(screen: Screen) -> Sink {
    Arc::new(move |event| screen.show(event))
}

fn screen(cli: &Cli<'_>, gate: &Gate, described: &Described) -> Screen {
    Screen::new(cli.settings.verbose > 0, described.clone()).explained(Why::of(
        cli.app.name,
        cli.same_party(),
        &gate.runner,
    ))
}

/// Continues waiting calls, sends the prompts of the command line, and then the prompts from the keyboard.
async fn converse(talk: &mut Talk<'_>, prompts: &[String], answers: Vec<ClientAnswer>) -> Result<(), Failure> {
    let posted = talk.take_post().await?;
    // The last process might have ended before the model answered. The history then ends with a message of the user or
    // a result, and is sent to the model again, unless there is a new prompt.
    let unanswered = !matches!(talk.conversation.history().last(), None | Some(Message::Assistant(_)));
    let unsettled = posted || !answers.is_empty() || talk.is_waiting() || (unanswered && prompts.is_empty());
    if unsettled && !talk.settle(answers).await? && !talk.interactive {
        talk.unsent(prompts);
        return Ok(());
    }
    for (at, prompt) in prompts.iter().enumerate() {
        if !talk.say(prompt).await? {
            talk.unsent(&prompts[at + 1..]);
            return Ok(());
        }
    }
    if talk.interactive { prompt::prompt_loop(talk).await } else { Ok(()) }
}

/// Returns the prompts of the command line; `-` is standard input.
fn prompts(chat: &Chat) -> Result<Vec<String>, Failure> {
    let continues = chat.last || chat.conversation.is_some();
    if chat.prompt.is_empty() && (chat.transcript.is_some() || !continues && !std::io::stdin().is_terminal()) {
        return Err(Failure::usage("a prompt is missing; write it, or `-` to read standard input"));
    }
    let files = chat.file.iter().chain(&chat.answer_schema).filter(|path| path.as_os_str() == "-");
    if chat.prompt.iter().filter(|prompt| *prompt == "-").count() + files.count() > 1 {
        return Err(Failure::usage("standard input can be read once; write one `-`"));
    }
    let read = |prompt: &String| match prompt.as_str() {
        "-" => input::text(input::stdin()?, "standard input"),
        _ => Ok(prompt.clone()),
    };
    let prompts = chat.prompt.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    if prompts.iter().any(|prompt| prompt.trim().is_empty()) {
        return Err(Failure::usage("a prompt is empty; write a message for the model"));
    }
    Ok(prompts)
}

/// Reads the schema for answers, and checks it.
fn schema(path: &Path) -> Result<String, Failure> {
    let name = path.display().to_string();
    let text = input::text(input::file(path)?, &name)?;
    match Input::new().answer_schema(&text) {
        Ok(_) => Ok(text),
        Err(problems) => {
            let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
            Err(Failure::usage(format!("{name} is not a schema for answers: {}", problems.join("; "))).code("schema"))
        }
    }
}

fn answers(given: &[String]) -> Result<Vec<ClientAnswer>, Failure> {
    given.chunks_exact(2).map(|pair| Ok(ClientAnswer::value(pair[0].as_str(), input::json_value(&pair[1])?))).collect()
}

/// Returns the title of a new conversation: the start of the first line of the first prompt.
fn title(prompts: &[String]) -> String {
    let first = prompts.first().map_or("conversation", |prompt| prompt.trim());
    table::cut(first.lines().next().unwrap_or_default(), 60)
}
