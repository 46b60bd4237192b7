//! The rules about constraints that would have no effect. The catalog checks the types that tokens do not show.

use syn::{GenericArgument, PathArguments, Type};

use crate::errors::Errors;
use crate::model::Tool;
use crate::names::plain;

/// Refuses a constraint such as the range of a string or the length of a number, which the schema would silently omit.
pub(super) fn constraint_without_effect(tool: &Tool, errors: &mut Errors) {
    for argument in &tool.arguments {
        let Some(kind) = Kind::of(&argument.ty) else { continue };
        let mut outer: Vec<_> = argument.attr.constraints.iter().filter_map(|keys| keys.first()).collect();
        // `inner(length(..), regex(..))` is one mistake.
        outer.dedup();
        for key in outer.into_iter().filter(|key| !kind.takes(&plain(key))) {
            errors.at(key, format_args!("`{}` does not constrain {}; {}", plain(key), kind.words(), kind.instead()));
        }
    }
}

/// Refuses a constraint of an argument without a schema. No schema could contain it.
pub(super) fn constraint_without_schema(tool: &Tool, errors: &mut Errors) {
    if tool.attr.allow_no_schema.is_absent() {
        return;
    }
    for key in tool.arguments.iter().flat_map(|argument| &argument.attr.constraints).filter_map(|keys| keys.first()) {
        errors.at(key, "these arguments have no schema that could contain it; check the value in `validate`");
    }
}

/// The JSON type of a standard library type, judged by the last segment of its path.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Number,
    Flag,
}

impl Kind {
    fn of(ty: &Type) -> Option<Self> {
        let Type::Path(path) = ty else { return None };
        let last = path.path.segments.last()?;
        Some(match last.ident.to_string().as_str() {
            "Option" => {
                let PathArguments::AngleBracketed(list) = &last.arguments else { return None };
                let GenericArgument::Type(inner) = list.args.first()? else { return None };
                return Self::of(inner);
            }
            "String" => Self::Text,
            "bool" => Self::Flag,
            "u8" | "u16" | "u32" | "u64" | "u128" | "usize" | "i8" | "i16" | "i32" | "i64" | "i128" | "isize"
            | "f32" | "f64" => Self::Number,
            _ => return None,
        })
    }

    fn takes(self, key: &str) -> bool {
        match key {
            "range" => matches!(self, Self::Number),
            "inner" => false,
            _ => matches!(self, Self::Text),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Text => "a text",
            Self::Number => "a number",
            Self::Flag => "a `bool`",
        }
    }

    fn instead(self) -> &'static str {
        match self {
            Self::Text => "write `length(..)` or `regex(..)`",
            Self::Number => "write `range(..)`",
            Self::Flag => "remove it",
        }
    }
}
