//! Encodes settings for Gemini.

use crate::wire::encode::{Fields, Vocabulary};
use crate::wire::formats::gemini::model::{Generation, generation, is_pro};
use crate::wire::{ReasoningEffort, RequestSettings};

pub(super) const VOCABULARY: Vocabulary = Vocabulary {
    under: "generationConfig",
    temperature: 2.0,
    top_p: "topP",
    limit: "maxOutputTokens",
    legacy_limit: None,
    stop: Some(("stopSequences", 5)),
    seed: Some(i32::MAX as i64),
    tier: Some(("serviceTier", &["standard", "flex", "priority"])),
    metadata: Some("labels"),
    cache_key: None,
    named: &[BUDGET, LEVEL],
};

const BUDGET: &str = "generationConfig.thinkingConfig.thinkingBudget";
const LEVEL: &str = "generationConfig.thinkingConfig.thinkingLevel";

/// The maximum number of characters of a label's key, and of its value.
const LABEL: usize = 63;

/// The minimum number of tokens for thinking of Gemini 2.5 Pro ("Gemini thinking", thinking budgets).
const LEAST_BUDGET: u32 = 128;

pub(super) fn settings(settings: &RequestSettings, model: Option<&str>, out: &mut Fields) {
    if let Some(reasoning) = settings.reasoning {
        thinking(reasoning, model, out);
    }
    let labels: serde_json::Map<_, _> = settings
        .metadata
        .iter()
        .filter(|(key, value)| !key.is_empty() && is_label(key) && is_label(value))
        .map(|(key, value)| (key.clone(), value.as_str().into()))
        .collect();
    if labels.len() < settings.metadata.len() {
        out.lose("metadata", "labels have up to 63 lower-case letters, digits, `-` and `_`; those that fit are sent");
    }
    if !labels.is_empty() {
        out.set("labels", labels);
    }
    if settings.user.is_some() {
        out.lose("user", "the format has no field for it");
    }
}

/// Writes how much the model thinks: Gemini 2.5 accepts a number of tokens, later models a level or a number of tokens.
/// Google's documentation of its OpenAI compatibility gives the tokens of each level and the models that always think.
/// The levels are those of `ThinkingLevel` in its SDKs.
fn thinking(reasoning: ReasoningEffort, model: Option<&str>, out: &mut Fields) {
    let (older, newer) = match generation(model) {
        None => (false, false),
        Some(generation) => (generation == Generation::Older, generation == Generation::Newer),
    };
    let (tokens, level) = match reasoning {
        ReasoningEffort::Tokens(tokens) => return out.set(BUDGET, tokens),
        ReasoningEffort::Off if newer => {
            out.lose("reasoning", "the model always thinks; its lowest level is sent");
            (0, "MINIMAL")
        }
        ReasoningEffort::Off if is_pro(model) => {
            out.lose("reasoning", "the model always thinks; its fewest tokens are sent");
            return out.set(BUDGET, LEAST_BUDGET);
        }
        ReasoningEffort::Off => return out.set(BUDGET, 0),
        ReasoningEffort::Minimal => (1024, "MINIMAL"),
        ReasoningEffort::Low => (1024, "LOW"),
        ReasoningEffort::Medium => (8192, "MEDIUM"),
        ReasoningEffort::High => (24_576, "HIGH"),
        ReasoningEffort::XHigh | ReasoningEffort::Max => {
            out.lose("reasoning", "the highest level is `high`, which is sent");
            (24_576, "HIGH")
        }
    };
    if older {
        out.set(BUDGET, tokens);
    } else if level == "MINIMAL" && is_pro(model) {
        out.lose("reasoning", "the lowest level of the model is `low`, which is sent");
        out.set(LEVEL, "LOW");
    } else {
        out.set(LEVEL, level);
    }
}

fn is_label(text: &str) -> bool {
    let legal = |letter: char| letter.is_ascii_digit() || matches!(letter, '-' | '_') || letter.is_lowercase();
    text.chars().count() <= LABEL && text.chars().all(legal)
}
