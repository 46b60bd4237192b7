//! Encodes settings for OpenAI's Responses API, which has neither stop sequences nor a seed.

use crate::wire::RequestSettings;
use crate::wire::encode::{Fields, Vocabulary};
use crate::wire::formats::openai;

/// The names of the settings in a request, and the highest temperature.
pub(super) const VOCABULARY: Vocabulary = Vocabulary {
    under: "",
    temperature: 2.0,
    top_p: "top_p",
    limit: "max_output_tokens",
    legacy_limit: None,
    stop: None,
    seed: None,
    // Every tier is sent, because the server refuses an unknown one.
    tier: Some(("service_tier", &[])),
    metadata: Some("metadata"),
    cache_key: Some("prompt_cache_key"),
    named: &["reasoning.effort", "safety_identifier"],
};

/// Writes the settings that [`VOCABULARY`] does not name. OpenAI's rules do not depend on the model.
pub(super) fn settings(settings: &RequestSettings, _model: Option<&str>, out: &mut Fields) {
    if let Some(effort) = openai::effort(settings, out) {
        out.set("reasoning.effort", effort);
    }
    openai::notes(settings, out);
}
