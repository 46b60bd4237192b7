//! Posts messages to runs: checks each message, and posts several in one transaction.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::RunQueue;
use super::queue::corrupt;
use crate::agent::Input;
use crate::call::{Decider, DecisionError, Question, Suspension, ToolExecResult};
use crate::runner::waiting::{counting, posting};
use crate::runner::{ApprovalDecision, ResumeError, Run};
use crate::store::posts::{self, Letter, NotPosted};
use crate::store::transact;
use crate::store::waiting::{self, Approval, Counted, Plan, Uncounted};
use crate::store::{Document, Key, StoreError, StoredRun, Transaction};

/// The reason why no message is posted, and the question whose decision was refused.
type Failed = (Option<Question>, ResumeError);

/// The approximate maximum number of pieces of a message. A run holds 256 posts, and a turn can have more calls than
/// that.
const MOST_PIECES: usize = 64;

/// A message for a run that has passed every check that needs no transaction.
pub(super) struct Message {
    stored: StoredRun,
    /// For each approval in `content`, the run of its call.
    runs: Vec<Run>,
    content: Content,
}

/// The part of a message that its transaction writes.
#[derive(Clone)]
struct Content {
    run_id: Arc<str>,
    tenant: Option<Arc<str>>,
    principal: Option<Arc<str>>,
    pieces: Vec<Piece>,
    /// The approvals of calls that need several approvals.
    approvals: Vec<Approval>,
}

/// A part of a message that the run takes as a whole or drops. Each decision and each answer is a separate piece, so
/// that a piece that no longer fits does not affect the others. In a long message, a piece has several of them. A
/// message of the user is in one piece with the decisions and answers of its request, because the message abandons the
/// calls that still wait.
#[derive(Clone)]
struct Piece {
    key: Key,
    input: Input,
    /// The questions that it answers.
    questions: Vec<Question>,
}

/// The result of posting messages together.
enum Posting {
    /// All messages are posted. Contains the results of counting the approvals of each message.
    Kept(Vec<Vec<Counted>>),
    /// An approval does not count: the index of the message, the index of the approval in it, and the reason. Nothing
    /// is posted, and no other approval is stored.
    NotCounted(usize, usize, Uncounted),
    /// The run does not take the message with this index. Nothing is posted.
    NotKept(usize, NotPosted),
}

impl Message {
    /// Checks each decision and answer of a message. The run repeats the check when it takes them. A refused decision
    /// is recorded.
    pub(super) async fn check(queue: &RunQueue, stored: &StoredRun, input: &Input) -> Result<Self, Failed> {
        if stored.is_driven() {
            // No worker would ever take the message.
            let first = input.brought().next().map(|(question, ..)| question.clone());
            return Err((first, ResumeError::Engine));
        }
        let (mut questions, mut several) = (Vec::new(), Vec::new());
        for (question, by) in input.brought() {
            let of = |error: ResumeError| (Some(question.clone()), error);
            let call = match queue.called(stored, question.call_id()).await {
                Err(ResumeError::NotWaiting(id)) => {
                    queue.note_late(stored, question, by).await.map_err(|error| of(error.into()))?;
                    return Err(of(ResumeError::NotWaiting(id)));
                }
                called => called.map_err(of)?,
            };
            let run = queue.run_of(&call, Some(stored)).map_err(of)?;
            Box::pin(posting::admits(&run, question, by, input.has_message())).await.map_err(of)?;
            questions.push(question.clone());
            if call.approvals().1 > 1 {
                several.push((run, question));
            }
        }
        for id in input.answered() {
            let call = queue.called(stored, id).await.map_err(|error| (None, error))?;
            if call.suspension != Suspension::Client {
                return Err((None, ResumeError::NotWaiting(id.clone())));
            }
            questions.push(call.question());
        }
        let twice = questions.iter().enumerate().find(|(at, question)| questions[..*at].contains(question));
        if let Some((_, question)) = twice {
            return Err((Some(question.clone()), ResumeError::NotWaiting(question.call_id().clone())));
        }
        let (mut runs, mut approvals) = (Vec::new(), Vec::new());
        for (run, question) in several {
            let Some((_, decision, decider)) = input.decisions.iter().find(|(decided, ..)| decided == question) else {
                continue;
            };
            let of = |error: ResumeError| (Some(question.clone()), error);
            match Box::pin(counting::read_here(&run, question, decision, decider)).await.map_err(of)? {
                Ok(None) => {}
                Ok(Some(approval)) => {
                    runs.push(run);
                    approvals.push(approval);
                }
                Err(_) => return Err(of(ResumeError::NotAllowed(DecisionError::Question))),
            }
        }
        // A run takes its posts in the order of their ids, so the ids of the pieces are in order.
        let id = uuid::Uuid::new_v4().simple();
        let pieces = pieces(input, questions).into_iter().enumerate().map(|(at, (input, questions))| {
            let key = Key::post(Arc::clone(&stored.run_id), format!("{id}-{at:03}"));
            Piece { key, input, questions }
        });
        let (run_id, tenant, principal) = (Arc::clone(&stored.run_id), stored.tenant.clone(), stored.principal.clone());
        let content = Content { run_id, tenant, principal, pieces: pieces.collect(), approvals };
        Ok(Self { stored: stored.clone(), runs, content })
    }

    /// Reports an approval that did not count, and returns the error for its author.
    async fn not_counted(&self, at: usize, why: Uncounted) -> ResumeError {
        let approval = self.content.approvals[at].clone();
        let reported = Box::pin(counting::report_counted(&self.runs[at], approval, Counted::Refused(why))).await;
        reported.err().unwrap_or(ResumeError::NotAllowed(DecisionError::Question))
    }

    /// Records that a question of the message was answered before, and returns the error for its author.
    async fn answered_before(&self, queue: &RunQueue, question: &Question) -> ResumeError {
        let mut brought = self.content.pieces.iter().flat_map(|piece| piece.input.brought());
        if let Some((question, by)) = brought.find(|(brought, _)| *brought == question)
            && let Err(error) = queue.note_late(&self.stored, question, by).await
        {
            return error.into();
        }
        ResumeError::NotWaiting(question.call_id().clone())
    }
}

/// Posts messages to different runs in one transaction: all messages, or none. Returns, for each message, the results
/// of approvals whose calls need more approvals.
pub(super) async fn all(queue: &RunQueue, messages: Vec<Message>) -> Result<Vec<Vec<ToolExecResult>>, Failed> {
    let contents: Vec<_> = messages.iter().map(|message| message.content.clone()).collect();
    let keys: BTreeSet<_> = contents.iter().flat_map(Content::keys).collect();
    let keys = keys.into_iter().collect();
    let posting = transact(queue.store(), keys, move |transaction: &mut Transaction| write(&contents, transaction));
    match posting.await.map_err(|error| (None, error.into()))? {
        Posting::Kept(counted) => {
            let mut noted = Vec::new();
            for (message, counted) in messages.into_iter().zip(counted) {
                let mut of_message = Vec::new();
                for ((run, approval), counted) in message.runs.iter().zip(message.content.approvals).zip(counted) {
                    let reported = Box::pin(counting::report_counted(run, approval, counted)).await;
                    of_message.extend(reported.map_err(|error| (None, error))?.err());
                }
                noted.push(of_message);
            }
            Ok(noted)
        }
        Posting::NotCounted(place, at, why) => {
            let question = messages[place].content.approvals[at].call.question();
            Err((Some(question), messages[place].not_counted(at, why).await))
        }
        Posting::NotKept(place, NotPosted::Answered(question)) => {
            let error = messages[place].answered_before(queue, &question).await;
            Err((Some(question), error))
        }
        Posting::NotKept(place, NotPosted::NoRun) => {
            let question = messages[place].content.pieces.iter().find_map(|piece| piece.questions.first());
            Err((question.cloned(), ResumeError::UnknownRun))
        }
    }
}

/// Stores the approvals whose calls need more approvals, and posts the rest of each message. If an approval does not
/// count, writes only the record of its refusal.
fn write(contents: &[Content], transaction: &mut Transaction) -> Result<Posting, StoreError> {
    let mut planned = Vec::new();
    for (place, content) in contents.iter().enumerate() {
        // The calls were read before the transaction: another decision may have been carried out since.
        if let Some(question) = content.not_asked(transaction) {
            return Ok(Posting::NotKept(place, NotPosted::Answered(question.clone())));
        }
        let mut plans = Vec::new();
        for (at, approval) in content.approvals.iter().enumerate() {
            match waiting::plan(transaction, approval) {
                Ok(plan) => plans.push(plan),
                Err(why) => {
                    waiting::refuse(transaction, approval, why)?;
                    return Ok(Posting::NotCounted(place, at, why));
                }
            }
        }
        planned.push(plans);
    }
    let mut posts = Vec::new();
    for (place, (content, plans)) in contents.iter().zip(&planned).enumerate() {
        match posts::prepare(transaction, &content.run_id, content.tenant.as_deref(), content.rest(plans)?)? {
            Ok(prepared) => posts.push(prepared),
            Err(why) => return Ok(Posting::NotKept(place, why)),
        }
    }
    for post in posts {
        post.write(transaction)?;
    }
    let counted = |plans: Vec<Plan>| plans.into_iter().map(|plan| plan.write(transaction)).collect::<Result<_, _>>();
    planned.into_iter().map(counted).collect::<Result<_, _>>().map(Posting::Kept)
}

impl Content {
    fn keys(&self) -> impl Iterator<Item = Key> {
        let calls = self.approvals.iter().map(|approval| Key::of_waiting(&approval.call));
        let posts = self.pieces.iter().map(|piece| piece.key.clone());
        let asked = self.pieces.iter().flat_map(|piece| &piece.questions).map(|question| self.waiting(question));
        std::iter::once(Key::run_head(Arc::clone(&self.run_id))).chain(posts).chain(calls).chain(asked)
    }

    fn waiting(&self, question: &Question) -> Key {
        let (tenant, principal) = (self.tenant.as_deref(), self.principal.as_deref());
        Key::waiting(Arc::clone(&self.run_id), tenant, principal, question.call_id())
    }

    /// Returns a question that no call asks now. Pieces that are posted already are skipped, because the call of a
    /// retried piece may have ended.
    fn not_asked(&self, transaction: &Transaction) -> Option<&Question> {
        let new = self.pieces.iter().filter(|piece| transaction.get(&piece.key).is_none());
        new.flat_map(|piece| &piece.questions).find(|question| {
            let waiting = transaction.get(&self.waiting(question));
            !matches!(waiting, Some(Document::Waiting(waiting)) if waiting.call.question() == **question)
        })
    }

    /// Returns the posts, without the approvals that are stored with their calls.
    fn rest(&self, plans: &[Plan]) -> Result<Vec<Letter>, StoreError> {
        let noted: Vec<_> = plans.iter().filter(|plan| !plan.is_last()).map(Plan::question).collect();
        let mut letters = Vec::new();
        for Piece { key, input, questions } in &self.pieces {
            let mut rest = input.clone();
            noted.iter().for_each(|question| rest.without(question));
            if rest.is_empty() && !input.is_empty() {
                continue;
            }
            let body = serde_json::to_string(&rest).map_err(corrupt)?.into();
            let answers = questions.iter().filter(|question| !noted.contains(question)).cloned().collect();
            letters.push(Letter { key: key.clone(), body, answers });
        }
        Ok(letters)
    }
}

/// Splits a message into the inputs that a run accepts one by one, each with the questions that it answers.
fn pieces(input: &Input, questions: Vec<Question>) -> Vec<(Input, Vec<Question>)> {
    let number = input.decisions.len() + input.expired.len() + input.answers.len();
    if input.has_message() || input.typed.is_some() || number < 2 {
        return vec![(input.clone(), questions)];
    }
    let size = number.div_ceil(MOST_PIECES);
    let decisions = input.decisions.chunks(size).map(|decisions| {
        let add = |input: Input, (question, decision, decider): &(Question, ApprovalDecision, Decider)| {
            input.decide(question, decision.clone(), decider)
        };
        let asked = decisions.iter().map(|(question, ..)| question.clone()).collect();
        (decisions.iter().fold(Input::new(), add), asked)
    });
    let expired = input
        .expired
        .chunks(size)
        .map(|questions| (questions.iter().fold(Input::new(), Input::expire), questions.to_vec()));
    let answers = input.answers.chunks(size).map(|answers| {
        let is_asked = |question: &&Question| answers.iter().any(|answer| question.call_id() == answer.id());
        let asked = questions.iter().filter(is_asked).cloned().collect();
        (answers.iter().fold(Input::new(), |input, answer| input.answer(answer.clone())), asked)
    });
    decisions.chain(expired).chain(answers).collect()
}
