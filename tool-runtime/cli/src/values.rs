//! Parses values of options: formats, views, callers, durations, headers and attributes.

use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use tool_runtime::call::Caller;
use tool_runtime::catalog::PickOptions;
use tool_runtime::wire::Format;

/// Returns the name of a format on the command line.
pub(crate) fn name(format: Format) -> &'static str {
    const NAMES: [(Format, &str); 5] = [
        (Format::OpenAiChat, "openai-chat"),
        (Format::OpenAiResponses, "openai-responses"),
        (Format::Anthropic, "anthropic"),
        (Format::Ollama, "ollama"),
        (Format::Gemini, "gemini"),
    ];
    NAMES.iter().find(|(named, _)| *named == format).map_or(format.as_str(), |(_, name)| name)
}

/// Returns the format with a name.
pub(crate) fn named(text: &str) -> Option<Format> {
    Format::ALL.iter().copied().find(|format| name(*format) == text)
}

/// The form in which `show --as` prints a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The whole definition, in this project's own form.
    Spec,
    /// The definition in a provider's format.
    Provider(Format),
}

/// Returns the clap parser for a format, with the names `openai-chat`, `openai-responses`, `anthropic`, `ollama` and
/// `gemini`.
#[must_use]
pub fn formats() -> impl TypedValueParser<Value = Format> {
    // The parser accepts only the listed names, so an unknown one never reaches `map`.
    PossibleValuesParser::new(Format::ALL.iter().map(|format| name(*format)))
        .try_map(|text| named(&text).ok_or(UnknownForm))
}

pub(crate) fn forms() -> impl TypedValueParser<Value = Form> {
    let names = std::iter::once("spec").chain(Format::ALL.iter().map(|format| name(*format)));
    PossibleValuesParser::new(names).map(|text| named(&text).map_or(Form::Spec, Form::Provider))
}

#[derive(Debug)]
struct UnknownForm;

impl std::fmt::Display for UnknownForm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("not one of the listed values")
    }
}

impl std::error::Error for UnknownForm {}

/// Parses a field of a request's body, `NAME=JSON`.
pub(crate) fn field(text: &str) -> Result<(String, serde_json::Value), String> {
    let (name, value) = text.split_once('=').ok_or("write `NAME=JSON`, for example `top_k=40`")?;
    let value = serde_json::from_str(value).map_err(|_| "the value is not JSON; quote text twice: `name=\"text\"`")?;
    Ok((name.trim().to_owned(), value))
}

/// Parses an attribute of a principal, `NAME=VALUE`.
pub(crate) fn attribute(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write `NAME=VALUE`, for example `department=sales`")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// Converts labels to the type that the library uses.
pub(crate) fn shared(labels: &[String]) -> Vec<Arc<str>> {
    labels.iter().map(|label| Arc::from(label.as_str())).collect()
}

/// Parses a number that is at least 1.
pub(crate) fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| "write a whole number, at least 1".to_owned())
}

/// Parses a header, `NAME: VALUE`.
pub(crate) fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("write `NAME: VALUE`")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// Parses a caller in the notation of policies: `direct` or `graph:NAME`.
pub(crate) fn caller(text: &str) -> Result<Caller, String> {
    match text.strip_prefix("graph:") {
        Some(name) if !name.is_empty() => {
            Ok(Caller::Graph { run: String::new(), name: name.to_owned(), version: String::new() })
        }
        None if text == "direct" => Ok(Caller::Direct),
        _ => Err("write `direct` or `graph:NAME`".to_owned()),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum View {
    /// The text that goes back to the model
    Model,
    /// The fields that a UI may show
    Ui,
    /// The record
    Audit,
}

/// Parses a duration: a whole number with `ms`, `s`, `m`, `h` or `d`.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
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

/// Parses the maximum number of tools to pick.
pub(crate) fn most(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(most @ 1..=PickOptions::MOST) => Ok(most),
        _ => Err(format!("write a whole number, at least 1 and at most {}", PickOptions::MOST)),
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
