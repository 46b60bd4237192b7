//! The attributes of one argument: `#[arg(..)]`, and those keys of `#[serde(..)]` and `#[schemars(..)]` that change the
//! schema and the parser alike.

use proc_macro2::{Ident, TokenStream};
use quote::ToTokens;
use syn::{Attribute, Expr, LitStr, Meta};

use crate::attr::pieces::{Piece, Value, pieces};
use crate::attr::{Key, unknown_key};
use crate::docs::Docs;
use crate::errors::Errors;
use crate::names::nearest;

/// The parsed attributes of one argument.
pub(crate) struct ArgumentAttr {
    pub(crate) docs: Docs,
    pub(crate) default: Key<DefaultValue>,
    pub(crate) sensitive: Key<()>,
    pub(crate) evidence: Key<LitStr>,
    pub(crate) rename: Key<LitStr>,
    /// Attributes for the derives: doc comments, `#[serde(..)]`, `#[schemars(..)]`.
    pub(crate) derived: Vec<Attribute>,
    /// Attributes that stay on a parameter.
    pub(crate) kept: Vec<Attribute>,
    /// `#[cfg(..)]` and `#[cfg_attr(..)]`, which a rule refuses.
    pub(crate) conditional: Vec<Attribute>,
    /// The keys of `#[schemars(..)]`, from the outer one to the inner one: `[inner, regex]` for `inner(regex(..))`.
    pub(crate) constraints: Vec<Vec<Ident>>,
    /// `#[serde(..)]` or `#[schemars(..)]`, which a rule refuses on borrowed parameters.
    pub(crate) described: Option<Attribute>,
}

/// The source of a default.
pub(crate) enum DefaultValue {
    /// `#[arg(default = EXPR)]`
    Expr(Box<Expr>),
    /// `#[serde(default)]` or `#[serde(default = "path")]`, which the derives read themselves.
    Serde,
}

const ARG_KEYS: [&str; 3] = ["default", "sensitive", "evidence"];
const SERDE_KEYS: [&str; 2] = ["rename", "default"];
const SCHEMARS_KEYS: [&str; 11] =
    ["range", "length", "regex", "pattern", "contains", "email", "url", "ip", "inner", "title", "example"];

/// Reads the attributes of one argument. On a field, unknown attributes are kept, because they may belong to other
/// derives of the item. On a parameter, where they have no meaning, they are reported.
pub(crate) fn argument(attrs: &[Attribute], is_parameter: bool, errors: &mut Errors) -> ArgumentAttr {
    let mut out = ArgumentAttr {
        docs: Docs::of(attrs),
        default: Key::Absent,
        sensitive: Key::Absent,
        evidence: Key::Absent,
        rename: Key::Absent,
        derived: Vec::new(),
        kept: Vec::new(),
        conditional: Vec::new(),
        constraints: Vec::new(),
        described: None,
    };
    for attr in attrs {
        let name = attr.path().get_ident().map(ToString::to_string).unwrap_or_default();
        match name.as_str() {
            "doc" => out.derived.push(attr.clone()),
            "arg" => arg(attr, &mut out, errors),
            "serde" => {
                serde(attr, &mut out, errors);
                out.described = Some(attr.clone());
                out.derived.push(attr.clone());
            }
            "schemars" => {
                schemars(attr, &mut out.constraints, errors);
                out.described = Some(attr.clone());
                out.derived.push(attr.clone());
            }
            "validate" | "garde" => errors.at(
                attr,
                format_args!(
                    "`#[{name}(..)]` would change only the schema; write `#[schemars(..)]`, or the key `validate` of \
                     `#[tool]`"
                ),
            ),
            "cfg" | "cfg_attr" => out.conditional.push(attr.clone()),
            "allow" | "expect" | "warn" | "deny" | "forbid" => out.kept.push(attr.clone()),
            _ if is_parameter => errors
                .at(attr, "unknown attribute on an argument; write `#[arg(..)]`, `#[serde(..)]` or `#[schemars(..)]`"),
            _ => out.kept.push(attr.clone()),
        }
    }
    out
}

fn arg(attr: &Attribute, out: &mut ArgumentAttr, errors: &mut Errors) {
    for piece in &list(attr, "#[arg(..)]", &ARG_KEYS, errors) {
        match piece.key_text().as_str() {
            "default" => out.default.read(piece, errors, |piece, errors| {
                let expr = piece.value("an expression, for example `#[arg(default = 10)]`", errors)?;
                Some(DefaultValue::Expr(Box::new(expr)))
            }),
            "sensitive" => out.sensitive.flag(piece, errors),
            "evidence" => out.evidence.read(piece, errors, |piece, errors| {
                piece.value("the name of the tool that lists such values, for example `\"tasks__list_tasks\"`", errors)
            }),
            "description" | "desc" | "doc" => {
                errors.at(&piece.key, "write the description as a doc comment on the argument");
            }
            _ => {
                unknown_key(piece, "`#[arg]`", &ARG_KEYS, errors);
            }
        }
    }
}

fn serde(attr: &Attribute, out: &mut ArgumentAttr, errors: &mut Errors) {
    for piece in &list(attr, "#[serde(..)]", &SERDE_KEYS, errors) {
        match piece.key_text().as_str() {
            "rename" => out.rename.read(piece, errors, |piece, errors| {
                piece.value("one name, for example `#[serde(rename = \"type\")]`", errors)
            }),
            "default" => out.default.read(piece, errors, |_, _| Some(DefaultValue::Serde)),
            key if nearest(key, &SERDE_KEYS).is_some() => {
                unknown_key(piece, "`#[serde]` on an argument", &SERDE_KEYS, errors);
            }
            key => refuse_serde(&piece.key, key, errors),
        }
    }
}

/// Reports a serde key that an argument cannot have, and what to write instead.
fn refuse_serde(place: &Ident, key: &str, errors: &mut Errors) {
    let instead = match key {
        "flatten" => "write the fields as arguments, or nest them in a separate object",
        "alias" => "the schema publishes one name only",
        "with" | "deserialize_with" => "give the type its own `Deserialize` and `JsonSchema`",
        "skip" | "skip_deserializing" => "remove it from the arguments",
        "borrow" => "arguments are owned",
        "skip_serializing" | "skip_serializing_if" | "serialize_with" | "getter" => "arguments are only read",
        "deny_unknown_fields" | "rename_all" => "it belongs on the item",
        _ => "an argument takes `rename` and `default`",
    };
    errors.at(
        place,
        format_args!("`#[serde({key})]` on an argument would let the schema and the parser disagree; {instead}"),
    );
}

fn schemars(attr: &Attribute, constraints: &mut Vec<Vec<Ident>>, errors: &mut Errors) {
    for piece in list(attr, "#[schemars(..)]", &SCHEMARS_KEYS, errors) {
        schemars_key(&piece, &[], constraints, errors);
    }
}

fn schemars_key(piece: &Piece, outer: &[Ident], constraints: &mut Vec<Vec<Ident>>, errors: &mut Errors) {
    let key = piece.key_text();
    let path = [outer, std::slice::from_ref(&piece.key)].concat();
    match (key.as_str(), &piece.value) {
        ("inner", Value::List(tokens)) => {
            for inner in pieces(tokens.clone(), &SCHEMARS_KEYS, errors) {
                schemars_key(&inner, &path, constraints, errors);
            }
        }
        ("title" | "example", _) => {}
        ("email" | "url" | "ip", _) => {
            if piece.flag(errors) {
                constraints.push(path);
            }
        }
        (known, Value::List(_)) if SCHEMARS_KEYS.contains(&known) => constraints.push(path),
        (known, Value::None | Value::Equals(_)) if SCHEMARS_KEYS.contains(&known) => {
            errors.at(&piece.key, format_args!("write `{}`", shape(known)));
        }
        (known, Value::Broken) if SCHEMARS_KEYS.contains(&known) => {}
        ("rename" | "default", _) => errors.at(
            &piece.key,
            format_args!(
                "`#[schemars({key})]` would let the schema and the parser disagree; write `#[serde({key} = ..)]`, which both read"
            ),
        ),
        ("description", _) => errors.at(&piece.key, "write the description as a doc comment on the argument"),
        ("required" | "with" | "schema_with" | "extend" | "transform" | "skip" | "flatten", _) => errors
            .at(&piece.key, format_args!("`#[schemars({key})]` would let the schema and the parser disagree; give the argument a type that expresses it")),
        _ => {
            unknown_key(piece, "`#[schemars]` on an argument", &SCHEMARS_KEYS, errors);
        }
    }
}

/// Returns an example of a constraint. schemars reads no other shape.
fn shape(key: &str) -> &'static str {
    match key {
        "range" => "range(min = 1, max = 10)",
        "length" => "length(min = 1, max = 40)",
        "regex" => "regex(pattern = \"^[a-z]+$\")",
        "pattern" => "pattern(\"^[a-z]+$\")",
        "contains" => "contains(\"@\")",
        _ => "inner(length(max = 40))",
    }
}

/// Returns the keys of `#[name(..)]`, and reports an attribute of another shape.
pub(super) fn list(attr: &Attribute, shape: &str, known: &[&str], errors: &mut Errors) -> Vec<Piece> {
    if let Meta::List(list) = &attr.meta {
        return pieces(list.tokens.clone(), known, errors);
    }
    errors.at(attr, format_args!("write `{shape}`"));
    Vec::new()
}

impl ArgumentAttr {
    /// Returns the first attribute that is not allowed on a borrowed parameter.
    pub(crate) fn of_arguments_only(&self) -> Option<TokenStream> {
        let key = |ident: &Ident| ident.to_token_stream();
        None.or_else(|| self.default.key().map(key))
            .or_else(|| self.sensitive.key().map(key))
            .or_else(|| self.evidence.key().map(key))
            .or_else(|| self.described.as_ref().map(ToTokens::to_token_stream))
    }
}
