//! Rules about the keys of `#[tool(..)]`.

use std::collections::HashSet;
use std::fmt::Display;

use proc_macro2::Ident;
use syn::LitStr;

use crate::attr::{Executor, Key};
use crate::errors::Errors;
use crate::model::{Form, Tool};
use crate::names::{nearest, one_of, plain, snake};

/// The longest name that every provider accepts, in bytes.
const MAX_NAME: usize = 64;

pub(super) fn missing_name(tool: &Tool, errors: &mut Errors) {
    missing(
        tool,
        tool.attr.name.is_absent(),
        format_args!("missing `name`; write `name = \"core__{}\"`", snake(&tool.ident)),
        errors,
    );
}

pub(super) fn missing_effect(tool: &Tool, errors: &mut Errors) {
    let effects = "`effect = read_only`, `state_change` or `external_side_effect`";
    missing(tool, tool.attr.effect.is_absent(), format_args!("missing `effect`; write {effects}"), errors);
}

pub(super) fn missing_redact(tool: &Tool, errors: &mut Errors) {
    let message = "missing `redact`; list the paths of the output that may be shown, for example `redact = [\"id\"]`, or `redact = []` to show nothing";
    missing(tool, tool.attr.redact.is_absent(), message, errors);
}

fn missing(tool: &Tool, is_absent: bool, message: impl Display, errors: &mut Errors) {
    if is_absent {
        errors.missing(&tool.attr.tokens, message);
    }
}

pub(super) fn name_without_namespace(tool: &Tool, errors: &mut Errors) {
    with_name(tool, |name, text| {
        if !text.contains("__") {
            let legal = of_two_parts(text).unwrap_or_else(|| match legal(text) {
                part if part.is_empty() => format!("core__{}", snake(&tool.ident)),
                part => format!("core__{part}"),
            });
            errors.at(name, format_args!("tool name `{text}` has no namespace; write `{legal}`"));
        }
    });
}

/// Converts a name in the notation of other libraries: `stock.count` to `stock__count`, `stock.a.b` to `stock__a_b`.
fn of_two_parts(text: &str) -> Option<String> {
    let (namespace, part) = text.split_once(['.', '/', ':'])?;
    let part = legal(part);
    let is_legal = namespace.starts_with(|first: char| first.is_ascii_alphabetic())
        && namespace.chars().all(is_name_character)
        && !matches!(namespace, "mcp" | "graph");
    (is_legal && !part.is_empty()).then(|| format!("{namespace}__{part}"))
}

/// Replaces each run of underscores and of characters that a name cannot have by one underscore, and removes such runs
/// at both ends.
fn legal(text: &str) -> String {
    let words = text.split(|letter| letter == '_' || !is_name_character(letter)).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("_")
}

pub(super) fn name_character(tool: &Tool, errors: &mut Errors) {
    with_name(tool, |name, text| {
        // A name without a namespace has been reported, together with a legal name.
        let is_reported = !text.contains("__");
        if let Some(bad) = text.chars().find(|&letter| !is_name_character(letter)).filter(|_| !is_reported) {
            errors.at(
                name,
                format_args!("tool name `{text}` holds {bad:?}; write ASCII letters, digits, `_` and `-` only"),
            );
        }
    });
}

pub(super) fn name_too_long(tool: &Tool, errors: &mut Errors) {
    with_name(tool, |name, text| {
        if text.len() > MAX_NAME {
            errors.at(
                name,
                format_args!(
                    "tool name is {} bytes long; write at most {MAX_NAME}, which every provider takes",
                    text.len()
                ),
            );
        }
    });
}

pub(super) fn name_reserved(tool: &Tool, errors: &mut Errors) {
    with_name(tool, |name, text| {
        if text.starts_with("graph__") {
            errors.at(name, "the namespace `graph` is reserved for graphs; choose another one");
        }
        if text.starts_with("mcp__") {
            errors
                .at(name, "the namespace `mcp` is reserved for tools discovered from MCP servers; choose another one");
        }
        if text == "tools__search" {
            errors.at(
                name,
                "the name is reserved for the tool that `DynamicTool::search_tools` makes; choose another one",
            );
        }
    });
}

pub(super) fn name_namespace_letter(tool: &Tool, errors: &mut Errors) {
    with_name(tool, |name, text| {
        if text.contains("__") && !text.starts_with(|first: char| first.is_ascii_alphabetic()) {
            errors.at(name, format_args!("the namespace of `{text}` does not start with a letter; write `core__..`"));
        }
    });
}

pub(super) fn name_tool_part(tool: &Tool, errors: &mut Errors) {
    with_name(tool, |name, text| match text.split_once("__") {
        Some((namespace, "")) => {
            errors.at(
                name,
                format_args!(
                    "the tool part after `{namespace}__` is empty; write `{namespace}__{}`",
                    snake(&tool.ident)
                ),
            );
        }
        // No correction is suggested for a name in a reserved namespace.
        Some((namespace, part)) if part.contains("__") && namespace != "mcp" && namespace != "graph" => {
            let part = legal(part);
            errors.at(name, format_args!("tool name `{text}` holds a second `__`; write `{namespace}__{part}`"));
        }
        _ => {}
    });
}

fn with_name(tool: &Tool, rule: impl FnOnce(&LitStr, &str)) {
    if let Some(name) = tool.attr.name.value() {
        rule(name, &name.value());
    }
}

pub(super) fn is_name_character(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-')
}

pub(super) fn empty_title(tool: &Tool, errors: &mut Errors) {
    if let Some(title) = tool.attr.title.value().filter(|title| title.value().trim().is_empty()) {
        errors.at(title, "the title is empty; write one, or leave the key out");
    }
}

pub(super) fn redact_empty_segment(tool: &Tool, errors: &mut Errors) {
    for path in paths(tool) {
        let text = path.value();
        if text.split('.').any(|segment| segment.trim().is_empty()) && !text.contains('[') {
            errors.at(
                path,
                format_args!("the path `{text}` has an empty segment; write names with single dots between them, for example `owner.name`"),
            );
        }
    }
}

pub(super) fn redact_notation(tool: &Tool, errors: &mut Errors) {
    for path in paths(tool) {
        let text = path.value();
        let is_pointer = text.starts_with('/');
        let is_joined = ["::", "->"].iter().any(|sign| text.contains(sign));
        if !is_pointer && !is_joined && !text.starts_with("$.") && !text.contains('[') {
            continue;
        }
        let text = text.strip_prefix('$').unwrap_or(&text);
        let dotted = text.replace("::", ".").replace("->", ".");
        let dotted = if is_pointer { dotted.replace('/', ".") } else { dotted };
        // A path passes through arrays, so indices are dropped from the suggestion. `owner[name]` names a field.
        let names = dotted.replace("[*]", "").replace('[', ".").replace([']', '"', '\''], "");
        let is_name = |name: &&str| !name.is_empty() && !name.bytes().all(|byte| byte.is_ascii_digit());
        let names: Vec<_> = names.split('.').filter(is_name).collect();
        let suggestion = if names.is_empty() { "$".to_owned() } else { names.join(".") };
        errors.at(
            path,
            format_args!(
                "a path is field names joined by dots, and passes through arrays without an index; write `{suggestion}`"
            ),
        );
    }
}

pub(super) fn redact_duplicate_path(tool: &Tool, errors: &mut Errors) {
    let shown = listed(&tool.attr.redact).chain(listed(&tool.attr.model));
    let mut seen = HashSet::new();
    for path in shown {
        if !seen.insert(path.value()) {
            errors.at(
                path,
                format_args!("the path `{}` is listed twice; `model` adds to what `redact` shows", path.value()),
            );
        }
    }
    seen.clear();
    for path in listed(&tool.attr.prepare) {
        if !seen.insert(path.value()) {
            errors.at(path, format_args!("the path `{}` is listed twice; keep one", path.value()));
        }
    }
}

fn paths(tool: &Tool) -> impl Iterator<Item = &LitStr> {
    listed(&tool.attr.redact).chain(listed(&tool.attr.model)).chain(listed(&tool.attr.prepare))
}

fn listed<T>(key: &Key<Vec<T>>) -> impl Iterator<Item = &T> {
    key.value().into_iter().flatten()
}

pub(super) fn tag_text(tool: &Tool, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for tag in listed(&tool.attr.tags) {
        let text = tag.value();
        if text.trim().is_empty() || text.trim() != text {
            errors.at(tag, format_args!("the tag {text:?} is empty or has white space around it; write a word"));
        } else if !seen.insert(text) {
            errors.at(tag, format_args!("the tag `{}` is listed twice; keep one", tag.value()));
        }
    }
}

pub(super) fn also_text(tool: &Tool, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for words in listed(&tool.attr.also) {
        let text = words.value();
        if !text.contains(char::is_alphanumeric) {
            errors.at(words, format_args!("{text:?} in `also` has no letter or digit; write a word that users write"));
        } else if text.trim() != text {
            errors.at(words, format_args!("{text:?} in `also` has white space around it; write `{}`", text.trim()));
        } else if !seen.insert(text.to_lowercase()) {
            errors.at(words, format_args!("`{text}` is listed twice in `also`; keep one"));
        }
    }
}

/// Returns the key `execution` if its value is `client`.
fn client(tool: &Tool) -> Option<&Ident> {
    tool.attr.execution.given().filter(|(_, place)| **place == Executor::Client).map(|(key, _)| key)
}

pub(super) fn client_without_result(tool: &Tool, errors: &mut Errors) {
    if let Some(client) = client(tool)
        && tool.attr.client_result.is_absent()
    {
        errors.at(client, "a client tool needs the type that the client sends back; write `client_result = TYPE`");
    }
}

pub(super) fn client_without_prepare(tool: &Tool, errors: &mut Errors) {
    if let Some(client) = client(tool)
        && tool.attr.prepare.is_absent()
    {
        errors.at(client, "a client tool needs the paths that go to the client; write `prepare = [..]`");
    }
}

pub(super) fn client_keys_on_server(tool: &Tool, errors: &mut Errors) {
    // An invalid value of `execution` is reported already, and may be a misspelt `client`.
    if !matches!(tool.attr.execution, Key::Absent | Key::Given(_, Executor::Server)) {
        return;
    }
    for key in tool.attr.client_result.key().into_iter().chain(tool.attr.prepare.key()) {
        errors.at(
            key,
            format_args!("`{key}` is for tools that a client executes; write `execution = client`, or remove it"),
        );
    }
}

pub(super) fn no_schema_without_mode(tool: &Tool, errors: &mut Errors) {
    if let Some(key) = tool.attr.allow_no_schema.key()
        && tool.attr.no_schema_mode.is_absent()
    {
        errors.at(key, "`allow_no_schema` runs unvalidated calls; write the condition: `no_schema_mode = reject_effects` or `approve_each`");
    }
}

pub(super) fn no_schema_mode_alone(tool: &Tool, errors: &mut Errors) {
    if let Some(key) = tool.attr.no_schema_mode.key()
        && tool.attr.allow_no_schema.is_absent()
    {
        errors.at(key, "this tool has a schema; write `allow_no_schema` too, or remove `no_schema_mode`");
    }
}

pub(super) fn require_any_empty(tool: &Tool, errors: &mut Errors) {
    if let Some((key, listed)) = tool.attr.require_any.given()
        && listed.is_empty()
    {
        errors.at(key, "`require_any` is empty; name the optional arguments, at least one of which is required");
    }
}

pub(super) fn require_any_unknown(tool: &Tool, errors: &mut Errors) {
    for name in listed(&tool.attr.require_any) {
        known_argument(tool, name, errors);
    }
}

pub(super) fn validate_unknown(tool: &Tool, errors: &mut Errors) {
    for argument in tool.attr.validate.value().into_iter().flat_map(|hook| hook.arguments.iter().flatten()) {
        known_argument(tool, &argument.name, errors);
    }
}

fn known_argument(tool: &Tool, name: &Ident, errors: &mut Errors) {
    if tool.argument(name).is_some() {
        return;
    }
    let known: Vec<String> = tool.arguments.iter().map(|argument| plain(&argument.ident)).collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let text = plain(name);
    match nearest(&text, &known) {
        Some(meant) => errors.at(name, format_args!("there is no argument `{text}`; did you mean `{meant}`?")),
        None if known.is_empty() => errors.at(name, "this tool has no arguments"),
        None => errors.at(name, format_args!("there is no argument `{text}`; write {}", one_of(&known))),
    }
}

pub(super) fn require_any_twice(tool: &Tool, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for name in listed(&tool.attr.require_any) {
        if !seen.insert(plain(name)) {
            errors.at(name, format_args!("`{}` is listed twice; keep one", plain(name)));
        }
    }
}

pub(super) fn blocking_async(tool: &Tool, errors: &mut Errors) {
    if let (Some(key), Form::Function(function)) = (tool.attr.blocking.key(), &tool.form)
        && function.sig.asyncness.is_some()
    {
        errors.at(key, "`blocking` moves a plain function to a separate thread; remove it, or remove `async`");
    }
}

pub(super) fn blocking_struct(tool: &Tool, errors: &mut Errors) {
    if let (Some(key), Form::Struct(_)) = (tool.attr.blocking.key(), &tool.form) {
        errors
            .at(key, "`blocking` is for functions; in the `run` of a struct tool, await `tokio::task::spawn_blocking`");
    }
}
