//! [`Dialogue`]: the questions of the server to the client of a held request.

use std::collections::HashSet;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;

use rmcp::model::InputRequests;
use serde_json::Value;

use crate::call::Question;
use crate::capability::ClientError;
use crate::mcp::serve::tasks::held::{Guest, HeldAnswer};
use crate::mcp::serve::tasks::outcome::{OutcomeQuestion, Statement};
use crate::mcp::serve::tasks::question;
use crate::runner::ApprovalDecision;
use crate::store::PendingCall;

/// The answer of a client to a question that it was shown.
pub(super) enum Answer {
    /// The decision whether the call may run. `None` if the answer contains none.
    Decides(Question, Option<ApprovalDecision>),
    /// The statement whether the call took effect. `None` if the answer contains none.
    States(Option<Statement>),
}

type Asking = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// The questions to the client of a held request.
pub(super) struct Dialogue<'a> {
    guest: &'a Guest<'a>,
    /// The state that the client sends with its next request.
    state: Arc<str>,
    /// The keys of the questions that the client was asked.
    asked: HashSet<String>,
    /// The open question, if the client's protocol revision lets it answer while its request is held.
    asking: Option<Asking>,
}

impl<'a> Dialogue<'a> {
    pub(super) fn of(guest: &'a Guest<'a>, state: Arc<str>) -> Self {
        Self { guest, state, asked: guest.answered.clone(), asking: None }
    }

    /// Whether a question is open while the request is held.
    pub(super) const fn is_open(&self) -> bool {
        self.asking.is_some()
    }

    /// Asks whether the call may run. Returns the same as [`ask`](Self::ask).
    pub(super) fn ask_about_call(&mut self, key: String, name: &str, call: &PendingCall) -> Result<bool, HeldAnswer> {
        let shown = call.question();
        self.ask(key, question::asked(name, call), |filled| Answer::Decides(shown, decided(filled)))
    }

    /// Asks whether the call took effect. Returns the same as [`ask`](Self::ask).
    pub(super) fn ask_about_outcome(&mut self, question: OutcomeQuestion) -> Result<bool, HeldAnswer> {
        let asked = (question.message.clone(), question.form.clone());
        self.ask(question.key.clone(), asked, move |filled| Answer::States(question.statement(filled)))
    }

    /// Asks the client a question, unless the same question was asked before. The question replaces an open one.
    /// Returns whether the question is now open while the request is held.
    ///
    /// # Errors
    /// The client answers with its next request. The error is the answer to the present request.
    fn ask(
        &mut self,
        key: String,
        (message, form): (String, Value),
        read: impl FnOnce(Result<Value, ClientError>) -> Answer + Send + 'static,
    ) -> Result<bool, HeldAnswer> {
        if !self.asked.insert(key.clone()) {
            return Ok(false);
        }
        if self.guest.takes_questions
            && let Ok(question) = question::form(message.clone(), &form)
        {
            let requests = InputRequests::from_iter([(key, question::request(question))]);
            return Err(HeldAnswer::Asks(requests, self.state.to_string()));
        }
        let elicit = self.guest.elicit.clone();
        self.asking =
            elicit.map(|elicit| -> Asking { Box::pin(async move { read(elicit.ask(&message, &form).await) }) });
        Ok(self.is_open())
    }

    /// Waits for the answer to the open question. Without an open question, the future never resolves.
    pub(super) async fn answer(&mut self) -> Answer {
        let answer = match &mut self.asking {
            Some(asking) => asking.await,
            None => pending().await,
        };
        self.asking = None;
        answer
    }
}

/// Returns the decision in a client's answer to the question whether a call may run; `None` if it contains none.
fn decided(answer: Result<Value, ClientError>) -> Option<ApprovalDecision> {
    match answer {
        Ok(filled) if filled.get("approve")?.as_bool()? => Some(ApprovalDecision::Approve),
        Ok(_) | Err(ClientError::Declined) => Some(ApprovalDecision::Deny(None)),
        Err(_) => None,
    }
}
