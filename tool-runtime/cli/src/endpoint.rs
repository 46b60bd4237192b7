//! The options for a model: its endpoint, and the settings of every request.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::Value;
use tool_runtime::wire::{Format, ReasoningEffort, RequestSettings, ToolChoice};

use crate::values;

/// A model's endpoint. The environment and the configuration file supply the URL, the name of the model, the format and
/// the variable of the key if the options do not.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct Endpoint {
    /// The base URL of an endpoint; without a path, the provider's usual path is added
    #[arg(long, value_name = "URL")]
    pub(crate) model_url: Option<String>,
    /// The name of the model
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// The provider's format; openai-chat by default
    #[arg(long, value_parser = values::formats())]
    pub(crate) format: Option<Format>,
    /// The environment variable that holds the endpoint's key; a configured key is sent only to the configured URL
    #[arg(long, value_name = "VARIABLE")]
    pub(crate) key_env: Option<String>,
    /// An extra header of each request; a key belongs in `--key-env`, because others can see the command line
    #[arg(long, value_name = "NAME: VALUE", value_parser = values::header)]
    pub(crate) header: Vec<(String, String)>,
    /// The proxy for the requests; proxy variables of the environment are ignored
    #[arg(long, value_name = "URL")]
    pub(crate) proxy: Option<String>,
    /// A PEM file with certificate authorities to trust too
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Use the strict mode of the format, if it has one. The objects of a schema then accept no undeclared members
    #[arg(long)]
    pub(crate) strict: bool,
    /// Ignore the provider's limits on tools and descriptions, for a compatible server without these limits
    #[arg(long)]
    pub(crate) no_provider_limits: bool,
    /// Request the answer without streaming
    #[arg(long)]
    pub(crate) no_stream: bool,
    /// How long one answer may take, retries included, for example 90s or 10m
    #[arg(long, value_name = "TIME", value_parser = values::time, default_value = "10m")]
    pub(crate) timeout: Duration,
    /// How long the first byte of an answer may take; 60s when it is streamed
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub(crate) first_byte_timeout: Option<Duration>,
    /// How long the endpoint may be silent within an answer
    #[arg(long, value_name = "TIME", value_parser = values::time, default_value = "60s")]
    pub(crate) idle_timeout: Duration,
    /// How many times a failed request is retried
    #[arg(long, value_name = "TIMES", default_value_t = 2)]
    pub(crate) retries: u32,
    /// Instructions to the model, before the conversation
    #[arg(long, value_name = "TEXT")]
    pub(crate) instructions: Option<String>,
    /// Offer only the tools that fit the prompts, at most this many for each prompt; an offered tool stays offered
    #[arg(long, value_name = "TOOLS", value_parser = values::most)]
    pub(crate) pick: Option<usize>,
    /// How many reading calls of one turn may run at the same time
    #[arg(long, value_name = "CALLS", default_value_t = 4)]
    pub(crate) parallel: usize,
    #[command(flatten)]
    pub(crate) asked: ModelSettings,
}

/// The settings of every request. An absent setting has the provider's default.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Request settings")]
pub(crate) struct ModelSettings {
    /// How random the answer is, from 0; most providers take up to 2, Anthropic up to 1
    #[arg(long, value_name = "NUMBER")]
    temperature: Option<f64>,
    /// The share of the most likely tokens to choose from, from 0 to 1
    #[arg(long, value_name = "SHARE")]
    top_p: Option<f64>,
    /// The maximum number of tokens of one answer, reasoning included; by default the model's own limit, for Anthropic
    /// 16000 and more
    #[arg(long, value_name = "TOKENS")]
    max_output_tokens: Option<u32>,
    /// The name of this limit's field in openai-chat; many compatible servers accept only `max_tokens`
    #[arg(long, value_name = "FIELD")]
    output_limit_field: Option<LimitField>,
    /// A string that ends the answer; repeat it for several
    #[arg(long, value_name = "TEXT")]
    stop: Vec<String>,
    /// A seed for the same answer to the same request, if the provider supports it
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    seed: Option<i64>,
    /// How much the model reasons: off, minimal, low, medium, high, xhigh, max, or a number of tokens
    #[arg(long, value_name = "LEVEL|TOKENS", value_parser = effort)]
    effort: Option<ReasoningEffort>,
    /// Which tools the model may call: auto, none, required, or names separated by commas; a single name must be called
    #[arg(long, value_name = "CHOICE", value_parser = choice)]
    tool_choice: Option<ToolChoice>,
    /// The service tier, in the provider's own word
    #[arg(long, value_name = "TIER")]
    service_tier: Option<String>,
    /// An extra field of each request's body, for example `top_k=40`
    #[arg(long, value_name = "NAME=JSON", value_parser = values::field)]
    body: Vec<(String, Value)>,
}

impl ModelSettings {
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

fn effort(text: &str) -> Result<ReasoningEffort, String> {
    match u32::from_str(text) {
        Ok(tokens) => Ok(ReasoningEffort::Tokens(tokens)),
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
        assert_eq!(effort("xhigh"), Ok(ReasoningEffort::XHigh));
        assert_eq!(effort("2048"), Ok(ReasoningEffort::Tokens(2048)));
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
