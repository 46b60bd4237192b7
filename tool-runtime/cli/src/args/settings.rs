//! The grammar of what every request to a model asks for.

use std::str::FromStr;

use clap::{Args, ValueEnum};
use serde_json::Value;
use tool_runtime::wire::{Effort, RequestSettings, ToolChoice};

use super::values;

/// What every request asks for. What is not given is left to the provider.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Request settings")]
pub(crate) struct Asked {
    /// How random the answer is, from 0; most providers take up to 2, Anthropic up to 1
    #[arg(long, value_name = "NUMBER")]
    temperature: Option<f64>,
    /// The share of the most likely tokens to choose from, from 0 to 1
    #[arg(long, value_name = "SHARE")]
    top_p: Option<f64>,
    /// The most tokens of one answer, reasoning included; by default the model's own limit, for Anthropic 16000 and more
    #[arg(long, value_name = "TOKENS")]
    max_output_tokens: Option<u32>,
    /// The field of that limit in openai-chat; many compatible servers know `max_tokens` only
    #[arg(long, value_name = "FIELD")]
    output_limit_field: Option<LimitField>,
    /// A text that ends the answer; repeat it for several
    #[arg(long, value_name = "TEXT")]
    stop: Vec<String>,
    /// Asks for the same answer to the same request, as far as the provider can
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    seed: Option<i64>,
    /// How much the model reasons: off, minimal, low, medium, high, xhigh, max, or a number of tokens
    #[arg(long, value_name = "LEVEL|TOKENS", value_parser = effort)]
    effort: Option<Effort>,
    /// Which tools the model may call: auto, none, required, or names separated by commas; one name has to be called
    #[arg(long, value_name = "CHOICE", value_parser = choice)]
    tool_choice: Option<ToolChoice>,
    /// The provider's word for the class of service
    #[arg(long, value_name = "TIER")]
    service_tier: Option<String>,
    /// One more field of each request's body that no option names, for example `top_k=40`
    #[arg(long, value_name = "NAME=JSON", value_parser = values::field)]
    body: Vec<(String, Value)>,
}

impl Asked {
    pub(crate) fn settings(&self) -> RequestSettings {
        let mut settings = RequestSettings::new();
        settings.temperature = self.temperature;
        settings.top_p = self.top_p;
        settings.max_output_tokens = self.max_output_tokens;
        settings.legacy_max_tokens = self.output_limit_field == Some(LimitField::MaxTokens);
        settings.stop.clone_from(&self.stop);
        settings.seed = self.seed;
        settings.reasoning = self.effort;
        settings.tool_choice.clone_from(&self.tool_choice);
        settings.service_tier.clone_from(&self.service_tier);
        settings.extra.extend(self.body.iter().cloned());
        settings
    }
}

/// The name of the field with the output limit in Chat Completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum LimitField {
    MaxCompletionTokens,
    MaxTokens,
}

fn effort(text: &str) -> Result<Effort, String> {
    match u32::from_str(text) {
        Ok(tokens) => Ok(Effort::Tokens(tokens)),
        Err(_) => serde_json::from_value(Value::from(text)).map_err(|_| {
            "write off, minimal, low, medium, high, xhigh, max, or a number of tokens, for example 2048".to_owned()
        }),
    }
}

fn choice(text: &str) -> Result<ToolChoice, String> {
    Ok(match text {
        "auto" => ToolChoice::Auto,
        "none" => ToolChoice::None,
        "required" => ToolChoice::Required,
        _ => match text.split(',').map(str::trim).collect::<Vec<_>>().as_slice() {
            names if names.contains(&"") => return Err("write names separated by commas".to_owned()),
            [name] => ToolChoice::Named((*name).to_owned()),
            names => {
                ToolChoice::Allowed { names: names.iter().map(|name| (*name).to_owned()).collect(), required: false }
            }
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn efforts_are_levels_or_tokens() {
        assert_eq!(effort("xhigh"), Ok(Effort::XHigh));
        assert_eq!(effort("2048"), Ok(Effort::Tokens(2048)));
        for wrong in ["", "huge", "-1", "tokens", "4294967296"] {
            assert!(effort(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn several_names_are_a_subset() {
        assert_eq!(choice("a"), Ok(ToolChoice::Named("a".to_owned())));
        let names = ["a", "b"].map(str::to_owned).to_vec();
        assert_eq!(choice("a, b"), Ok(ToolChoice::Allowed { names, required: false }));
        assert!(choice("a,").is_err() && choice("").is_err());
    }
}
