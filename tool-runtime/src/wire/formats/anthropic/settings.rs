//! Settings in the shape of Anthropic Messages.

use serde_json::json;

use crate::wire::encode::{Fields, Vocabulary};
use crate::wire::{Effort, RequestSettings, ToolChoice};

pub(super) const VOCABULARY: Vocabulary = Vocabulary {
    under: "",
    temperature: 1.0,
    top_p: "top_p",
    limit: "max_tokens",
    legacy_limit: None,
    stop: Some(("stop_sequences", usize::MAX)),
    seed: None,
    tier: Some(("service_tier", &["auto", "standard_only"])),
    metadata: None,
    cache_key: None,
    named: &["thinking.type", "thinking.budget_tokens", "output_config.effort", "metadata.user_id", "cache_control"],
};

/// The fewest tokens that a model may think for.
const LEAST_BUDGET: u32 = 1024;

/// The least `top_p` beside thinking.
const LEAST_TOP_P: f64 = 0.95;

pub(super) fn settings(settings: &RequestSettings, out: &mut Fields) {
    let thinks = thinking(settings, out);
    if thinks {
        if out.body.remove("temperature").is_some() {
            out.lose("temperature", "the provider takes no temperature when the model thinks");
        }
        if settings.top_p.is_some_and(|share| share < LEAST_TOP_P) && out.body.remove("top_p").is_some() {
            out.lose("top_p", "the provider takes 0.95 and more when the model thinks");
        }
    }
    if out.body.contains_key("temperature") && out.body.remove("top_p").is_some() {
        out.lose("top_p", "the provider takes either `temperature` or `top_p`");
    }
    // A sequence of white space alone is refused.
    let blank = |text: &String| text.trim().is_empty();
    if settings.stop.iter().any(blank) {
        out.lose("stop", "the provider takes none that is white space only; the others are sent");
        let rest: Vec<_> = settings.stop.iter().filter(|text| !blank(text)).cloned().collect();
        out.body.remove("stop_sequences");
        if !rest.is_empty() {
            out.set("stop_sequences", rest);
        }
    }
    if !settings.metadata.is_empty() {
        out.lose("metadata", "the provider has no field for metadata");
    }
    if let Some(user) = &settings.user {
        out.set("metadata", json!({ "user_id": user }));
    }
}

/// Writes how much the model thinks. Returns whether it does.
fn thinking(settings: &RequestSettings, out: &mut Fields) -> bool {
    let Some(reasoning) = settings.reasoning else { return false };
    if reasoning == Effort::Off {
        out.set("thinking", json!({ "type": "disabled" }));
        return false;
    }
    let forced = settings.tool_choice.as_ref().is_some_and(ToolChoice::forces);
    if forced {
        out.lose("reasoning", "the provider allows no thinking when a call is forced");
        return false;
    }
    let level = match reasoning {
        Effort::Tokens(tokens) => return budget(tokens, settings, out),
        Effort::Minimal => {
            out.lose("reasoning", "the lowest level is `low`, which is sent");
            "low"
        }
        Effort::Off | Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
        Effort::XHigh => "xhigh",
        Effort::Max => "max",
    };
    out.set("thinking", json!({ "type": "adaptive" }));
    out.set("output_config.effort", level);
    true
}

fn budget(tokens: u32, settings: &RequestSettings, out: &mut Fields) -> bool {
    let problem = if tokens < LEAST_BUDGET {
        "the provider takes 1,024 tokens and more"
    } else if settings.max_output_tokens.is_some_and(|most| tokens >= most) {
        "the tokens have to be fewer than `max_output_tokens`"
    } else {
        out.set("thinking", json!({ "type": "enabled", "budget_tokens": tokens }));
        return true;
    };
    out.lose("reasoning", problem);
    false
}
