//! A scripted model. Its turns depend only on the history, so every process continues a conversation in the same way.

use std::sync::Arc;

use async_trait::async_trait;
use tool_runtime::agent::{DisplayFn, ModelClient, ModelError, ModelRequest};
use tool_runtime::testing::{ScriptedModel, ScriptedTurn};
use tool_runtime::wire::history::Content;
use tool_runtime::wire::{Decoded, Message};

use crate::crossing::Crossings;

/// The first message that selects the short script.
const PAY_ONLY: &str = "Pay only.";

/// The first message that selects the script with a call that the client executes.
const SCAN_ONLY: &str = "Scan only.";
/// The first message that selects the script whose calls can be settled after a crash.
const RESERVE: &str = "Reserve it.";

/// A scripted model. By default it has five turns with one call each, one of which needs a person and one the client,
/// and then an answer. After `Pay only.` or `Scan only.`, it has a single call, for a person or the client, and an
/// answer. After `Reserve it.`, it has a call that can be looked up, a call that may be repeated, and an answer.
pub struct Script {
    crossings: Arc<Crossings>,
}

impl Script {
    /// Creates the model.
    pub const fn new(crossings: Arc<Crossings>) -> Self {
        Self { crossings }
    }

    fn turn(first: &str, at: usize) -> ScriptedTurn {
        match (first, at) {
            (_, 5..) | (PAY_ONLY | SCAN_ONLY, 1..) | (RESERVE, 2..) => ScriptedTurn::text("All is done."),
            (RESERVE, 0) => ScriptedTurn::call("reserve", "parts__reserve", r#"{"part":7}"#),
            (RESERVE, 1) => ScriptedTurn::call("confirm", "parts__confirm", r#"{"part":7}"#),
            (SCAN_ONLY, 0) => ScriptedTurn::call("late", "parts__scan", r#"{"part":10}"#),
            (PAY_ONLY, 0) => ScriptedTurn::call("late", "parts__pay", r#"{"cents":300}"#),
            (_, 0) => ScriptedTurn::call("look", "parts__list", "{}"),
            (_, 1) => ScriptedTurn::call("order", "parts__order", r#"{"part":7}"#),
            (_, 2) => ScriptedTurn::call("pay", "parts__pay", r#"{"cents":1200}"#),
            (_, 3) => ScriptedTurn::call("scan", "parts__scan", r#"{"part":10}"#),
            (_, 4) => ScriptedTurn::call("last", "parts__order", r#"{"part":10}"#),
        }
    }
}

#[async_trait]
impl ModelClient for Script {
    fn name(&self) -> &str {
        "script"
    }

    async fn complete(&self, request: ModelRequest<'_>, show: &mut DisplayFn<'_>) -> Result<Decoded, ModelError> {
        self.crossings.cross("before the model");
        let at = request.messages.iter().filter(|message| matches!(message, Message::Assistant(_))).count();
        let first = request.messages.iter().find_map(|message| match message {
            Message::User(content) => content.iter().find_map(|content| match content {
                Content::Text(text) => Some(text.clone()),
                _ => None,
            }),
            _ => None,
        });
        let turn = Self::turn(&first.unwrap_or_default(), at);
        let decoded = ScriptedModel::new([turn]).complete(request, show).await;
        self.crossings.cross("after the model");
        decoded
    }
}
