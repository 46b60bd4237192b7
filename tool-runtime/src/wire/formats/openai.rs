//! Code that Chat Completions and Responses share.

use crate::wire::decode::fields::{Count, shape};
use crate::wire::encode::strict::Closing;
use crate::wire::encode::{Fields, FormatFeatures, PropertyNames, Vocabulary};
use crate::wire::{ReasoningEffort, RequestSettings};

/// The features of an OpenAI format with these settings.
pub(super) const fn features(
    vocabulary: &'static Vocabulary,
    settings: fn(&RequestSettings, Option<&str>, &mut Fields),
) -> FormatFeatures {
    FormatFeatures {
        refused_at_root: &["oneOf", "anyOf", "allOf", "enum", "not"],
        property_names: PropertyNames::Any,
        description: Some(1024),
        tools: Some(128),
        closing: Some(Closing::Nullable),
        parallel: true,
        choice: true,
        allowed: true,
        vocabulary,
        settings,
    }
}

/// The maximum number of metadata entries. The constants below limit the characters of a key, of a value and of the
/// user's id.
const NOTES: usize = 16;
const KEY: usize = 64;
const VALUE: usize = 512;
const USER: usize = 128;

/// Writes the reasoning effort as one of the provider's levels.
pub(super) fn effort(settings: &RequestSettings, out: &mut Fields) -> Option<&'static str> {
    match settings.reasoning? {
        ReasoningEffort::Off => Some("none"),
        ReasoningEffort::Minimal => Some("minimal"),
        ReasoningEffort::Low => Some("low"),
        ReasoningEffort::Medium => Some("medium"),
        ReasoningEffort::High => Some("high"),
        ReasoningEffort::XHigh => Some("xhigh"),
        ReasoningEffort::Max => Some("max"),
        ReasoningEffort::Tokens(_) => {
            out.lose("reasoning", "the format takes a level, not a number of tokens");
            None
        }
    }
}

/// Writes the metadata and the user's id.
pub(super) fn notes(settings: &RequestSettings, out: &mut Fields) {
    let fits = |(key, value): &(&String, &String)| key.chars().count() <= KEY && value.chars().count() <= VALUE;
    let notes: serde_json::Map<_, _> = settings
        .metadata
        .iter()
        .filter(fits)
        .take(NOTES)
        .map(|(key, value)| (key.clone(), value.as_str().into()))
        .collect();
    if notes.len() < settings.metadata.len() {
        out.lose(
            "metadata",
            "there are more entries, or longer ones, than the provider takes; those that fit are sent",
        );
    }
    if !notes.is_empty() {
        out.set("metadata", notes);
    }
    match &settings.user {
        Some(user) if user.chars().count() > USER => out.lose("user", "it is longer than the provider takes"),
        Some(user) => out.set("safety_identifier", user.as_str()),
        None => {}
    }
}

shape! {
    /// The tokens read that came from the cache, or were written to it.
    pub(super) struct Read {
        "cached_tokens" => pub(super) cached: Count,
        "cache_write_tokens" => pub(super) cache_write: Count,
    }
}

shape! {
    /// The written tokens that are reasoning.
    pub(super) struct OutputDetails {
        "reasoning_tokens" => pub(super) reasoning: Count,
    }
}
