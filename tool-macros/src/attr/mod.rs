//! The keys of `#[tool(..)]`, with the tokens to blame for each.
//!
//! Nothing here returns a `Result`: a key that is unknown, malformed or repeated is reported and left out.

mod argument;
mod capability;
mod container;
mod pieces;

use std::collections::HashSet;
use std::time::Duration;

use proc_macro2::{Ident, TokenStream};
use syn::{Lit, LitInt, LitStr, Path, Type};

use crate::errors::Errors;
use crate::names::{nearest, one_of};

pub(crate) use argument::{ArgumentAttr, Default, argument};
pub(crate) use capability::{CapabilityAttr, capability};
pub(crate) use container::{Container, container};
pub(crate) use pieces::{Piece, pieces};

/// What `#[tool(..)]` says.
#[derive(Default)]
pub(crate) struct ToolAttr {
    /// All of it: the place of what is missing.
    pub(crate) tokens: TokenStream,
    pub(crate) name: Option<LitStr>,
    pub(crate) title: Option<LitStr>,
    pub(crate) effect: Option<Effect>,
    pub(crate) redact: Option<Vec<LitStr>>,
    pub(crate) model: Vec<LitStr>,
    pub(crate) prepare: Option<(Ident, Vec<LitStr>)>,
    pub(crate) tags: Vec<LitStr>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_result_bytes: Option<LitInt>,
    pub(crate) client: Option<Ident>,
    pub(crate) client_result: Option<(Ident, Type)>,
    pub(crate) idempotent: bool,
    pub(crate) blocking: Option<Ident>,
    pub(crate) require_any: Option<(Ident, Vec<Ident>)>,
    pub(crate) validate: Option<Path>,
    pub(crate) allow_no_schema: Option<Ident>,
    pub(crate) no_schema_mode: Option<(Ident, NoSchemaMode)>,
    pub(crate) krate: Option<Path>,
    /// Every known key that was written, even when its value could not be read.
    pub(crate) written: HashSet<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    ReadOnly,
    StateChange,
    External,
}

#[derive(Clone, Copy)]
pub(crate) enum NoSchemaMode {
    RejectEffects,
    ApproveEach,
}

const KEYS: [&str; 18] = [
    "name",
    "effect",
    "redact",
    "title",
    "tags",
    "timeout",
    "max_result_bytes",
    "execution",
    "client_result",
    "prepare",
    "idempotent",
    "blocking",
    "require_any",
    "validate",
    "model",
    "allow_no_schema",
    "no_schema_mode",
    "crate",
];

/// Reads `#[tool(..)]`.
pub(crate) fn tool(tokens: TokenStream, errors: &mut Errors) -> ToolAttr {
    let mut attr = ToolAttr { tokens: tokens.clone(), ..ToolAttr::default() };
    for piece in pieces(tokens, errors) {
        let key = piece.key_text();
        if !KEYS.contains(&key.as_str()) {
            unknown_key(&piece, "`#[tool]`", &KEYS, errors);
        } else if attr.written.insert(key.clone()) {
            read(&mut attr, &key, piece, errors);
        } else {
            duplicate_key(&piece, errors);
        }
    }
    attr
}

fn read(attr: &mut ToolAttr, key: &str, piece: Piece, errors: &mut Errors) {
    match key {
        "name" => attr.name = piece.value("a string, for example `\"core__add\"`", errors),
        "title" => attr.title = piece.value("a string", errors),
        "effect" => attr.effect = effect(&piece, errors),
        "redact" => attr.redact = piece.list(PATHS, errors),
        "model" => attr.model = piece.list(PATHS, errors).unwrap_or_default(),
        "prepare" => attr.prepare = piece.list(PATHS, errors).map(|paths| (piece.key, paths)),
        "tags" => attr.tags = piece.list("a list of strings, for example `[\"calendar\"]`", errors).unwrap_or_default(),
        "timeout" => attr.timeout = timeout(&piece, errors),
        "max_result_bytes" => attr.max_result_bytes = bytes(&piece, errors),
        "execution" => {
            if piece.choice("execution", &[("server", false), ("client", true)], errors) == Some(true) {
                attr.client = Some(piece.key);
            }
        }
        "client_result" => {
            attr.client_result = piece.value("the type that the client sends back", errors).map(|ty| (piece.key, ty));
        }
        "idempotent" => attr.idempotent = piece.flag(errors),
        "blocking" => attr.blocking = piece.flag(errors).then_some(piece.key),
        "require_any" => {
            attr.require_any = piece
                .list("a list of arguments, for example `[title, due_date]`", errors)
                .map(|names| (piece.key, names));
        }
        "validate" => attr.validate = piece.value("the path of a function", errors),
        "allow_no_schema" => attr.allow_no_schema = piece.flag(errors).then_some(piece.key),
        "no_schema_mode" => {
            let modes = [("reject_effects", NoSchemaMode::RejectEffects), ("approve_each", NoSchemaMode::ApproveEach)];
            attr.no_schema_mode = piece.choice("mode", &modes, errors).map(|mode| (piece.key, mode));
        }
        _ => attr.krate = krate(&piece, errors),
    }
}

const PATHS: &str = "a list of paths into the output, for example `[\"id\", \"owner.name\"]`, or `[]` to show nothing";

/// `effect = read_only`
pub(crate) fn effect(piece: &Piece, errors: &mut Errors) -> Option<Effect> {
    piece.choice(
        "effect",
        &[
            ("read_only", Effect::ReadOnly),
            ("state_change", Effect::StateChange),
            ("external_side_effect", Effect::External),
        ],
        errors,
    )
}

/// `crate = path`
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
        Some(0) => errors.at(&text, "a timeout of nothing stops every call; leave the key out for no timeout"),
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

/// Reports a key that does not exist, with the one that was probably meant.
pub(crate) fn unknown_key(piece: &Piece, owner: &str, known: &[&str], errors: &mut Errors) {
    let key = piece.key_text();
    match nearest(&key, known) {
        Some(meant) => errors.at(&piece.key, format_args!("unknown key `{key}`; did you mean `{meant}`?")),
        None => errors.at(&piece.key, format_args!("unknown key `{key}`; {owner} takes {}", one_of(known))),
    }
}

/// Reports a key that stands there for the second time.
pub(crate) fn duplicate_key(piece: &Piece, errors: &mut Errors) {
    errors.at(&piece.key, format_args!("`{}` is given twice; keep one", piece.key_text()));
}
