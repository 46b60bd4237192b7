//! The prompt loop of `chat`: the greeting, the commands such as `/help`, and the wait for decisions of other people.

use tool_runtime::ToolSpec;

use crate::chat::Talk;
use crate::chat::line::Line;
use crate::endpoint::Endpoint;
use crate::exit::Failure;
use crate::session::Cli;
use crate::{table, terminal};

const HELP: &str = "   /help   shows this list
   /tools  lists the tools that the model can call
   /quit   leaves, like Ctrl-D and Ctrl-C at the prompt. The conversation is saved after every turn
   Ctrl-C  interrupts a turn, or the wait for a decision
Every other line is a message for the model. A message that begins with a slash is typed with a space before it.";

/// Prints the greeting: the model, the policy, and the most important commands.
pub(super) fn greet(cli: &Cli<'_>, talk: &Talk<'_>, endpoint: &Endpoint) {
    let (app, settings) = (cli.app, &cli.settings);
    let model = endpoint.model.as_deref().unwrap_or_default();
    let host = endpoint.model_url.as_deref().map(host).unwrap_or_default();
    let policy = match (&settings.policy, app.policy) {
        (Some(path), _) => format!("the policy {}", path.display()),
        (None, Some(_)) => format!("the policy of {}", app.name),
        (None, None) => "no policy, so that every tool is denied".to_owned(),
    };
    let tools = match tools(talk).count() {
        1 => "1 tool".to_owned(),
        many => format!("{many} tools"),
    };
    let version = app.version;
    let text = format!("{} {version}: the model {model} at {host}, {tools}, {policy}", app.name);
    terminal::note(&terminal::safe(&text));
    terminal::note("/help shows the commands, /tools the tools; /quit or Ctrl-D leaves");
}

/// Returns the scheme, host and port of an address, without a password, a path or a key.
fn host(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    if scheme.is_empty() { host.to_owned() } else { format!("{scheme}://{host}") }
}

fn tools<'t>(talk: &'t Talk<'_>) -> impl Iterator<Item = &'t ToolSpec> {
    talk.conversation.run().catalog().specs()
}

/// A line from the keyboard.
#[derive(Debug, PartialEq, Eq)]
enum Typed<'l> {
    Nothing,
    Help,
    Tools,
    Quit,
    /// The line looks like a command, but there is no such command.
    Unknown(&'l str),
    Message(&'l str),
}

impl<'l> Typed<'l> {
    fn of(line: &'l str) -> Self {
        let first = line.split_whitespace().next().unwrap_or_default();
        let is_command = |word: &str| !word.is_empty() && word.chars().all(|letter| letter.is_ascii_alphabetic());
        match first {
            "" => Self::Nothing,
            // A path such as `/etc/hosts` is a message, too.
            _ if !line.strip_prefix('/').is_some_and(|_| is_command(&first[1..])) => Self::Message(line),
            "/help" => Self::Help,
            "/tools" => Self::Tools,
            "/quit" | "/exit" => Self::Quit,
            word => Self::Unknown(word),
        }
    }
}

/// Reads messages until the person leaves. While a call waits for another decider or its client, the loop waits.
pub(super) async fn prompt_loop(talk: &mut Talk<'_>) -> Result<(), Failure> {
    loop {
        if talk.is_waiting() && !talk.paused {
            terminal::note("waiting for the decision or the answer; Ctrl-C returns to the prompt");
            talk.await_decision().await?;
            continue;
        }
        let Line::Text(line) = talk.keyboard.line("> ").await else { return Ok(()) };
        match Typed::of(&line) {
            Typed::Nothing if talk.is_waiting() => talk.ask_again().await?,
            Typed::Nothing => {}
            Typed::Help => terminal::message(HELP),
            Typed::Tools => list(talk),
            Typed::Quit => return Ok(()),
            Typed::Unknown(word) => {
                let word = terminal::safe(word);
                terminal::message(&format!(
                    "there is no command {word}, so nothing was sent; /help lists the commands"
                ));
            }
            Typed::Message(_) if talk.is_waiting() => {
                talk.keyboard.remember(&line);
                terminal::message(
                    "not sent, because a call waits; Enter waits for its decision, /quit leaves and keeps the conversation",
                );
            }
            Typed::Message(prompt) => {
                talk.keyboard.remember(&line);
                talk.say(prompt).await?;
            }
        }
    }
}

/// Lists the tools that the model can call.
fn list(talk: &Talk<'_>) {
    let first_line = |spec: &ToolSpec| spec.description.lines().next().unwrap_or_default().trim().to_owned();
    let row = |spec: &ToolSpec| [spec.name.to_string(), spec.effect.to_string(), first_line(spec)];
    let rows: Vec<_> = tools(talk).map(|spec| row(spec).map(|cell| terminal::safe(&cell))).collect();
    if rows.is_empty() {
        let app = talk.app();
        terminal::message(&format!("no tool is visible under this policy; `{app} list` prints the decision for each"));
    }
    table::messages(["TOOL", "EFFECT", "WHAT IT DOES"], &rows);
}

#[cfg(test)]
mod tests {
    use super::{Typed, host};

    #[test]
    fn what_is_a_command_and_what_is_a_message() {
        for (line, expected) in [
            ("", Typed::Nothing),
            ("  ", Typed::Nothing),
            ("/help", Typed::Help),
            ("/tools ", Typed::Tools),
            ("/quit", Typed::Quit),
            ("/exit now", Typed::Quit),
            ("/hlep me", Typed::Unknown("/hlep")),
            (" /help", Typed::Message(" /help")),
            ("/", Typed::Message("/")),
            ("/etc/hosts is what?", Typed::Message("/etc/hosts is what?")),
            ("what is /help", Typed::Message("what is /help")),
        ] {
            assert_eq!(Typed::of(line), expected, "{line}");
        }
    }

    #[test]
    fn an_address_is_shown_without_its_secrets() {
        assert_eq!(host("http://ada:secret@127.0.0.1:8080/v1?key=secret"), "http://127.0.0.1:8080");
        assert_eq!(host("https://example.com"), "https://example.com");
        assert_eq!(host("localhost:1/x"), "localhost:1");
    }
}
