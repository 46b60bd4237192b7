//! Encodes settings for Anthropic Messages.

use serde_json::json;

use crate::wire::encode::{Fields, Vocabulary};
use crate::wire::formats::anthropic::model::{MAX_OUTPUT_TOKENS, Model, Off, Thinking};
use crate::wire::{ReasoningEffort, RequestSettings, ToolChoice};

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

/// The minimum number of tokens for thinking ("Extended thinking", budget rules).
const LEAST_BUDGET: u32 = 1024;

/// The minimum `top_p` with thinking ("Thinking", sampling parameters).
const LEAST_TOP_P: f64 = 0.95;

/// The token limit that the documentation of effort recommends to start with for the two highest levels.
const MAX_OUTPUT_TOKENS_OF_MUCH: u32 = 64_000;

/// The token limit of a request whose settings have none. The format requires a limit, and thinking counts towards it.
pub(in crate::wire::formats) fn limit(settings: &RequestSettings, model: &str, is_streamed: bool) -> u32 {
    let model = Model::named(model);
    let usual = model.map_or(MAX_OUTPUT_TOKENS, |model| model.limit());
    let takes_levels = model.is_none_or(|model| model.thinking() != Thinking::Budget);
    match settings.reasoning {
        // Without streaming, the connection would be silent for too long while the model writes so many tokens.
        Some(ReasoningEffort::XHigh | ReasoningEffort::Max) if is_streamed && takes_levels => MAX_OUTPUT_TOKENS_OF_MUCH,
        Some(ReasoningEffort::Tokens(tokens)) => usual.saturating_add(tokens),
        _ => usual,
    }
}

pub(super) fn settings(settings: &RequestSettings, model: Option<&str>, out: &mut Fields) {
    let model = model.and_then(Model::named);
    let thinks = thinking(settings, model, out);
    let samples = model.is_none_or(|model| model.samples());
    if thinks || !samples {
        let why = if samples { "when the model thinks" } else { "for this model" };
        if out.body.remove("temperature").is_some_and(|temperature| temperature.as_f64() != Some(1.0)) {
            out.lose("temperature", &format!("the provider takes no temperature {why}"));
        }
        match settings.top_p {
            // A `top_p` of 1 has no effect, so leaving it out is not a loss.
            Some(share) if !samples => {
                out.body.remove("top_p");
                if share < 1.0 {
                    out.lose("top_p", &format!("the provider takes none {why}"));
                }
            }
            Some(share) if share < LEAST_TOP_P => {
                out.body.remove("top_p");
                out.lose("top_p", &format!("the provider takes 0.95 and more {why}"));
            }
            _ => {}
        }
    }
    if out.body.contains_key("temperature") && out.body.remove("top_p").is_some() {
        out.lose("top_p", "the provider takes either `temperature` or `top_p`");
    }
    // The provider refuses a stop sequence that is only white space.
    let blank = |text: &String| text.trim().is_empty();
    if settings.stop.iter().any(blank) {
        out.lose("stop", "the provider refuses one of white space only; the others are sent");
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

/// Writes how much the model thinks. Returns whether it thinks.
fn thinking(settings: &RequestSettings, model: Option<Model<'_>>, out: &mut Fields) -> bool {
    let Some(reasoning) = settings.reasoning else { return false };
    if reasoning == ReasoningEffort::Off {
        off(model, out);
        return false;
    }
    let takes = model.map_or(Thinking::Both, |model| model.thinking());
    let level = match reasoning {
        ReasoningEffort::Tokens(tokens) if takes != Thinking::Adaptive => return budget(tokens, settings, out),
        ReasoningEffort::Tokens(_) => {
            out.lose("reasoning", "the model takes a level, not a number of tokens; it thinks as much as it chooses");
            out.set("thinking", json!({ "type": "adaptive" }));
            return true;
        }
        _ if takes == Thinking::Budget => return budget(share(reasoning, settings, out), settings, out),
        ReasoningEffort::Minimal => {
            out.lose("reasoning", "the lowest level is `low`, which is sent");
            "low"
        }
        ReasoningEffort::Off | ReasoningEffort::Low => "low",
        ReasoningEffort::Medium => "medium",
        ReasoningEffort::High => "high",
        ReasoningEffort::XHigh => "xhigh",
        ReasoningEffort::Max => "max",
    };
    out.set("thinking", json!({ "type": "adaptive" }));
    out.set("output_config.effort", level);
    true
}

fn off(model: Option<Model<'_>>, out: &mut Fields) {
    let kind = match model.map_or(Off::Disabled, |model| model.off()) {
        Off::Never => return out.lose("reasoning", "the model always thinks"),
        Off::BetweenTools => {
            out.lose("reasoning", "the lowest setting is `between_tools`, which is sent");
            "between_tools"
        }
        Off::Disabled => "disabled",
    };
    out.set("thinking", json!({ "type": kind }));
}

/// Converts a level to a share of the token limit, for models that accept only a number.
fn share(level: ReasoningEffort, settings: &RequestSettings, out: &mut Fields) -> u32 {
    let percent = match level {
        ReasoningEffort::Minimal => 10,
        ReasoningEffort::Low => 20,
        ReasoningEffort::Medium => 50,
        ReasoningEffort::High => 80,
        _ => 95,
    };
    out.lose("reasoning", "the model takes a number of tokens, so a share of the limit is sent");
    let limit = settings.max_output_tokens.unwrap_or(MAX_OUTPUT_TOKENS);
    u32::try_from(u64::from(limit) * percent / 100).unwrap_or(u32::MAX).max(LEAST_BUDGET)
}

fn budget(tokens: u32, settings: &RequestSettings, out: &mut Fields) -> bool {
    let problem = if settings.tool_choice.as_ref().is_some_and(ToolChoice::forces) {
        // With a level, the provider allows a forced call: "Thinking with tool use".
        "the provider allows no number of tokens when a call is forced"
    } else if tokens < LEAST_BUDGET {
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
