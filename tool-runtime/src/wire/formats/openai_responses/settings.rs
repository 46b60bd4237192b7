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

pub(super) fn settings(settings: &RequestSettings, out: &mut Fields) {
    let effort = openai::effort(settings, out);
    if let Some(effort) = effort {
        out.set("reasoning.effort", effort);
    }
    // The whole history goes with each request, so the reasoning has to come back in a form that can be sent again.
    // Models that do not reason refuse the field.
    if effort.is_some_and(|effort| effort != "none") && !settings.extra.contains_key("include") {
        out.set("include", vec!["reasoning.encrypted_content"]);
    }
    openai::notes(settings, out);
}
