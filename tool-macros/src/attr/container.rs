//! `#[serde(..)]` and `#[schemars(..)]` on the item itself. Only the key `rename_all` of `#[serde(..)]` is allowed.

use syn::{Attribute, LitStr};

use crate::attr::argument::list;
use crate::attr::duplicate_key;
use crate::errors::Errors;
use crate::names::{RenameRule, one_of};

/// The parsed attributes of the item.
#[derive(Default)]
pub(crate) struct Container {
    pub(crate) rename_all: Option<RenameRule>,
    /// Attributes to be copied to the generated struct with the derives.
    pub(crate) derived: Vec<Attribute>,
    /// All other attributes, in the author's order.
    pub(crate) kept: Vec<Attribute>,
}

/// Reads the attributes of the item.
pub(crate) fn container(attrs: &[Attribute], errors: &mut Errors) -> Container {
    let mut out = Container::default();
    for attr in attrs {
        if attr.path().is_ident("serde") {
            serde(attr, &mut out, errors);
            out.derived.push(attr.clone());
        } else if attr.path().is_ident("schemars") {
            for piece in list(attr, "#[schemars(..)]", &[], errors) {
                errors.at(&piece.key, "`#[schemars(..)]` is for arguments; the macro describes the item");
            }
            out.derived.push(attr.clone());
        } else if is_tool(attr) {
            // The second `#[tool]` is dropped, because its expansion would define everything twice.
            errors.at(attr, "`#[tool]` is given twice; keep one, or write a second function");
        } else {
            out.kept.push(attr.clone());
        }
    }
    out
}

/// Whether the attribute is `#[tool(..)]`, with or without a path.
pub(crate) fn is_tool(attr: &Attribute) -> bool {
    attr.path().segments.last().is_some_and(|last| last.ident == "tool")
}

fn serde(attr: &Attribute, out: &mut Container, errors: &mut Errors) {
    for piece in list(attr, "#[serde(..)]", &["rename_all"], errors) {
        match piece.key_text().as_str() {
            "rename_all" if out.rename_all.is_some() => duplicate_key(&piece, errors),
            "rename_all" => {
                let names = RenameRule::NAMES.map(|(name, _)| name);
                let Some(text) = piece.value::<LitStr>(&one_of(&names), errors) else { continue };
                out.rename_all = RenameRule::parse(&text.value());
                if out.rename_all.is_none() {
                    errors.at(&text, format_args!("unknown case `{}`; write {}", text.value(), one_of(&names)));
                }
            }
            "deny_unknown_fields" | "crate" => {
                errors.at(&piece.key, format_args!("`#[tool]` already writes `#[serde({})]`; remove it", piece.key));
            }
            "default" => errors.at(
                &piece.key,
                "`#[serde(default)]` on the item hides which arguments are optional; write it on the arguments",
            ),
            key => errors.at(
                &piece.key,
                format_args!(
                    "`#[serde({key})]` on a tool would let the schema and the parser disagree; a tool takes `rename_all`"
                ),
            ),
        }
    }
}
