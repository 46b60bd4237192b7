//! [`RequestSettings`]: the provider-independent settings of a request.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::wire::ToolChoice;

/// The settings of a request beyond its messages and its tools. For an absent setting, the provider uses its default.
///
/// Each format writes the settings as its provider documents them. A setting that the format lacks, or a value that its
/// provider does not accept, is left out and reported as a [`Loss`](crate::wire::Loss). A value that no provider
/// accepts (a temperature that is negative or not a number) is refused. In an agent, the settings of one message
/// override the agent's own.
///
/// ```
/// use tool_runtime::wire::{Format, ReasoningEffort, RequestSettings};
///
/// let settings = RequestSettings::new().temperature(0.2).max_output_tokens(800).reasoning(ReasoningEffort::Low).seed(7);
/// let chat = Format::OpenAiChat.encode_settings(&settings, None)?;
/// assert_eq!(chat.body["reasoning_effort"], "low");
/// let anthropic = Format::Anthropic.encode_settings(&settings, None)?;
/// let lost: Vec<_> = anthropic.losses.iter().map(|loss| loss.path.as_str()).collect();
/// assert_eq!(lost, ["seed", "temperature"]);
/// # Ok::<(), tool_runtime::wire::EncodeError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
#[must_use]
pub struct RequestSettings {
    /// How random the answer is, from 0; most providers accept up to 2, Anthropic up to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The share of the most likely tokens to choose from, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// The maximum number of tokens of one turn, reasoning included. `None` means the model's own limit. Anthropic
    /// requires a limit: without one, the HTTP client sends 16,000 (4,096 to models before Claude 3.7), plus the
    /// tokens of [`ReasoningEffort::Tokens`]. In a stream, it sends 64,000 for [`XHigh`](ReasoningEffort::XHigh) and
    /// [`Max`](ReasoningEffort::Max) to models that accept levels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// Whether Chat Completions sends `max_output_tokens` as `max_tokens`, the older name that Mistral and many
    /// compatible servers require, instead of `max_completion_tokens`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub legacy_max_tokens: bool,
    /// Texts that end the answer when the model writes them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// The seed of the sampling. With the same seed, the provider gives the same answer to the same request, if it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// The amount of reasoning before the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<ReasoningEffort>,
    /// Which tools the model may or has to call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Whether one turn may hold several calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_calls: Option<bool>,
    /// The service tier, by the provider's name, such as `flex`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_tier: Option<String>,
    /// Keys and values that the provider keeps with the request.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// An opaque id of the user who makes the request, with which providers detect abuse. Send a hash, not a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// A key that requests with the same beginning share, for providers that route requests to a cache by key (OpenAI).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_key: Option<String>,
    /// Whether the request marks its stable beginning for the provider's cache (Anthropic), and whether the HTTP client
    /// sends a cache key of its own (Responses). `None` means `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<bool>,
    /// Fields of the body that no setting names, as the provider documents them.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

/// How much a model reasons before it answers. If the provider lacks a level, the nearest one is sent.
///
/// ```
/// use tool_runtime::wire::{Format, ReasoningEffort, RequestSettings};
///
/// let settings = RequestSettings::new().reasoning(ReasoningEffort::Tokens(2048));
/// let encoded = Format::Anthropic.encode_settings(&settings, None)?;
/// assert_eq!(encoded.body["thinking"]["budget_tokens"], 2048);
/// # Ok::<(), tool_runtime::wire::EncodeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReasoningEffort {
    /// No reasoning.
    Off,
    /// As little reasoning as possible.
    Minimal,
    /// A little reasoning.
    Low,
    /// The usual amount of reasoning.
    Medium,
    /// Much reasoning.
    High,
    /// More than [`High`](Self::High), for models that have such a level.
    #[serde(rename = "xhigh")]
    XHigh,
    /// As much reasoning as possible.
    Max,
    /// Up to this many tokens, for providers that accept a number (Anthropic, Gemini).
    Tokens(u32),
}

impl RequestSettings {
    /// Creates settings without any value, so that the provider uses its defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how random the answer is, from 0; most providers accept up to 2, Anthropic up to 1.
    pub const fn temperature(mut self, temperature: f64) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// Sets the share of the most likely tokens to choose from, from 0 to 1.
    pub const fn top_p(mut self, share: f64) -> Self {
        self.top_p = Some(share);
        self
    }

    /// Sets the maximum number of tokens of one turn, reasoning included.
    pub const fn max_output_tokens(mut self, tokens: u32) -> Self {
        self.max_output_tokens = Some(tokens);
        self
    }

    /// Sets whether Chat Completions sends the limit as `max_tokens`.
    pub const fn legacy_max_tokens(mut self, wanted: bool) -> Self {
        self.legacy_max_tokens = wanted;
        self
    }

    /// Adds a stop sequence: a string that ends the answer.
    pub fn stop(mut self, text: impl Into<String>) -> Self {
        self.stop.push(text.into());
        self
    }

    /// Sets the seed. With the same seed, the provider gives the same answer to the same request, if it can.
    pub const fn seed(mut self, seed: i64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets how much the model reasons.
    pub const fn reasoning(mut self, reasoning: ReasoningEffort) -> Self {
        self.reasoning = Some(reasoning);
        self
    }

    /// Sets which tools the model may or has to call.
    pub fn tool_choice(mut self, choice: ToolChoice) -> Self {
        self.tool_choice = Some(choice);
        self
    }

    /// Sets whether one turn may hold several calls.
    pub const fn parallel_calls(mut self, wanted: bool) -> Self {
        self.parallel_calls = Some(wanted);
        self
    }

    /// Sets the service tier, by the provider's name.
    pub fn service_tier(mut self, tier: impl Into<String>) -> Self {
        self.service_tier = Some(tier.into());
        self
    }

    /// Adds a key and a value that the provider keeps with the request. A second value for one key replaces the first.
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// Sets the opaque id of the user who makes the request.
    pub fn user(mut self, id: impl Into<String>) -> Self {
        self.user = Some(id.into());
        self
    }

    /// Sets the key that requests with the same beginning share.
    pub fn cache_key(mut self, key: impl Into<String>) -> Self {
        self.cache_key = Some(key.into());
        self
    }

    /// Sets whether the request marks its stable beginning for the cache.
    pub const fn cache(mut self, wanted: bool) -> Self {
        self.cache = Some(wanted);
        self
    }

    /// Adds a field of the body that no setting names. A second value for one name replaces the first.
    ///
    /// Encoding the request fails if a field carries the conversation, its tools or the kind of stream, or sets a value
    /// that has a setting here, also inside an object (`generationConfig`, `options`). It also fails for more than 64
    /// KiB of fields.
    pub fn extra(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.extra.insert(name.into(), value.into());
        self
    }

    /// Returns these settings, with absent ones taken from `other`; metadata and extra fields are merged.
    pub fn or(mut self, other: &Self) -> Self {
        macro_rules! fall_back {
            ($($field:ident),+) => { $(if self.$field.is_none() { self.$field.clone_from(&other.$field); })+ };
        }
        fall_back!(
            temperature,
            top_p,
            max_output_tokens,
            seed,
            reasoning,
            tool_choice,
            parallel_calls,
            service_tier,
            user,
            cache_key,
            cache
        );
        self.legacy_max_tokens |= other.legacy_max_tokens;
        if self.stop.is_empty() {
            self.stop.clone_from(&other.stop);
        }
        for (key, value) in &other.metadata {
            self.metadata.entry(key.clone()).or_insert_with(|| value.clone());
        }
        for (name, value) in &other.extra {
            if !self.extra.contains_key(name) {
                self.extra.insert(name.clone(), value.clone());
            }
        }
        self
    }
}
