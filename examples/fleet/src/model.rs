//! A model that every process has: what it says follows from the history.

use std::sync::Arc;

use async_trait::async_trait;
use tool_runtime::agent::{ModelClient, ModelError, ModelRequest, ScriptedModel, ScriptedTurn, Show};
use tool_runtime::wire::{Decoded, Message};

use crate::crossing::Crossings;

/// Five turns with a call each, the third of which needs a person, and an answer.
pub struct Script {
    crossings: Arc<Crossings>,
}

impl Script {
    /// The script.
    pub const fn new(crossings: Arc<Crossings>) -> Self {
        Self { crossings }
    }

    fn turn(at: usize) -> ScriptedTurn {
        match at {
            0 => ScriptedTurn::call("first", "parts__order", r#"{"part":7}"#),
            1 => ScriptedTurn::call("second", "parts__order", r#"{"part":8}"#),
            2 => ScriptedTurn::call("third", "parts__pay", r#"{"cents":1200}"#),
            3 => ScriptedTurn::call("fourth", "parts__order", r#"{"part":9}"#),
            4 => ScriptedTurn::call("fifth", "parts__order", r#"{"part":10}"#),
            _ => ScriptedTurn::text("All parts are ordered."),
        }
    }
}

#[async_trait]
impl ModelClient for Script {
    fn name(&self) -> &str {
        "script"
    }

    async fn complete(&self, request: ModelRequest<'_>, show: &mut Show<'_>) -> Result<Decoded, ModelError> {
        self.crossings.cross("before the model");
        let at = request.messages.iter().filter(|message| matches!(message, Message::Assistant(_))).count();
        let decoded = ScriptedModel::new([Self::turn(at)]).complete(request, show).await;
        self.crossings.cross("after the model");
        decoded
    }
}
