//! A long conversation in a SQL store: its steps and its calls neither read nor write text that has not changed.

#![allow(clippy::expect_used, clippy::panic)] // A test cannot continue without its store.

use std::sync::Arc;

use tool_runtime::agent::{Agent, Input, RunQueue, SavedConversation, TurnOutcome};
use tool_runtime::store::{Key, Store, StoredDocument, Transaction};
use tool_runtime::testing::{ScriptedModel, ScriptedTurn};
use tool_runtime::tool::Hash;
use tool_runtime::{RunOptions, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};

/// Writes a line.
#[tool(name = "long__write", effect = state_change, redact = ["$"])]
fn write(
    /// The line.
    line: String,
) -> Result<String, ToolError> {
    Ok(line)
}

/// How many turns the conversation of [`continues_without_its_text`] has.
const TURNS: usize = 60;

/// Continues a conversation after `aside(true)` has removed the stored parts of its text: a lease, a turn with a call,
/// its saves, a posted message and the release read none of these parts. `aside(false)` puts them back.
///
/// # Panics
/// One of these operations reads a part.
pub async fn continues_without_its_text(store: Arc<dyn Store>, aside: impl Fn(bool)) {
    let catalog = ToolCatalog::builder().tool::<write>().build().expect("a catalog");
    let policy = ToolPolicy::from_toml("allowed_tools = ['long__write']").expect("a policy");
    let runner = ToolRunner::builder(catalog, policy).store(Arc::clone(&store)).build().expect("a runner");
    let answer = |at: usize| ScriptedTurn::text(Hash::sha256(at.to_be_bytes()).to_string().repeat(20));
    let call = ScriptedTurn::call("c1", "long__write", r#"{"line":"one"}"#);
    let turns: Vec<_> = (0..TURNS).map(answer).chain([call, answer(TURNS)]).collect();
    let agent = Agent::new(ScriptedModel::new(turns));
    let mut conversation = agent.converse(runner.run(RunOptions::new().run_id("long")));
    for _ in 0..TURNS {
        conversation.send("Go on.").await;
    }
    let queue = RunQueue::new(&runner);
    let saved = conversation.save().await.expect("saved");
    let mut leased = queue.begin(&saved, "test").await.expect("it is new");
    let mut conversation = agent.restore(&runner, leased.options(RunOptions::new()), saved).await.expect("restored");

    aside(true);
    let lost = SavedConversation::find(&*store, "long", None).await.expect_err("the text is not there");
    assert_eq!(lost.code(), "store_corrupt");
    let ended = leased.receive(&mut conversation, Input::from("Write.")).await.expect("the store works");
    assert!(matches!(ended, TurnOutcome::Answered { .. }), "{ended:?}");
    queue.post("long", None, &Input::from("And this?")).await.expect("posted");
    let (post, _) = leased.post().await.expect("the store works").expect("a post");
    let saved = conversation.save().await.expect("saved");
    leased.save(&saved, "answered", Some(post)).await.expect("saved");
    leased.release(None).await.expect("released");

    aside(false);
    let (_, found) = SavedConversation::find(&*store, "long", None).await.expect("the text is whole");
    assert_eq!(found.turns().len(), saved.turns().len());
}

/// Returns a string like a conversation's: a policy that never changes, a history that grows, and numbers at its front,
/// middle and end.
#[must_use]
pub fn conversation(turns: usize) -> String {
    let rule = |tool: usize| format!("{{\"tool\":\"name__{tool}\",\"limits\":{{\"calls\":{tool}}}}},");
    let message = |turn: usize| format!("{{\"role\":\"tool\",\"text\":\"{}\"}},", Hash::sha256(turn.to_be_bytes()));
    let (rules, history): (String, String) = ((0..100).map(rule).collect(), (0..turns).map(message).collect());
    format!("{{\"turns\":{turns},\"policies\":[{rules}],\"spent\":{turns},\"history\":[{history}],\"end\":{turns}}}")
}

/// Writes a step of conversations of 50, 500 and 5,000 turns. `counts` returns the bytes that were written since its
/// last call.
///
/// # Panics
/// A long conversation needs more than a short one.
pub async fn steps_write_what_is_new(store: Arc<dyn Store>, counts: impl Fn() -> i64) {
    let mut steps = Vec::new();
    for turns in [50, 500, 5000] {
        let run = format!("run {turns}");
        let mut written = 0;
        for text in [conversation(turns), conversation(turns + 1)] {
            let of = run.clone();
            let change = move |transaction: &mut Transaction| {
                transaction.put(StoredDocument::example(&of, &text, Some(transaction.now())))
            };
            store.update(vec![Key::run_head(run.as_str())], Box::new(change)).await.expect("it writes");
            written = counts();
        }
        steps.push(written);
    }
    // The text is 51 times longer. The lists of its parts have two levels more.
    assert!(steps.iter().all(|step| *step < 2 * steps[0]), "{steps:?}");
}
