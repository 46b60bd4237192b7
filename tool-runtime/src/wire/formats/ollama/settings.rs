//! Encodes settings for Ollama's chat.

use serde_json::Value;

use crate::wire::encode::{Fields, Vocabulary};
use crate::wire::{ReasoningEffort, RequestSettings};

pub(super) const VOCABULARY: Vocabulary = Vocabulary {
    under: "options",
    temperature: f64::MAX,
    top_p: "top_p",
    limit: "num_predict",
    legacy_limit: None,
    stop: Some(("stop", usize::MAX)),
    seed: Some(i64::MAX),
    tier: None,
    metadata: None,
    cache_key: None,
    named: &["think"],
};

pub(super) fn settings(settings: &RequestSettings, _model: Option<&str>, out: &mut Fields) {
    let think: Option<Value> = settings.reasoning.and_then(|reasoning| match reasoning {
        ReasoningEffort::Off => Some(false.into()),
        ReasoningEffort::Minimal => {
            out.lose("reasoning", "the lowest level is `low`, which is sent");
            Some("low".into())
        }
        ReasoningEffort::Low => Some("low".into()),
        ReasoningEffort::Medium => Some("medium".into()),
        ReasoningEffort::High => Some("high".into()),
        ReasoningEffort::XHigh | ReasoningEffort::Max => {
            out.lose("reasoning", "the highest level is `high`, which is sent");
            Some("high".into())
        }
        ReasoningEffort::Tokens(_) => {
            out.lose("reasoning", "the format takes a level, not a number of tokens");
            None
        }
    });
    if let Some(think) = think {
        out.set("think", think);
    }
    if !settings.metadata.is_empty() {
        out.lose("metadata", "the server has no field for metadata");
    }
    if settings.user.is_some() {
        out.lose("user", "the server has no field for the user");
    }
}
