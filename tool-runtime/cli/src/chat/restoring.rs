//! Waits for a decision in another process, and continues with it.

use std::time::Duration;

use tokio::time::sleep;
use tool_runtime::RunOptions;
use tool_runtime::agent::{Agent, Input};
use tool_runtime::call::{CallId, ClientAnswer, Question, Suspension};
use tool_runtime::store::RecordFilter;
use tool_runtime::wire::Message;

use crate::attend::interruptible;
use crate::chat::Talk;
use crate::chat::autosave::Autosave;
use crate::chat::screen;
use crate::exit::Failure;
use crate::saved::{ConversationFiles, Document};
use crate::terminal;

/// The interval at which a waiting conversation checks for a decision.
const LOOK: Duration = Duration::from_millis(300);

/// The data with which a conversation is restored after another process continued it.
pub(super) struct Restoring {
    pub(super) agent: Agent,
    pub(super) options: RunOptions,
}

/// The event that ends a wait.
enum News {
    /// Another process changed the conversation's document.
    Document,
    /// Another process posted to the run.
    Post,
    /// The time for these decisions and answers is over.
    Expired(Vec<(Question, Suspension)>),
}

impl Talk<'_> {
    /// Waits until another process decides or answers a call, or until a call expires. Then continues the conversation.
    /// Ctrl-C ends the wait, and pauses the conversation.
    pub(super) async fn await_decision(&mut self) -> Result<(), Failure> {
        let Some(news) = interruptible(self.news()).await else {
            self.paused = true;
            return Ok(());
        };
        match news? {
            News::Document => self.reread().await,
            News::Post => {
                self.take_post().await?;
                self.settle(Vec::new()).await.map(drop)
            }
            News::Expired(questions) => {
                terminal::message("the time for the decision is over");
                let over = |input: Input, (question, suspension): &(Question, Suspension)| match suspension {
                    Suspension::Client => input.answer(ClientAnswer::failed(question.call_id())),
                    _ => input.expire(question),
                };
                let expired = questions.iter().fold(Input::new(), over);
                self.receive(expired).await.map(drop)
            }
        }
    }

    /// Asks the person at the keyboard again, or prints the waiting calls.
    pub(super) async fn ask_again(&mut self) -> Result<(), Failure> {
        self.paused = false;
        match &self.autosave {
            Autosave::File(kept) if kept.has_changed()? => self.reread().await,
            _ => self.settle(Vec::new()).await.map(drop),
        }
    }

    async fn news(&mut self) -> Result<News, Failure> {
        loop {
            let news = match &mut self.autosave {
                Autosave::File(kept) => kept.has_changed()?.then_some(News::Document),
                Autosave::Run { leased, .. } => leased.post().await?.map(|_| News::Post),
            };
            if let Some(news) = news {
                return Ok(news);
            }
            let now = self.gate.store.now().await?;
            let waiting = self.conversation.waiting();
            let late = waiting.filter(|call| call.expires_at.is_some_and(|expires| expires <= now));
            let late: Vec<_> = late.map(|call| (call.question.clone(), call.suspension)).collect();
            if !late.is_empty() {
                return Ok(News::Expired(late));
            }
            sleep(LOOK).await;
        }
    }

    /// Reads the document that another process wrote, prints new results and answers, and lets the model continue.
    async fn reread(&mut self) -> Result<(), Failure> {
        let Some(Restoring { agent, options }) = &self.restoring else { return Ok(()) };
        let id = self.autosave.id().to_owned();
        let (kept, document) = ConversationFiles::of(self.cli).open(&id)?;
        let Document::Chat(saved) = document else {
            return Err(Failure::failed(format!("`{id}` is no longer a conversation")).code("changed"));
        };
        let waited: Vec<CallId> = self.conversation.waiting().map(|call| call.id.clone()).collect();
        let is_answer = |message: &&Message| matches!(message, Message::Assistant(_));
        let known = self.conversation.history().iter().filter(is_answer).count();
        let restored = agent.restore(&self.gate.runner, options.clone(), *saved).await;
        self.conversation = restored.map_err(|error| Failure::from(&error))?;
        self.autosave = Autosave::File(kept);
        for id in waited {
            if self.conversation.waiting().all(|call| call.id != id) {
                self.show_end(&id).await?;
            }
        }
        let history = self.conversation.history();
        for message in history.iter().filter(is_answer).skip(known) {
            terminal::line(&terminal::safe_lines(&message.text()));
        }
        let answered = matches!(history.last(), Some(Message::Assistant(_)));
        if answered && !self.is_waiting() {
            return Ok(());
        }
        self.settle(Vec::new()).await.map(drop)
    }

    /// Prints the end of a call that another process carried out.
    async fn show_end(&self, id: &CallId) -> Result<(), Failure> {
        let of_call = RecordFilter::call(self.conversation.run().id(), id.clone());
        for record in self.gate.store.calls(&of_call).await? {
            terminal::message(&screen::ending(record.outcome, &record.name));
        }
        Ok(())
    }
}
