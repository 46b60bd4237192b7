//! [`Talk`]: one conversation at a keyboard or in a pipe, saved after each turn.

use std::collections::BTreeMap;
use std::future::Future;
use std::io::IsTerminal as _;

use tool_runtime::agent::{Conversation, Input, TurnOutcome, WaitingCall};
use tool_runtime::call::{ClientAnswer, Decider, Question, Suspension};
use tool_runtime::error::Problem;
use tool_runtime::media::Media;
use tool_runtime::runner::{ApprovalDecision, ResumeError};
use tool_runtime::store::StoreError;
use tool_runtime::{Outcome, Run};

use crate::approvals::who_decides;
use crate::attend::{cancellable, interruptible};
use crate::chat::autosave::Autosave;
use crate::chat::ended::{exit, report};
use crate::chat::line::Keyboard;
use crate::chat::question;
use crate::chat::receive::{RUNNING, Unreceived, lost, receive};
use crate::chat::restoring::Restoring;
use crate::chat::screen::Described;
use crate::describe::describe;
use crate::exit::{Exit, Failure};
use crate::session::{Cli, Gate};
use crate::terminal;
use crate::text::{option, word};

/// A conversation with its gate, the place where it is saved, and its keyboard.
pub(crate) struct Talk<'c> {
    pub(super) cli: &'c Cli<'c>,
    pub(super) gate: Gate,
    pub(crate) conversation: Conversation,
    pub(super) autosave: Autosave,
    /// The end of the last turn, as a stable code.
    state: &'static str,
    pub(super) keyboard: Keyboard,
    pub(super) interactive: bool,
    /// Whether the person at the keyboard left a question open or stopped waiting for the decision of another person.
    pub(super) paused: bool,
    /// The data with which the conversation is restored after another process changed it; `None` outside `chat`.
    pub(super) restoring: Option<Restoring>,
    /// The files that are sent with the next prompt.
    pub(super) files: Vec<Media>,
    /// The arguments that the person has read.
    described: Described,
    /// The schema for answers.
    pub(super) schema: Option<String>,
    gravest: Exit,
    /// The number of calls with each outcome that had ended before this process took over.
    before: BTreeMap<Outcome, u64>,
}

impl<'c> Talk<'c> {
    /// Creates a conversation whose prompts do not come from a keyboard.
    pub(crate) fn new(
        cli: &'c Cli<'c>,
        gate: Gate,
        conversation: Conversation,
        autosave: Autosave,
        described: Described,
    ) -> Self {
        let before = counts(conversation.run());
        let keyboard = Keyboard::default();
        Self {
            cli,
            gate,
            conversation,
            autosave,
            state: RUNNING,
            keyboard,
            interactive: false,
            paused: false,
            restoring: None,
            files: Vec::new(),
            described,
            schema: None,
            gravest: Exit::Done,
            before,
        }
    }

    /// Returns the name of the application.
    pub(super) const fn app(&self) -> &'static str {
        self.cli.app.name
    }

    /// Sends a prompt of the user. Returns `false` if the turn did not end with an answer.
    pub(super) async fn say(&mut self, prompt: &str) -> Result<bool, Failure> {
        let message = Input::new().text(prompt);
        let message = match &self.schema {
            Some(schema) => message.answer_schema(schema).map_err(|problems| invalid_schema(&problems))?,
            None => message,
        };
        let input = self.files.drain(..).fold(message, Input::media);
        self.receive(input).await
    }

    /// Applies an input, and lets the conversation continue. Returns `false` if the turn did not end with an answer.
    pub(super) async fn receive(&mut self, input: Input) -> Result<bool, Failure> {
        let (run, interactive) = (self.conversation.run().clone(), self.interactive);
        self.paused = false;
        let received = receive(&mut self.conversation, &mut self.autosave, input);
        let ended = attend(&run, interactive, Box::pin(received)).await;
        let ended = ended.transpose().map_err(Unreceived::failed)?;
        self.after(ended).await
    }

    /// Answers waiting calls, and lets the model continue.
    pub(super) async fn settle(&mut self, answers: Vec<ClientAnswer>) -> Result<bool, Failure> {
        if !answers.is_empty() {
            self.autosave.claim()?;
        }
        let (run, interactive) = (self.conversation.run().clone(), self.interactive);
        let input = answers.into_iter().fold(Input::new(), Input::answer);
        let received = receive(&mut self.conversation, &mut self.autosave, input);
        match attend(&run, interactive, Box::pin(received)).await.transpose() {
            Ok(ended) => self.after(ended).await,
            Err(Unreceived::Unkept(failure)) => Err(failure),
            Err(Unreceived::Refused(error)) => {
                self.autosave.release();
                Err(Failure::usage(error.to_string()).code(error.code()))
            }
        }
    }

    /// Handles the end of a turn: saves the conversation, and asks the person at the keyboard about waiting calls.
    /// Returns `false` if the turn did not end with an answer.
    async fn after(&mut self, mut ended: Option<TurnOutcome>) -> Result<bool, Failure> {
        loop {
            self.state = ended.as_ref().map_or("interrupted", TurnOutcome::code);
            self.save().await?;
            match self.decide(ended.as_ref()).await? {
                Some(next) => ended = next,
                None => break,
            }
        }
        let Some(ended) = ended else {
            terminal::message("interrupted");
            return Ok(false);
        };
        match &ended {
            // `exit` takes waiting calls into account.
            TurnOutcome::Waiting { .. } => self.print_waiting().await?,
            TurnOutcome::Stopped { reason, .. } => {
                self.gravest = self.gravest.max(exit(&ended));
                report(reason);
            }
            // An answer with a schema was not streamed to the screen, because the first attempt may be invalid.
            TurnOutcome::Answered { text } if self.schema.is_some() && !self.cli.settings.json => {
                terminal::line(&terminal::safe_json(text));
            }
            _ => {}
        }
        Ok(matches!(ended, TurnOutcome::Answered { .. }))
    }

    /// Saves the conversation. A failure is reported and does not end the session, because the turn has already
    /// happened. Returns `Err` only if another process has taken over the conversation's run in the store.
    async fn save(&mut self) -> Result<(), Failure> {
        match self.autosave.save(&self.conversation, self.state, None).await {
            Err(failure) if failure.code == StoreError::Fenced.code() => Err(lost(self.autosave.id())),
            Err(failure) => {
                let why = terminal::safe_lines(&failure.message);
                terminal::message(&format!("the conversation is not saved: {why}"));
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Applies the messages that other processes posted to the run. Returns whether any was valid.
    pub(super) async fn take_post(&mut self) -> Result<bool, Failure> {
        let mut took = false;
        while let Some((key, input)) = self.autosave.post().await? {
            match self.conversation.accept(input).await {
                Err(ResumeError::Store(error)) => return Err(error.into()),
                Err(refused) => terminal::note(&format!("a posted message does not fit and is dropped: {refused}")),
                Ok(()) => {
                    terminal::note("the messages posted to the conversation are applied");
                    took = true;
                }
            }
            self.autosave.save(&self.conversation, RUNNING, Some(key)).await?;
        }
        Ok(took)
    }

    /// Releases the conversation for other processes.
    pub(super) async fn hand_back(&self) -> Result<(), Failure> {
        self.autosave.hand_back(&self.conversation).await
    }

    /// Asks the person at the keyboard about the first call that waits for an approval. Returns `None` if there is no
    /// such call or no terminal, if this person may not decide, or if the person does not decide.
    async fn decide(&mut self, ended: Option<&TurnOutcome>) -> Result<Option<Option<TurnOutcome>>, Failure> {
        let Some(TurnOutcome::Waiting { calls }) = ended else { return Ok(None) };
        let Some(call) = calls.iter().find(|call| call.suspension == Suspension::Approval) else { return Ok(None) };
        if !std::io::stdin().is_terminal() {
            return Ok(None);
        }
        let run = self.conversation.run().clone();
        let Some(pending) = run.pending(&call.id).await? else { return Ok(None) };
        let decider = self.cli.decider(None, None);
        let question = pending.question();
        match run.may_decide(&question, &decider).await {
            Ok(()) => {}
            Err(ResumeError::Store(error)) => return Err(error.into()),
            // `print_waiting` then names the people who may decide.
            Err(_) => return Ok(None),
        }
        self.described.add(&pending);
        let known = (self.gate.runner.catalog(), self.gate.runner.policy());
        let decision = question::ask(known, &pending, &mut self.keyboard).await;
        let Some(decision) = decision else {
            self.paused = true;
            return Ok(None);
        };
        self.autosave.claim()?;
        let input = Input::new().decide(&question, decision, &decider);
        let received = receive(&mut self.conversation, &mut self.autosave, input);
        let ended = attend(&run, self.interactive, Box::pin(received)).await;
        Ok(Some(ended.transpose().map_err(Unreceived::failed)?))
    }

    /// Applies a decision of `approvals`. If the command has no model (`offline`), the next `chat` sends the results to
    /// its model.
    pub(crate) async fn resolve(
        &mut self,
        question: &Question,
        decision: ApprovalDecision,
        decider: &Decider,
        offline: bool,
    ) -> Result<(), Failure> {
        self.autosave.claim()?;
        let run = self.conversation.run().clone();
        let ended = attend(&run, false, Box::pin(self.conversation.decide(question, decision, decider))).await;
        self.resolved(ended.transpose(), offline).await
    }

    /// Applies a client's answer of `approvals answer`.
    pub(crate) async fn reply(&mut self, answer: ClientAnswer, offline: bool) -> Result<(), Failure> {
        self.autosave.claim()?;
        let run = self.conversation.run().clone();
        let ended = attend(&run, false, Box::pin(self.conversation.answer([answer]))).await;
        self.resolved(ended.transpose(), offline).await
    }

    async fn resolved(
        &mut self,
        ended: Result<Option<TurnOutcome>, ResumeError>,
        offline: bool,
    ) -> Result<(), Failure> {
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => {
                self.autosave.release();
                return Err(Failure::from(&error));
            }
        };
        if offline && !self.is_waiting() {
            self.save().await?;
            let (app, id) = (self.app(), option("--conversation", self.autosave.id()));
            let same = self.cli.same_options();
            terminal::note(&format!("decided; to pass it on to the model: {app} chat{id}{same}"));
            return Ok(());
        }
        self.after(ended).await.map(|_| ())
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.conversation.waiting().next().is_some()
    }

    /// Prints each waiting call with its deciders and the command that decides it.
    async fn print_waiting(&self) -> Result<(), Failure> {
        let (app, run) = (self.app(), self.conversation.run());
        let is_terminal = std::io::stdin().is_terminal();
        // In a command for another person, `--role` has that person's roles.
        let (same, of_decider) = (self.cli.same_party(), self.cli.same_options());
        for call in self.conversation.waiting() {
            let (id, name) = (call.id.as_str(), terminal::safe(&call.name));
            if call.suspension != Suspension::Approval {
                let id = word(id);
                terminal::note(&format!(
                    "{name} waits for its client; answer it: {app} chat --continue --answer {id} JSON{same}"
                ));
                continue;
            }
            let Some(pending) = run.pending(&call.id).await? else { continue };
            let may_decide = run.may_decide(&pending.question(), &self.cli.decider(None, None)).await.is_ok();
            let command = |name, options: &str| self.cli.command(name, (id, ""), options);
            if may_decide && is_terminal {
                terminal::note(&format!("{name} still waits for a decision: {}", command("approvals show", &same)));
                continue;
            }
            let (catalog, policy) = (self.gate.runner.catalog(), self.gate.runner.policy());
            let (waits_for, command) = if may_decide {
                let command = command("approvals approve", &same);
                ("a person".to_owned(), format!("run chat in a terminal to be asked, or decide later: {command}"))
            } else {
                let is_run = matches!(self.autosave, Autosave::Run { .. });
                let (who, options) = who_decides((catalog, policy), &pending, is_run);
                let command = command("approvals approve", &format!("{options}{of_decider}"));
                (format!("another decider: {who}"), format!("decide it in another terminal: {command}"))
            };
            terminal::note(&format!("{name} waits for {waits_for}"));
            describe((catalog, policy), &pending, false).iter().for_each(|line| terminal::note(line));
            self.described.add(&pending);
            terminal::note(&format!("   {command}"));
        }
        Ok(())
    }

    /// Reports prompts that were not sent.
    pub(super) fn unsent(&self, prompts: &[String]) {
        if !prompts.is_empty() {
            let why = if self.is_waiting() { "a call waits" } else { "the previous turn failed" };
            let shown: Vec<_> =
                prompts.iter().map(|prompt| format!("`{}`", crate::table::cut(&terminal::safe(prompt), 40))).collect();
            terminal::message(&format!("not sent, because {why}: {}", shown.join(", ")));
        }
    }

    /// Returns the exit code: the most severe end of a turn, or of the calls that still wait. Decided calls do not
    /// count, and neither do failed calls of a turn that ended with an answer.
    pub(super) fn exit(&self) -> Exit {
        let waits = |call: &WaitingCall| match call.suspension {
            Suspension::Approval => Exit::ApprovalRequired,
            _ => Exit::ClientRequired,
        };
        self.conversation.waiting().map(waits).max().map_or(self.gravest, |waits| self.gravest.max(waits))
    }

    /// Returns the most severe outcome of a call in this process. A decided call counts with its final outcome.
    pub(crate) fn gravest_call(&self) -> Option<Outcome> {
        let waits = self.is_waiting();
        let calls = counts(self.conversation.run()).into_iter();
        let new = calls.filter(|(outcome, times)| *times > self.before.get(outcome).copied().unwrap_or_default());
        let ended = new.map(|(outcome, _)| outcome).filter(|outcome| waits || !outcome.is_suspension());
        ended.max_by_key(|outcome| Exit::of(*outcome))
    }

    /// Returns the exit code of `approvals` after a decision: that of the decided call or of the turns after it,
    /// whichever is more severe.
    pub(crate) fn exit_of_decision(&self, decided: impl Fn(Outcome) -> Exit) -> Exit {
        self.gravest_call().map_or(Exit::Done, decided).max(self.exit())
    }
}

/// Returns the failure for an invalid `--answer-schema`.
pub(super) fn invalid_schema(problems: &[Problem]) -> Failure {
    let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
    Failure::usage(format!("this is not a schema for answers: {}", problems.join("; "))).code("schema")
}

fn counts(run: &Run) -> BTreeMap<Outcome, u64> {
    run.summary().calls.iter().map(|(outcome, times)| (*outcome, *times)).collect()
}

/// Waits for a turn. In an interactive session, Ctrl-C drops the turn (`None`), and the session continues. Otherwise
/// Ctrl-C cancels the run.
async fn attend<T>(run: &Run, interactive: bool, turn: impl Future<Output = T>) -> Option<T> {
    if interactive { interruptible(turn).await } else { Some(cancellable(run, turn).await) }
}
