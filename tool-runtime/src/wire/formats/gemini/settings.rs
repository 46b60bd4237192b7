//! Settings in the shape of Gemini.

use crate::wire::encode::{Fields, Vocabulary};
use crate::wire::{Effort, RequestSettings};

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
    named: &["generationConfig.thinkingConfig.thinkingBudget", "generationConfig.thinkingConfig.thinkingLevel"],
};

/// The most characters of a label's key and value.
const LABEL: usize = 63;

pub(super) fn settings(settings: &RequestSettings, out: &mut Fields) {
    let level = match settings.reasoning {
        None => None,
        Some(Effort::Off) => {
            out.set("generationConfig.thinkingConfig.thinkingBudget", 0);
            None
        }
        Some(Effort::Tokens(tokens)) => {
            out.set("generationConfig.thinkingConfig.thinkingBudget", tokens);
            None
        }
        Some(Effort::Minimal) => Some("MINIMAL"),
        Some(Effort::Low) => Some("LOW"),
        Some(Effort::Medium) => Some("MEDIUM"),
        Some(Effort::High) => Some("HIGH"),
        // The highest level that the types of all official SDKs know.
        Some(Effort::XHigh | Effort::Max) => {
            out.lose("reasoning", "the highest level is `high`, which is sent");
            Some("HIGH")
        }
    };
    if let Some(level) = level {
        out.set("generationConfig.thinkingConfig.thinkingLevel", level);
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

fn is_label(text: &str) -> bool {
    let legal = |letter: char| letter.is_ascii_digit() || matches!(letter, '-' | '_') || letter.is_lowercase();
    text.chars().count() <= LABEL && text.chars().all(legal)
}
