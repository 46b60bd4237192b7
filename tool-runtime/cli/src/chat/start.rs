//! Finds or creates the conversation that `chat` continues.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use tool_runtime::RunOptions;
use tool_runtime::agent::{Agent, Conversation, LeasedRun, RunQueue, SavedConversation};
use tool_runtime::runner::ResumeError;
use tool_runtime::store::{DocumentKind, Key, Query, Store as _, StoredDocument, StoredRun};

use crate::chat::Chat;
use crate::chat::autosave::Autosave;
use crate::chat::ended::unrestored;
use crate::exit::Failure;
use crate::saved::{ConversationFiles, Document, OpenDocument};
use crate::session::{Cli, Gate};
use crate::{attend, terminal};

/// The interval at which `--wait` checks whether a run can be leased.
const LOOK: Duration = Duration::from_millis(200);
/// The minimum length of a hexadecimal word after `--continue` that is taken for an unknown id, and not for a prompt.
const SHORTEST_ID: usize = 8;

/// Handles `--continue ID`: if the first word of the prompt is the id of a conversation, selects that conversation.
pub(super) async fn name_conversation(cli: &Cli<'_>, chat: &mut Chat) -> Result<(), Failure> {
    let Some(first) = chat.prompt.first().filter(|_| chat.last) else { return Ok(()) };
    let is_word = !first.chars().any(char::is_whitespace) && first != "-";
    if is_word && (ConversationFiles::of(cli).has(first) || stored(cli, first).await?.is_some()) {
        (chat.conversation, chat.last) = (Some(chat.prompt.remove(0)), false);
        return Ok(());
    }
    let is_id = |letter: char| letter.is_ascii_digit() || matches!(letter, 'a'..='f' | '-');
    if first.len() >= SHORTEST_ID && first.chars().all(is_id) {
        return Err(unknown(cli, first));
    }
    Ok(())
}

/// Starts or continues the conversation that the options name.
pub(super) async fn conversation(
    cli: &Cli<'_>,
    gate: &Gate,
    agent: &Agent,
    options: RunOptions,
    (chat, title): (&Chat, String),
) -> Result<(Conversation, Autosave), Failure> {
    let shared = cli.settings.store.is_some();
    let id = match (&chat.conversation, chat.last) {
        (Some(id), _) if ConversationFiles::of(cli).has(id) => return saved(cli, gate, agent, options, id).await,
        (Some(id), _) if shared => Some(id.clone()),
        (Some(id), _) => return Err(unknown(cli, id)),
        (None, true) => match (newest(cli, shared).await?, last(cli)?) {
            (Some(run), _) => Some(run),
            (None, Some(id)) => return saved(cli, gate, agent, options, &id).await,
            (None, None) => {
                let data = cli.settings.data.display();
                let text = format!("there is no conversation in {data} to continue; start one without --continue");
                return Err(Failure::usage(text).code("not_found"));
            }
        },
        (None, false) => None,
    };
    let queue = RunQueue::new(&gate.runner);
    let (leased, saved) = match &id {
        Some(id) => take(cli, &queue, id, chat.wait).await?,
        None => {
            let conversation = agent.converse(gate.runner.run(options.clone()));
            if !shared {
                return Ok((conversation, Autosave::File(ConversationFiles::of(cli).create(title))));
            }
            let saved = conversation.save().await?;
            (queue.begin(&saved, cli.app.name).await?, saved)
        }
    };
    let id = saved.run().run_id().to_owned();
    let expires = saved.waiting().filter_map(|call| call.expires_at).min();
    let restored = agent.restore(&gate.runner, leased.options(options), saved).await;
    match restored {
        Ok(conversation) => Ok((conversation, Autosave::Run { leased, id })),
        Err(error) => {
            leased.release(expires).await?;
            Err(unrestored(&error))
        }
    }
}

async fn saved(
    cli: &Cli<'_>,
    gate: &Gate,
    agent: &Agent,
    options: RunOptions,
    id: &str,
) -> Result<(Conversation, Autosave), Failure> {
    let (kept, document): (OpenDocument, Document) = ConversationFiles::of(cli).open(id)?;
    let Document::Chat(saved) = document else {
        let app = cli.app.name;
        return Err(Failure::usage(format!("`{}` is a single call; decide it with `{app} approvals`", kept.id)));
    };
    let restored = agent.restore(&gate.runner, options, *saved).await;
    Ok((restored.map_err(|error| unrestored(&error))?, Autosave::File(kept)))
}

/// Leases a run of the store. If another process holds it, waits for the time of `--wait`.
async fn take(
    cli: &Cli<'_>,
    queue: &RunQueue,
    id: &str,
    wait: Option<Duration>,
) -> Result<(LeasedRun, SavedConversation), Failure> {
    let party = cli.party();
    let until = Instant::now() + wait.unwrap_or_default();
    let mut is_told = false;
    loop {
        match queue.take(id, party.tenant.as_deref(), party.principal.as_deref(), cli.app.name).await {
            Ok(taken) => return Ok(taken),
            Err(ResumeError::UnknownRun) => return Err(unknown(cli, id)),
            Err(ResumeError::Held) if Instant::now() < until => {
                if !is_told {
                    terminal::note("another process has the conversation; waiting for it");
                }
                is_told = true;
                if attend::interruptible(sleep(LOOK)).await.is_none() {
                    return Err(held(id));
                }
            }
            Err(ResumeError::Held) => return Err(held(id)),
            Err(ResumeError::HeldBack) => {
                let text = format!(
                    "the records of the conversation `{}` end before an exported anchor, because the store was \
                     restored from a backup; check what its calls changed, then run `store release`",
                    terminal::safe(id)
                );
                return Err(Failure::failed(text).code("run_held_back"));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn held(id: &str) -> Failure {
    let text = format!(
        "another process, such as a worker, has the conversation `{}`; try again when it is done, or wait for it with \
         `--wait 30s`",
        terminal::safe(id)
    );
    Failure::failed(text).code("run_held")
}

fn unknown(cli: &Cli<'_>, id: &str) -> Failure {
    let (id, data) = (terminal::safe(id), cli.settings.data.display());
    let store =
        if cli.settings.store.is_some() { ", nor in the store" } else { " (runs of workers need `--store URL`)" };
    Failure::usage(format!("there is no conversation `{id}` in {data}{store}")).code("not_found")
}

/// Returns a run of the store if the principal of this command may continue it.
async fn stored(cli: &Cli<'_>, id: &str) -> Result<Option<StoredRun>, Failure> {
    let Some(store) = cli.existing_store().await? else { return Ok(None) };
    let party = cli.party();
    let stored = store.read(&[Key::run(id)]).await?.pop().flatten();
    let run = stored.as_ref().and_then(StoredDocument::as_run);
    Ok(run.filter(|run| run.tenant == party.tenant && run.principal == party.principal).cloned())
}

/// Returns the id of the principal's newest run in the store.
async fn newest(cli: &Cli<'_>, shared: bool) -> Result<Option<String>, Failure> {
    let Some(store) = cli.existing_store().await?.filter(|_| shared) else { return Ok(None) };
    let (party, mut newest) = (cli.party(), None);
    let mut runs = Query::new(DocumentKind::Run);
    while let Some(page) = runs.next_page(&*store).await? {
        let own = |run: &&StoredRun| run.tenant == party.tenant && run.principal == party.principal;
        if let Some(run) = page.iter().filter_map(StoredDocument::as_run).rfind(own) {
            newest = Some(run.run_id.to_string());
        }
    }
    Ok(newest)
}

/// Returns the id of the last changed conversation of the data folder.
fn last(cli: &Cli<'_>) -> Result<Option<String>, Failure> {
    let all = ConversationFiles::of(cli).all()?;
    Ok(all.into_iter().rev().find(|saved| matches!(saved.document, Document::Chat(_))).map(|saved| saved.id))
}
