//! Encodes the settings. Values that no provider accepts are refused; settings that a format lacks are reported.

use serde_json::{Map, Value};

use crate::wire::encode::extra;
use crate::wire::encode::report::EncodeErrorKind;
use crate::wire::encode::{Dialect, EncodeError, Encoded, Loss};
use crate::wire::{RequestSettings, ToolChoice};

/// The names that a format uses for its settings, and the values that its provider accepts.
pub(crate) struct Vocabulary {
    /// The name of the object that holds the settings for sampling and limits; empty if the body itself holds them.
    pub(crate) under: &'static str,
    /// The highest temperature.
    pub(crate) temperature: f64,
    /// The name of `top_p`.
    pub(crate) top_p: &'static str,
    /// The name of the token limit.
    pub(crate) limit: &'static str,
    /// The older name of the token limit.
    pub(crate) legacy_limit: Option<&'static str>,
    /// The name of the stop sequences, and their maximum number.
    pub(crate) stop: Option<(&'static str, usize)>,
    /// The largest seed; `None` if the format has no seed.
    pub(crate) seed: Option<i64>,
    /// The name of the service tier, and its values. If the list is empty, every value is sent.
    pub(crate) tier: Option<(&'static str, &'static [&'static str])>,
    /// The name of the metadata field.
    pub(crate) metadata: Option<&'static str>,
    /// The name of the cache key.
    pub(crate) cache_key: Option<&'static str>,
    /// The paths of the other settings and of typed answers, with a dot between the steps.
    pub(crate) named: &'static [&'static str],
}

/// The settings that were written, and the losses.
#[derive(Default)]
pub(crate) struct Fields {
    pub(crate) body: Map<String, Value>,
    losses: Vec<Loss>,
}

impl Fields {
    /// Writes a value at a path, whose steps are separated by dots.
    pub(crate) fn set(&mut self, path: &str, value: impl Into<Value>) {
        let mut at = &mut self.body;
        let mut steps = path.split('.').peekable();
        while let Some(step) = steps.next() {
            if steps.peek().is_none() {
                at.insert(step.to_owned(), value.into());
                return;
            }
            let next = at.entry(step).or_insert_with(|| Value::Object(Map::new()));
            let Value::Object(next) = next else { return };
            at = next;
        }
    }

    /// Reports a setting that was left out or replaced by another value.
    pub(crate) fn lose(&mut self, setting: &str, what: &str) {
        self.losses.push(Loss { tool: None, path: setting.to_owned(), what: what.to_owned() });
    }
}

impl Vocabulary {
    /// The path of a setting in the object for sampling and limits.
    pub(crate) fn path(&self, name: &str) -> String {
        if self.under.is_empty() { name.to_owned() } else { format!("{}.{name}", self.under) }
    }

    /// Every path that this format writes for a setting.
    pub(crate) fn named(&self) -> impl Iterator<Item = String> {
        let sampling = ["temperature", self.top_p, self.limit].into_iter();
        let sampling = sampling.chain(self.legacy_limit).chain(self.stop.map(|(name, _)| name));
        let sampling = sampling.chain(self.seed.map(|_| "seed"));
        let others = [self.tier.map(|(name, _)| name), self.metadata, self.cache_key].into_iter().flatten();
        let others = others.chain(self.named.iter().copied()).map(str::to_owned);
        sampling.map(|name| self.path(name)).chain(others)
    }
}

/// The parts of a request body that carry the settings. [`tool_fields`](super::tools::tool_fields) writes the tool
/// choice.
pub(crate) fn encode_settings(
    dialect: &dyn Dialect,
    settings: &RequestSettings,
    model: Option<&str>,
) -> Result<Encoded, EncodeError> {
    check(settings)?;
    let words = dialect.features().vocabulary;
    let mut out = Fields::default();
    sampling(words, settings, &mut out);
    (dialect.features().settings)(settings, model, &mut out);
    if let Some(tier) = &settings.service_tier {
        match words.tier {
            None => out.lose("service_tier", "the format has no service tiers"),
            Some((_, known)) if !known.is_empty() && !known.contains(&tier.as_str()) => {
                out.lose("service_tier", "the provider has no such service tier");
            }
            Some((name, _)) => out.set(name, tier.as_str()),
        }
    }
    match (&settings.cache_key, words.cache_key) {
        (None, _) => {}
        (Some(_), None) => out.lose("cache_key", "the format has no cache key"),
        (Some(key), Some(name)) => out.set(name, key.as_str()),
    }
    extra::merge(words, &settings.extra, &mut out.body)?;
    Ok(Encoded { body: out.body, losses: out.losses, ..Encoded::default() })
}

fn sampling(words: &Vocabulary, settings: &RequestSettings, out: &mut Fields) {
    let path = |name: &str| words.path(name);
    if let Some(temperature) = settings.temperature {
        if temperature > words.temperature {
            out.lose("temperature", "it is higher than the provider takes");
        } else {
            out.set(&path("temperature"), temperature);
        }
    }
    if let Some(share) = settings.top_p {
        out.set(&path(words.top_p), share);
    }
    if let Some(tokens) = settings.max_output_tokens {
        let legacy = settings.legacy_max_tokens && words.legacy_limit.is_some();
        out.set(&path(words.legacy_limit.filter(|_| legacy).unwrap_or(words.limit)), tokens);
    }
    if settings.legacy_max_tokens && words.legacy_limit.is_none() {
        out.lose("legacy_max_tokens", "the format has one name for the limit");
    }
    match words.stop {
        _ if settings.stop.is_empty() => {}
        None => out.lose("stop", "the format has no stop sequences"),
        Some((name, most)) => {
            if settings.stop.len() > most {
                out.lose("stop", "there are more than the provider takes; the first ones are sent");
            }
            out.set(&path(name), settings.stop.iter().take(most).cloned().collect::<Vec<_>>());
        }
    }
    match (settings.seed, words.seed) {
        (None, _) => {}
        (Some(_), None) => out.lose("seed", "the format has no seed"),
        (Some(seed), Some(most)) if seed > most || seed < -most => {
            out.lose("seed", "it is larger than the provider takes");
        }
        (Some(seed), Some(_)) => out.set(&path("seed"), seed),
    }
}

/// Refuses values that no provider accepts.
fn check(settings: &RequestSettings) -> Result<(), EncodeError> {
    let wrong = |setting: &str| Err(EncodeError::new(EncodeErrorKind::InvalidSetting, None, Some(setting.to_owned())));
    // The condition is negated so that it also refuses NaN.
    if settings.temperature.is_some_and(|temperature| !(0.0..=f64::from(u16::MAX)).contains(&temperature)) {
        return wrong("temperature");
    }
    if settings.top_p.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
        return wrong("top_p");
    }
    if settings.max_output_tokens == Some(0) {
        return wrong("max_output_tokens");
    }
    if settings.stop.iter().any(String::is_empty) {
        return wrong("stop");
    }
    if let Some(ToolChoice::Allowed { names, .. }) = &settings.tool_choice
        && names.is_empty()
    {
        return wrong("tool_choice");
    }
    Ok(())
}
