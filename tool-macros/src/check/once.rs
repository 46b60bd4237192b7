//! Rules about `once`, the key of an effect.

use std::ops::Range;

use syn::LitStr;

use crate::attr::{Executor, Reach};
use crate::errors::Errors;
use crate::model::{Argument, Tool};
use crate::names::{nearest, one_of, plain};
use crate::sentence::{self, Part};

/// The longest key, in characters, before arguments replace their names.
const MAX_KEY_CHARS: usize = 200;

pub(super) fn once_text(tool: &Tool, errors: &mut Errors) {
    let Some(text) = tool.attr.once.value() else { return };
    let key = text.value();
    if key.trim().is_empty() || key.chars().count() > MAX_KEY_CHARS || key.chars().any(char::is_control) {
        errors.at(
            text,
            format_args!(
                "a key has 1 to {MAX_KEY_CHARS} characters on one line; write one, for example `\"refund:{{payment_id}}\"`"
            ),
        );
    }
}

pub(super) fn once_braces(tool: &Tool, errors: &mut Errors) {
    let Some(text) = tool.attr.once.value() else { return };
    let mut at = 0;
    for part in sentence::parts(&text.value()) {
        match part {
            Part::Broken(why, place) => errors.span(sentence::span(text, &place), why),
            Part::Bracket(bracket) => {
                let value = text.value();
                let found = value.get(at..).and_then(|rest| rest.find(bracket)).map_or(0, |place| at + place);
                at = found + 1;
                let why = "a key has no optional parts, because calls with and without them would have different keys; \
                           remove the bracket, or double it for the character";
                errors.span(sentence::span(text, &(found..found + 1)), why);
            }
            Part::Text(_) | Part::Name(..) => {}
        }
    }
}

/// Reports `once = "id"`. Without braces the key is a constant, and a call with another `id` gets the first result.
pub(super) fn once_constant(tool: &Tool, errors: &mut Errors) {
    let Some(text) = tool.attr.once.value() else { return };
    let key = text.value();
    if sentence::parts(&key).iter().any(|part| !matches!(part, Part::Text(_))) {
        return;
    }
    let mut words = [key.trim(), key.rsplit(':').next().unwrap_or_default().trim()].into_iter();
    let named = words.find_map(|word| {
        tool.arguments.iter().find(|one| plain(&one.ident) == word || one.wire == word).map(|one| plain(&one.ident))
    });
    if let Some(name) = named {
        errors.at(
            text,
            format_args!(
                "every call has this key, so a call with another `{name}` would get the first result; write `{{{name}}}` \
                 for its value"
            ),
        );
    }
}

pub(super) fn once_unknown(tool: &Tool, errors: &mut Errors) {
    let known: Vec<String> = tool.arguments.iter().map(|argument| plain(&argument.ident)).collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    names(tool, |text, place, name| {
        if argument(tool, name).is_some() {
            return;
        }
        let at = sentence::span(text, place);
        let by_wire = tool.arguments.iter().find(|argument| argument.wire == name);
        match by_wire.map(|argument| plain(&argument.ident)).as_deref().or_else(|| nearest(name, &known)) {
            Some(meant) => errors.span(at, format_args!("there is no argument `{name}`; did you mean `{meant}`?")),
            None if known.is_empty() => errors.span(at, "this tool has no arguments"),
            None => errors.span(at, format_args!("there is no argument `{name}`; write {}", one_of(&known))),
        }
    });
}

pub(super) fn once_sensitive(tool: &Tool, errors: &mut Errors) {
    names(tool, |text, place, name| {
        if argument(tool, name).is_some_and(|argument| argument.attr.sensitive.value().is_some()) {
            let message = format!("`{name}` is sensitive, and records show the key; name another argument");
            errors.span(sentence::span(text, place), message);
        }
    });
}

pub(super) fn once_wire_name(tool: &Tool, errors: &mut Errors) {
    names(tool, |text, place, name| {
        if let Some(argument) = argument(tool, name)
            && argument.wire.contains(['{', '}', '.'])
        {
            let wire = &argument.wire;
            let message = format!("a key cannot name `{name}`, which is called `{wire}` by models; rename it");
            errors.span(sentence::span(text, place), message);
        }
    });
}

pub(super) fn once_without_effect(tool: &Tool, errors: &mut Errors) {
    let Some((key, _)) = tool.attr.once.given() else { return };
    if tool.attr.effect.value() == Some(&Reach::ReadOnly) {
        errors.at(key, "a `read_only` tool has no effect that a key could name; remove `once`, or correct `effect`");
    }
    if tool.attr.execution.value() == Some(&Executor::Client) {
        errors.at(key, "a client has the effect, and this process cannot tell how often; remove `once`");
    }
}

pub(super) fn once_keys_alone(tool: &Tool, errors: &mut Errors) {
    if tool.attr.once.given().is_some() {
        return;
    }
    let keys = [tool.attr.once_scope.given().map(|(key, _)| key), tool.attr.once_for.given().map(|(key, _)| key)];
    for key in keys.into_iter().flatten() {
        errors.at(
            key,
            format_args!(
                "`{key}` belongs to `once`; add the key of the effect, for example `once = \"refund:{{payment_id}}\"`"
            ),
        );
    }
}

fn argument<'t>(tool: &'t Tool, name: &str) -> Option<&'t Argument> {
    tool.arguments.iter().find(|argument| plain(&argument.ident) == name)
}

/// Calls `rule` for each argument that the key names, with its place in the key.
fn names(tool: &Tool, mut rule: impl FnMut(&LitStr, &Range<usize>, &str)) {
    let Some(text) = tool.attr.once.value() else { return };
    for (name, place) in sentence::names(&text.value()) {
        rule(text, &place, sentence::split(&name).0);
    }
}
