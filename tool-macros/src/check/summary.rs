//! Rules about `summary`: the sentences that describe a call to the person who decides on it.

use std::collections::BTreeSet;

use syn::LitStr;

use crate::errors::Errors;
use crate::model::{Argument, Tool};
use crate::names::{nearest, one_of, plain};
use crate::sentence::{self, Part};

/// The maximum length of a sentence, in characters.
const MAX_SENTENCE_CHARS: usize = 200;

pub(super) fn summary_empty(tool: &Tool, errors: &mut Errors) {
    if let Some((key, [])) = tool.attr.summary.given().map(|(key, listed)| (key, listed.as_slice())) {
        errors.at(key, "`summary` is empty; write a sentence, or leave the key out");
    }
    for text in sentences(tool).filter(|text| text.value().trim().is_empty()) {
        errors.at(text, "the sentence is empty; write one, or leave the key out");
    }
}

pub(super) fn summary_too_long(tool: &Tool, errors: &mut Errors) {
    for text in sentences(tool) {
        let length = text.value().chars().count();
        if length > MAX_SENTENCE_CHARS {
            errors.at(text, format_args!("the sentence has {length} characters; write at most {MAX_SENTENCE_CHARS}"));
        }
    }
}

pub(super) fn summary_not_plain(tool: &Tool, errors: &mut Errors) {
    for text in sentences(tool) {
        if let Some(bad) = text.value().chars().find(|&one| is_hidden(one)) {
            errors.at(text, format_args!("the sentence holds {bad:?}; write it on one line, in visible characters"));
        }
    }
}

/// Whether a character is a control character (such as a line end), is invisible, or changes the direction of text.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

pub(super) fn summary_braces(tool: &Tool, errors: &mut Errors) {
    for text in sentences(tool) {
        for part in sentence::parts(&text.value()) {
            if let Part::Broken(why, place) = part {
                errors.span(sentence::span(text, &place), why);
            }
        }
    }
}

pub(super) fn summary_unknown(tool: &Tool, errors: &mut Errors) {
    let known: Vec<String> = tool.arguments.iter().map(|argument| plain(&argument.ident)).collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    for text in sentences(tool) {
        for (name, place) in sentence::names(&text.value()) {
            let (name, _) = sentence::split(&name);
            if argument(tool, name).is_some() {
                continue;
            }
            let at = sentence::span(text, &place);
            // A sentence uses the names in the code. The author may have written the wire name, which models see.
            let by_wire = tool.arguments.iter().find(|argument| argument.wire == name);
            match by_wire.map(|argument| plain(&argument.ident)).as_deref().or_else(|| nearest(name, &known)) {
                Some(meant) => errors.span(at, format_args!("there is no argument `{name}`; did you mean `{meant}`?")),
                None if known.is_empty() => errors.span(at, "this tool has no arguments"),
                None => errors.span(at, format_args!("there is no argument `{name}`; write {}", one_of(&known))),
            }
        }
    }
}

pub(super) fn summary_sensitive(tool: &Tool, errors: &mut Errors) {
    each(tool, |text, place, argument| {
        if argument.attr.sensitive.value().is_some() {
            let name = plain(&argument.ident);
            let message = format!("`{name}` is sensitive, so the sentence would show `[sensitive]`; leave it out");
            errors.span(sentence::span(text, place), message);
        }
    });
}

pub(super) fn summary_wire_name(tool: &Tool, errors: &mut Errors) {
    each(tool, |text, place, argument| {
        if argument.wire.contains(['{', '}', '.']) {
            let (name, wire) = (plain(&argument.ident), &argument.wire);
            let message = format!("a sentence cannot name `{name}`, which is called `{wire}` by models; rename it");
            errors.span(sentence::span(text, place), message);
        }
    });
}

pub(super) fn summary_unreachable(tool: &Tool, errors: &mut Errors) {
    let mut before: Vec<BTreeSet<String>> = Vec::new();
    for text in sentences(tool) {
        let names: BTreeSet<_> = sentence::needed(&text.value()).collect();
        if before.iter().any(|one| one.is_subset(&names)) {
            errors.at(
                text,
                "an earlier sentence needs no argument that this one lacks, so it is always chosen; write this one first",
            );
        }
        before.push(names);
    }
}

fn sentences(tool: &Tool) -> impl Iterator<Item = &LitStr> {
    tool.attr.summary.value().into_iter().flatten()
}

fn argument<'t>(tool: &'t Tool, name: &str) -> Option<&'t Argument> {
    tool.arguments.iter().find(|argument| plain(&argument.ident) == name)
}

fn each(tool: &Tool, mut rule: impl FnMut(&LitStr, &std::ops::Range<usize>, &Argument)) {
    for text in sentences(tool) {
        for (name, place) in sentence::names(&text.value()) {
            if let Some(argument) = argument(tool, sentence::split(&name).0) {
                rule(text, &place, argument);
            }
        }
    }
}
