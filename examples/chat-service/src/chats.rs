//! [`Chat`]: a conversation in the store, which only one request at a time can hold.

use tool_runtime::agent::{Conversation, Input, LeasedRun};
use tool_runtime::runner::ResumeError;
use tool_runtime::wire::Message;

use crate::people::Person;
use crate::refusal::Refusal;
use crate::{Service, log};

/// The owner of this service's leases in the store.
const OWNER: &str = "chat-service";

/// A chat that one request holds. A stored chat has a lease; a new chat has none yet.
pub(crate) struct Chat {
    pub(crate) conversation: Conversation,
    leased: Option<LeasedRun>,
    person: Person,
    id: String,
}

impl Service {
    /// Leases the chat of a person for one request, and applies the decisions that were posted to it. The saved chat
    /// is restored from the store, because its last request may have run in another process. A chat that is not in
    /// the store is new.
    pub(crate) async fn open(&self, person: &Person, id: &str) -> Result<Chat, Refusal> {
        let (person, id) = (person.clone(), id.to_owned());
        let (run_id, options) = (person.run_id(&id), person.options().conversation(id.as_str()));
        let options = options.run_id(run_id.as_str());
        match self.queue.take(&run_id, Some(&person.tenant), Some(&person.name), OWNER).await {
            Ok((leased, saved)) => {
                let restored = self.agent.restore(&self.runner, leased.options(options), &saved).await;
                let Ok(conversation) = restored else {
                    leased.release(saved.waiting().filter_map(|call| call.expires_at).min()).await?;
                    return Err(Refusal::Damaged);
                };
                let mut chat = Chat { conversation, leased: Some(leased), person, id };
                if let Some(leased) = &mut chat.leased {
                    leased.accept_posts(&mut chat.conversation).await?;
                }
                Ok(chat)
            }
            Err(ResumeError::UnknownRun) => {
                let conversation = self.agent.converse(self.runner.run(options));
                Ok(Chat { conversation, leased: None, person, id })
            }
            Err(ResumeError::Held) => Err(Refusal::Busy),
            Err(error) => Err(error.into()),
        }
    }

    /// Stores a new chat, and takes its lease.
    pub(crate) async fn keep(&self, chat: Chat) -> Result<Chat, Refusal> {
        if chat.leased.is_some() {
            return Ok(chat);
        }
        let Chat { conversation, person, id, .. } = chat;
        let saved = conversation.save().await.map_err(ResumeError::from)?;
        let leased = match self.queue.begin(&saved, OWNER).await {
            // Another request began the same chat.
            Err(ResumeError::Store(error)) if error.code() == "store_duplicate" => return Err(Refusal::Busy),
            begun => begun?,
        };
        let options = leased.options(person.options().conversation(id.as_str()));
        let conversation = self.agent.restore(&self.runner, options, saved).await?;
        Ok(Chat { conversation, leased: Some(leased), person, id })
    }
}

impl Chat {
    /// Returns the id of the assistant's message that will answer the user's next text.
    pub(crate) fn next_message(&self) -> String {
        format!("message-{}", self.texts() + 1)
    }

    /// Returns the id of the assistant's last message, which continues after an approval.
    pub(crate) fn message(&self) -> String {
        format!("message-{}", self.texts())
    }

    fn texts(&self) -> usize {
        self.conversation.history().iter().filter(|message| matches!(message, Message::User(_))).count()
    }

    /// Carries out a request, with all model turns and calls that it causes. Saves the chat after each step, and
    /// releases it at the end.
    pub(crate) async fn turn(mut self, input: Input) {
        if let Some(leased) = &mut self.leased {
            // The result is not needed here: the stream has already sent it to the client.
            let _ended = leased.receive(&mut self.conversation, input).await;
        }
        self.close().await;
    }

    /// Releases the chat for the next request. If the answer has not ended, a worker continues it.
    pub(crate) async fn close(self) {
        let Some(leased) = &self.leased else { return };
        let expires = self.conversation.waiting().filter_map(|call| call.expires_at).min();
        if let Err(error) = leased.release(expires).await {
            // Another process has the chat, or can lease it once this lease has ended.
            log(format_args!("a chat was not released: {error}"));
        }
    }
}
