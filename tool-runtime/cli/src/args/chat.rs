//! The grammar of `chat`: where the model is, and what is said to it.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tool_runtime::wire::Format;

use super::settings::Asked;
use super::values;

#[derive(Debug, Args)]
pub(crate) struct Chat {
    /// A recorded HTTP response (headers and chunking included) or a bare body, in place of an endpoint; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "model_url")]
    pub(crate) transcript: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) endpoint: Endpoint,
    /// Continue the last conversation: the newest of the principal in --store, or the last of the data folder. If the
    /// first word of the prompt is the id of a conversation, that one
    #[arg(long = "continue", short = 'c', conflicts_with_all = ["transcript", "conversation"])]
    pub(crate) last: bool,
    /// Continue this conversation: of the data folder, or a run of --store
    #[arg(long, value_name = "ID", conflicts_with = "transcript")]
    pub(crate) conversation: Option<String>,
    /// How long to wait for a conversation that a worker has, for example 30s; without it, it is refused
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with = "transcript")]
    pub(crate) wait: Option<Duration>,
    /// Answer a waiting client call before anything else: its id and the output as JSON, `-` or `@FILE`
    #[arg(long, num_args = 2, value_names = ["CALL", "JSON"], action = clap::ArgAction::Append)]
    pub(crate) answer: Vec<String>,
    /// Ask for answers that fit the JSON Schema of an object in this file; stdout gets the JSON alone, `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "transcript")]
    pub(crate) answer_schema: Option<PathBuf>,
    /// An image, audio, video, a PDF or a text that goes to the model with the first prompt; may be repeated, at most 20
    /// MiB together, `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "transcript")]
    pub(crate) file: Vec<PathBuf>,
    /// What the user writes; several are turns of one conversation, `-` is standard input, none opens a prompt
    pub(crate) prompt: Vec<String>,
}

/// A model's endpoint. What is not given comes from the environment and the configuration file.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct Endpoint {
    /// The base URL of an endpoint; without a path it gets the provider's usual one
    #[arg(long, value_name = "URL")]
    pub(crate) model_url: Option<String>,
    /// The model to ask
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// The provider's format; openai-chat by default
    #[arg(long, value_parser = values::formats())]
    pub(crate) format: Option<Format>,
    /// The environment variable that holds the endpoint's key; a configured one goes to the configured URL only
    #[arg(long, value_name = "VARIABLE")]
    pub(crate) key_env: Option<String>,
    /// One more header of each request; a key belongs into `--key-env`, because others can see the command line
    #[arg(long, value_name = "NAME: VALUE", value_parser = values::header)]
    pub(crate) header: Vec<(String, String)>,
    /// The proxy for the requests; none is taken from the environment
    #[arg(long, value_name = "URL")]
    pub(crate) proxy: Option<String>,
    /// A PEM file with certificate authorities to trust too
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Send closed copies of the schemas where the format has a strict mode
    #[arg(long)]
    pub(crate) strict: bool,
    /// Send more tools and longer descriptions than the provider's own API takes, to a compatible server that takes them
    #[arg(long)]
    pub(crate) no_provider_limits: bool,
    /// Ask for the answer in one piece
    #[arg(long)]
    pub(crate) no_stream: bool,
    /// How long one answer may take, retries included, for example 90s or 10m
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "10m")]
    pub(crate) timeout: Duration,
    /// How long the first byte of an answer may take; 60s when it is streamed
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) first_byte_timeout: Option<Duration>,
    /// How long the endpoint may be silent within an answer
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "60s")]
    pub(crate) idle_timeout: Duration,
    /// How often a failed request is repeated
    #[arg(long, value_name = "TIMES", default_value_t = 2)]
    pub(crate) retries: u32,
    /// Instructions to the model, before the conversation
    #[arg(long, value_name = "TEXT")]
    pub(crate) instructions: Option<String>,
    /// Offer only the tools that fit each prompt, at most this many for one; those offered before stay
    #[arg(long, value_name = "TOOLS", value_parser = super::pick::most)]
    pub(crate) pick: Option<usize>,
    /// How many reading calls of one turn may run at the same time
    #[arg(long, value_name = "CALLS", default_value_t = 4)]
    pub(crate) parallel: usize,
    #[command(flatten)]
    pub(crate) asked: Asked,
}

/// A duration: a whole number with `ms`, `s` or `m`.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: u64 = digits.parse().map_err(|_| "write a whole number and a unit, for example `30s`".to_owned())?;
    let hours = |times: u64| {
        let seconds = number.checked_mul(times * 3600);
        seconds.map(Duration::from_secs).ok_or_else(|| "this is too long".to_owned())
    };
    match &text[digits.len()..] {
        "ms" => Ok(Duration::from_millis(number)),
        "s" => Ok(Duration::from_secs(number)),
        "m" => number.checked_mul(60).map(Duration::from_secs).ok_or_else(|| "this is too long".to_owned()),
        "h" => hours(1),
        "d" => hours(24),
        _ => Err("the unit is `ms`, `s`, `m`, `h` or `d`, for example `30s`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::time;
    use std::time::Duration;

    #[test]
    fn durations_have_units() {
        assert_eq!(time("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(time("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(time("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(time("5h"), Ok(Duration::from_hours(5)));
        assert_eq!(time("7d"), Ok(Duration::from_hours(7 * 24)));
        for wrong in ["", "s", "5", "5w", "-1s", "1.5s", "99999999999999999999s"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
