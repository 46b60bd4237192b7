//! Settings in the shape of Responses.

use crate::wire::RequestSettings;
use crate::wire::encode::{Fields, Vocabulary};
use crate::wire::formats::openai;

pub(super) const VOCABULARY: Vocabulary = Vocabulary {
    under: "",
    temperature: 2.0,
    top_p: "top_p",
    limit: "max_output_tokens",
    legacy_limit: None,
    stop: None,
    seed: None,
    tier: Some(("service_tier", &[])),
    metadata: Some("metadata"),
    cache_key: Some("prompt_cache_key"),
    named: &["reasoning.effort", "safety_identifier"],
};

pub(super) fn settings(settings: &RequestSettings, _model: Option<&str>, out: &mut Fields) {
    if let Some(effort) = openai::effort(settings, out) {
        out.set("reasoning.effort", effort);
    }
    openai::notes(settings, out);
}
