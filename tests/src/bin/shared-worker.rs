//! A worker as a separate process, for the tests that kill it: `shared-worker STORE EFFECTS PAUSE TOOL`. With `decides`
//! instead of a tool, the process approves the calls that wait.
//!
//! Each of its model's runs makes five calls of one tool (or of three in turn), which append a line to a file. The
//! arguments name the run and the call: two calls with equal arguments would be one effect, and the second would wait
//! while the outcome of the first is unknown.

#![allow(clippy::expect_used, clippy::panic, reason = "a test process says what it expects")]

use std::time::Duration;

use async_trait::async_trait;
use tests::kills::{self, CALLS};
use tool_runtime::agent::{Agent, DisplayFn, ModelClient, ModelError, ModelRequest, Worker};
use tool_runtime::wire::history::{CallMessage, Content, Part};
use tool_runtime::wire::{Decoded, FinishReason, Message};

/// A model whose next turn depends only on the history.
struct Plan(String);

#[async_trait]
impl ModelClient for Plan {
    fn name(&self) -> &'static str {
        "plan"
    }

    async fn complete(&self, request: ModelRequest<'_>, _: &mut DisplayFn<'_>) -> Result<Decoded, ModelError> {
        let said = request.messages.iter().filter(|message| matches!(message, Message::Assistant(_))).count();
        Ok(if said < CALLS {
            let run = asked(request.messages);
            let tool = kills::tool_of(&self.0, run, said);
            let call = CallMessage::new(format!("c{said}"), tool, &kills::arguments(tool, run, said));
            Decoded::new(&[Part::text(format!("{said}")), Part::Call(call)], FinishReason::ToolCalls)
        } else {
            Decoded::new(&[Part::text("Done.")], FinishReason::Stop)
        })
    }
}

/// The first text of the user, which is the id of the run.
fn asked(messages: &[Message]) -> &str {
    let mut texts = messages.iter().filter_map(|message| match message {
        Message::User(content) => content.iter().find_map(|one| match one {
            Content::Text(text) => Some(text.as_str()),
            _ => None,
        }),
        _ => None,
    });
    texts.next().expect("the user spoke first")
}

#[tokio::main]
async fn main() {
    let words: Vec<_> = std::env::args().collect();
    let [_, store, effects, pause, tool] = words.as_slice() else { panic!("four words") };
    let pause = Duration::from_millis(pause.parse().expect("milliseconds"));
    kills::happens_in(effects.into(), pause);
    let store = kills::open(store).await;
    if tool == kills::DECIDES {
        return kills::decide(store).await;
    }
    let runner = kills::runner(store, tool);
    let worker =
        Worker::new(Agent::new(Plan(tool.clone())), runner).name("same").lease(kills::LEASE).concurrency(kills::PLACES);
    worker.run(std::future::pending()).await.expect("the store is there");
}
