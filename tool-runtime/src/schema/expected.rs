//! Descriptions of the expected value, which come from the schema alone.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, ValidationError};
use serde_json::Value;

use crate::json::canonical;
use crate::text::cut;

/// The maximum number of choices that are listed, and their maximum length in bytes.
const CHOICES: usize = 24;
const CHOICE_BYTES: usize = 600;

/// Describes the value that the keyword requires.
pub(super) fn expected(kind: &ValidationErrorKind) -> String {
    use ValidationErrorKind as Kind;
    match kind {
        Kind::AdditionalItems { limit } => format!("at most {limit} items"),
        Kind::AdditionalProperties { .. } | Kind::UnevaluatedProperties { .. } => "no other properties".to_owned(),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => alternatives(context),
        Kind::OneOfMultipleValid { .. } => "exactly one of the allowed forms".to_owned(),
        Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => {
            "a text that the pattern can be checked against".to_owned()
        }
        Kind::Constant { expected_value } => text(expected_value),
        Kind::Contains => "an array with an item of the required kind".to_owned(),
        Kind::ContentEncoding { content_encoding } => format!("text encoded as {content_encoding}"),
        Kind::ContentMediaType { content_media_type } => format!("text of the type {content_media_type}"),
        Kind::Enum { options } => choices(options),
        Kind::ExclusiveMaximum { limit } => format!("less than {}", text(limit)),
        Kind::ExclusiveMinimum { limit } => format!("more than {}", text(limit)),
        Kind::FalseSchema => "nothing here".to_owned(),
        Kind::Format { format } => format!("text of the format {format}"),
        Kind::FromUtf8 { .. } => "text in UTF-8".to_owned(),
        Kind::MaxItems { limit } => count("at most", *limit, "item"),
        Kind::Maximum { limit } => format!("at most {}", text(limit)),
        Kind::MaxLength { limit } => count("at most", *limit, "character"),
        Kind::MaxProperties { limit } => count("at most", *limit, "property"),
        Kind::MinItems { limit } => count("at least", *limit, "item"),
        Kind::Minimum { limit } => format!("at least {}", text(limit)),
        Kind::MinLength { limit } => count("at least", *limit, "character"),
        Kind::MinProperties { limit } => count("at least", *limit, "property"),
        Kind::MultipleOf { multiple_of } => format!("a multiple of {multiple_of}"),
        Kind::Not { .. } => "a value that the schema does not exclude".to_owned(),
        Kind::Pattern { pattern } => format!("text that matches {pattern}"),
        Kind::PropertyNames { error } => format!("property names that are {}", expected(error.kind())),
        Kind::Required { property } => format!("the property {}", text(property)),
        Kind::Type { kind: TypeKind::Single(one) } => ty(*one).to_owned(),
        Kind::Type { kind: TypeKind::Multiple(types) } => types.iter().map(ty).collect::<Vec<_>>().join(" or "),
        Kind::UnevaluatedItems { .. } => "no other items".to_owned(),
        Kind::UniqueItems => "items that are all different".to_owned(),
        _ => "a value that the schema allows".to_owned(),
    }
}

/// Describes the forms of `anyOf` or `oneOf`, if each form failed for exactly one reason and all reasons are at the
/// same depth of the value. Otherwise the text is general.
fn alternatives(context: &[Vec<ValidationError<'static>>]) -> String {
    let depth = |error: &ValidationError<'_>| error.instance_path().as_str().matches('/').count();
    let least = context.iter().flatten().map(depth).min();
    let forms: Option<Vec<_>> = context
        .iter()
        .map(|errors| match errors.as_slice() {
            [error] if Some(depth(error)) == least => Some(expected(error.kind())),
            _ => None,
        })
        .collect();
    match forms {
        Some(mut forms) if !forms.is_empty() => {
            forms.dedup();
            shorten(forms.join(", or "))
        }
        _ => "one of the allowed forms".to_owned(),
    }
}

fn choices(options: &Value) -> String {
    let options = options.as_array().map_or(&[][..], Vec::as_slice);
    let listed: Vec<_> = options.iter().take(CHOICES).map(text).collect();
    let more = if options.len() > listed.len() { ", .." } else { "" };
    match listed.as_slice() {
        [] => "nothing here".to_owned(),
        [one] => one.clone(),
        many => shorten(format!("one of {}{more}", many.join(", "))),
    }
}

fn shorten(text: String) -> String {
    if text.len() <= CHOICE_BYTES {
        return text;
    }
    format!("{} ..", cut(&text, CHOICE_BYTES))
}

fn text(value: &Value) -> String {
    canonical::to_text(value)
}

fn count(bound: &str, limit: u64, of: &str) -> String {
    match (limit, of.strip_suffix('y')) {
        (1, _) => format!("{bound} 1 {of}"),
        (_, Some(stem)) => format!("{bound} {limit} {stem}ies"),
        _ => format!("{bound} {limit} {of}s"),
    }
}

const fn ty(ty: JsonType) -> &'static str {
    match ty {
        JsonType::Array => "an array",
        JsonType::Boolean => "true or false",
        JsonType::Integer => "an integer",
        JsonType::Null => "null",
        JsonType::Number => "a number",
        JsonType::Object => "an object",
        JsonType::String => "a string",
    }
}
