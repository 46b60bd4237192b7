//! The keys of `#[tool(..)]`, each with the tokens at which its errors are reported.
//!
//! The functions that read keys return no `Result`. They report a key that is unknown, malformed or repeated, and
//! continue with the next key.

mod argument;
mod capability;
mod container;
mod key;
mod pieces;

use std::time::Duration;

use proc_macro2::{Ident, TokenStream};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Lit, LitInt, LitStr, Path, Token, Type};

use crate::errors::Errors;
use crate::names::{nearest, one_of};

pub(crate) use argument::{ArgumentAttr, DefaultValue, argument};
pub(crate) use capability::{CapabilityAttr, capability};
pub(crate) use container::{Container, container, is_tool};
pub(crate) use key::Key;
pub(crate) use pieces::{Piece, pieces};

/// The parsed `#[tool(..)]`.
#[derive(Default)]
pub(crate) struct ToolAttr {
    /// The whole attribute, at which missing keys are reported.
    pub(crate) tokens: TokenStream,
    pub(crate) name: Key<LitStr>,
    pub(crate) title: Key<LitStr>,
    pub(crate) summary: Key<Vec<LitStr>>,
    pub(crate) effect: Key<Reach>,
    pub(crate) redact: Key<Vec<LitStr>>,
    pub(crate) model: Key<Vec<LitStr>>,
    pub(crate) prepare: Key<Vec<LitStr>>,
    pub(crate) tags: Key<Vec<LitStr>>,
    pub(crate) also: Key<Vec<LitStr>>,
    pub(crate) timeout: Key<Duration>,
    pub(crate) max_result_bytes: Key<LitInt>,
    pub(crate) execution: Key<Executor>,
    pub(crate) client_result: Key<Type>,
    pub(crate) idempotent: Key<()>,
    pub(crate) once: Key<LitStr>,
    pub(crate) once_scope: Key<Scope>,
    pub(crate) once_for: Key<Duration>,
    pub(crate) blocking: Key<()>,
    pub(crate) require_any: Key<Vec<Ident>>,
    pub(crate) validate: Key<Hook>,
    pub(crate) precondition: Key<Hook>,
    pub(crate) allow_no_schema: Key<()>,
    pub(crate) no_schema_mode: Key<NoSchemaMode>,
    pub(crate) krate: Key<Path>,
}

/// The value of `effect`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    ReadOnly,
    StateChange,
    External,
}

/// The value of `execution`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Executor {
    Server,
    Client,
}

/// The value of `once_scope`.
#[derive(Clone, Copy)]
pub(crate) enum Scope {
    Tenant,
    Principal,
    Run,
}

/// The value of `no_schema_mode`.
#[derive(Clone, Copy)]
pub(crate) enum NoSchemaMode {
    RejectEffects,
    ApproveEach,
}

/// The value of `validate` and `precondition`: `path`, or `path(first, *second)` to pass only these arguments.
pub(crate) struct Hook {
    pub(crate) path: Path,
    pub(crate) arguments: Option<Vec<HookArgument>>,
}

/// An argument of a hook, passed by reference, or by value with `*`.
pub(crate) struct HookArgument {
    pub(crate) star: Option<Token![*]>,
    pub(crate) name: Ident,
}

impl Parse for Hook {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let path = Path::parse_mod_style(input)?;
        if !input.peek(syn::token::Paren) {
            return Ok(Self { path, arguments: None });
        }
        let content;
        syn::parenthesized!(content in input);
        let arguments = Punctuated::<HookArgument, Token![,]>::parse_terminated(&content)?;
        Ok(Self { path, arguments: Some(arguments.into_iter().collect()) })
    }
}

impl Parse for HookArgument {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        Ok(Self { star: input.parse()?, name: input.parse()? })
    }
}

const KEYS: [&str; 24] = [
    "name",
    "effect",
    "redact",
    "title",
    "summary",
    "tags",
    "also",
    "timeout",
    "max_result_bytes",
    "execution",
    "client_result",
    "prepare",
    "idempotent",
    "once",
    "once_scope",
    "once_for",
    "blocking",
    "require_any",
    "validate",
    "precondition",
    "model",
    "allow_no_schema",
    "no_schema_mode",
    "crate",
];

/// Reads `#[tool(..)]`.
pub(crate) fn tool(tokens: TokenStream, errors: &mut Errors) -> ToolAttr {
    let mut attr = ToolAttr { tokens: tokens.clone(), ..ToolAttr::default() };
    let mut meant = Vec::new();
    for piece in &pieces(tokens, &KEYS, errors) {
        match piece.key_text().as_str() {
            "name" => attr.name.read(piece, errors, |piece, errors| {
                piece.value("a string literal, for example `\"core__add\"`", errors)
            }),
            "title" => attr.title.read(piece, errors, |piece, errors| piece.value("a string literal", errors)),
            "summary" => attr.summary.read(piece, errors, sentences),
            "effect" => attr.effect.read(piece, errors, effect),
            "redact" => attr.redact.read(piece, errors, paths),
            "model" => attr.model.read(piece, errors, paths),
            "prepare" => attr.prepare.read(piece, errors, paths),
            "tags" => attr.tags.read(piece, errors, |piece, errors| {
                piece.list("a list of strings, for example `[\"calendar\"]`", errors)
            }),
            "also" => attr.also.read(piece, errors, |piece, errors| {
                piece.list("a list of words that users write, for example `[\"overdue\", \"to-do\"]`", errors)
            }),
            "timeout" => attr.timeout.read(piece, errors, timeout),
            "max_result_bytes" => attr.max_result_bytes.read(piece, errors, bytes),
            "execution" => attr.execution.read(piece, errors, |piece, errors| {
                piece.choice("execution", &[("server", Executor::Server), ("client", Executor::Client)], errors)
            }),
            "client_result" => attr
                .client_result
                .read(piece, errors, |piece, errors| piece.value("the type that the client sends back", errors)),
            "idempotent" => attr.idempotent.flag(piece, errors),
            "once" => attr.once.read(piece, errors, |piece, errors| {
                piece.value(
                    "the key of the effect, with the names of arguments in braces, for example \
                     `\"refund:{payment_id}\"`",
                    errors,
                )
            }),
            "once_scope" => attr.once_scope.read(piece, errors, |piece, errors| {
                let scopes = [("tenant", Scope::Tenant), ("principal", Scope::Principal), ("run", Scope::Run)];
                piece.choice("scope", &scopes, errors)
            }),
            "once_for" => attr.once_for.read(piece, errors, once_for),
            "blocking" => attr.blocking.flag(piece, errors),
            "require_any" => attr.require_any.read(piece, errors, |piece, errors| {
                piece.list("a list of arguments, for example `[title, due_date]`", errors)
            }),
            "validate" => attr.validate.read(piece, errors, |piece, errors| {
                piece.value(
                    "the path of a function, with or without arguments: `check` or `check(first, *second)`",
                    errors,
                )
            }),
            "precondition" => attr.precondition.read(piece, errors, |piece, errors| {
                piece.value(
                    "the path of an `async fn`, with or without parameters: `balance` or `balance(account, accounts)`",
                    errors,
                )
            }),
            "allow_no_schema" => attr.allow_no_schema.flag(piece, errors),
            "no_schema_mode" => attr.no_schema_mode.read(piece, errors, |piece, errors| {
                let modes =
                    [("reject_effects", NoSchemaMode::RejectEffects), ("approve_each", NoSchemaMode::ApproveEach)];
                piece.choice("mode", &modes, errors)
            }),
            "crate" => attr.krate.read(piece, errors, krate),
            _ if effect_without_key(piece, &mut attr.effect, errors) => {}
            other => match habit(other) {
                Some(instead) => errors.at(&piece.key, format_args!("unknown key `{other}`; {instead}")),
                None => meant.extend(unknown_key(piece, "`#[tool]`", &KEYS, errors)),
            },
        }
    }
    for key in meant {
        match key {
            "name" => attr.name.misspelt(),
            "effect" => attr.effect.misspelt(),
            "redact" => attr.redact.misspelt(),
            _ => {}
        }
    }
    attr
}

/// Reads `#[tool]` on an `impl` block. Its only key is `crate`, the path of the runtime.
pub(crate) fn methods(tokens: TokenStream, errors: &mut Errors) -> Key<Path> {
    let mut path = Key::default();
    for piece in &pieces(tokens, &KEYS, errors) {
        match piece.key_text().as_str() {
            "crate" => path.read(piece, errors, krate),
            key => {
                errors.at(&piece.key, format_args!("`{key}` belongs on the struct; an `impl` takes `#[tool]` alone"));
            }
        }
    }
    path
}

/// Returns the advice for a key of another library.
fn habit(key: &str) -> Option<&'static str> {
    Some(match key {
        "description" | "desc" | "doc" => "the doc comment of the item is the description",
        "readonly" | "read_only_hint" => "write `effect = read_only`",
        "destructive" | "destructive_hint" => "write `effect = state_change` or `external_side_effect`",
        "approval" | "require_approval" | "needs_approval" => {
            "the policy says which calls wait for a person, for example `require_approval_for_tools`"
        }
        "synonyms" | "keywords" | "aliases" => "write `also = [..]` for words by which the tool is found",
        "schema" | "parameters" | "params" | "input_schema" => "the schema is made from the arguments",
        _ => return None,
    })
}

fn sentences(piece: &Piece, errors: &mut Errors) -> Option<Vec<LitStr>> {
    const WANTED: &str = "a sentence with the names of arguments in braces, for example `\"Deletes the task {task_id}\"`, or a list of such sentences";
    if piece.is_list() {
        piece.list(WANTED, errors)
    } else {
        piece.value(WANTED, errors).map(|sentence| vec![sentence])
    }
}

fn paths(piece: &Piece, errors: &mut Errors) -> Option<Vec<LitStr>> {
    piece.list(PATHS, errors)
}

const PATHS: &str = "a list of paths into the output, for example `[\"id\", \"owner.name\"]`, or `[]` to show nothing";

/// Reads a piece such as `effect = read_only`.
pub(crate) fn effect(piece: &Piece, errors: &mut Errors) -> Option<Reach> {
    piece.choice(
        "effect",
        &[
            ("read_only", Reach::ReadOnly),
            ("state_change", Reach::StateChange),
            ("external_side_effect", Reach::External),
        ],
        errors,
    )
}

/// Reports an effect that was written without its key, such as `read_only` alone. Returns whether it found one.
pub(crate) fn effect_without_key(piece: &Piece, effect: &mut Key<Reach>, errors: &mut Errors) -> bool {
    let word = piece.key_text();
    let is_effect = ["read_only", "state_change", "external_side_effect"].contains(&&*word);
    if is_effect {
        errors.at(&piece.key, format_args!("write `effect = {word}`"));
        effect.misspelt();
    }
    is_effect
}

/// Reads `crate = path`.
pub(crate) fn krate(piece: &Piece, errors: &mut Errors) -> Option<Path> {
    piece.parse_with(Path::parse_mod_style, "the path of `tool_runtime`, for example `my_facade::tool_runtime`", errors)
}

fn timeout(piece: &Piece, errors: &mut Errors) -> Option<Duration> {
    const WANTED: &str = "a duration: a whole number and `ms`, `s`, `m` or `h`, for example `\"30s\"`";
    let text: LitStr = piece.value(WANTED, errors)?;
    let value = text.value();
    let digits = value.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let scale = match value.strip_prefix(digits) {
        Some("ms") => Some(1),
        Some("s") => Some(1_000),
        Some("m") => Some(60_000),
        Some("h") => Some(3_600_000),
        _ => None,
    };
    let millis = digits.parse::<u64>().ok().zip(scale).and_then(|(number, scale)| number.checked_mul(scale));
    match millis {
        Some(0) => errors.at(&text, "a timeout of zero stops every call; leave the key out for no timeout"),
        Some(millis) => return Some(Duration::from_millis(millis)),
        None => errors.at(
            &text,
            format_args!(
                "`{value}` is not a duration; write a whole number and `ms`, `s`, `m` or `h`, for example `\"30s\"`"
            ),
        ),
    }
    None
}

fn once_for(piece: &Piece, errors: &mut Errors) -> Option<Duration> {
    const WANTED: &str = "a whole number above 0 and `m`, `h` or `d`, for example `\"30d\"`";
    let text: LitStr = piece.value(WANTED, errors)?;
    let value = text.value();
    let digits = value.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let scale = match value.strip_prefix(digits) {
        Some("m") => Some(60),
        Some("h") => Some(3_600),
        Some("d") => Some(86_400),
        _ => None,
    };
    let seconds = digits.parse::<u64>().ok().zip(scale).and_then(|(number, scale)| number.checked_mul(scale));
    if let Some(seconds) = seconds.filter(|seconds| *seconds > 0) {
        return Some(Duration::from_secs(seconds));
    }
    errors.at(
        &text,
        format_args!("`{value}` is not a time; write {WANTED}, or leave the key out to keep results forever"),
    );
    None
}

fn bytes(piece: &Piece, errors: &mut Errors) -> Option<LitInt> {
    const WANTED: &str = "a number of bytes above 0, for example `32_768`";
    match piece.value(WANTED, errors)? {
        Lit::Int(number) if number.suffix().is_empty() && number.base10_parse::<u32>().is_ok_and(|bytes| bytes > 0) => {
            Some(number)
        }
        other => {
            errors.at(other, format_args!("`max_result_bytes` is {WANTED}"));
            None
        }
    }
}

/// Reports a key that does not exist. Returns the known key of which it is probably a misspelling.
pub(crate) fn unknown_key<'a>(piece: &Piece, owner: &str, known: &[&'a str], errors: &mut Errors) -> Option<&'a str> {
    let key = piece.key_text();
    let meant = nearest(&key, known);
    match meant {
        Some(meant) => errors.at(&piece.key, format_args!("unknown key `{key}`; did you mean `{meant}`?")),
        None => errors.at(&piece.key, format_args!("unknown key `{key}`; {owner} takes {}", one_of(known))),
    }
    meant
}

/// Reports the second occurrence of a key.
pub(crate) fn duplicate_key(piece: &Piece, errors: &mut Errors) {
    errors.at(&piece.key, format_args!("`{}` is given twice; keep one", piece.key_text()));
}
