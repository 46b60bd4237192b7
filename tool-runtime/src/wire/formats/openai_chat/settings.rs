//! Encodes settings for Chat Completions.

use crate::wire::RequestSettings;
use crate::wire::encode::{Fields, Vocabulary};
use crate::wire::formats::openai;

pub(super) const VOCABULARY: Vocabulary = Vocabulary {
    under: "",
    temperature: 2.0,
    top_p: "top_p",
    limit: "max_completion_tokens",
    legacy_limit: Some("max_tokens"),
    stop: Some(("stop", 4)),
    seed: Some(i64::MAX),
    // Every tier is sent, because compatible servers have their own names.
    tier: Some(("service_tier", &[])),
    metadata: Some("metadata"),
    cache_key: Some("prompt_cache_key"),
    named: &["reasoning_effort", "safety_identifier"],
};

pub(super) fn settings(settings: &RequestSettings, _model: Option<&str>, out: &mut Fields) {
    if let Some(effort) = openai::effort(settings, out) {
        out.set("reasoning_effort", effort);
    }
    openai::notes(settings, out);
}
