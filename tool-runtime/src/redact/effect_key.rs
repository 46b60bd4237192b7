//! Builds the effect key of a call from its arguments.

use crate::json::{self, Limits, Tree, canonical};
use crate::text::plain;
use crate::tool::Once;
use crate::tool::sentence::{Piece, pieces};

/// The maximum number of characters of a key in a record.
const MAX_KEY_CHARS: usize = 200;

/// The effect key of a call: its tool's `once`, with the values of the arguments. Calls with an equal key take effect
/// once.
pub(crate) struct EffectKey {
    /// The literal texts and the values of the key, as separate parts with a mark of their kind. So no value is
    /// mistaken for a literal text of this key or of another tool's key.
    pub(crate) parts: Vec<String>,
    /// The key as records show it.
    pub(crate) shown: String,
}

/// Builds the key from the JSON text of effective arguments. A catalog checks that every call has the arguments.
pub(crate) fn effect_key(once: &Once, arguments: &str) -> EffectKey {
    let arguments = json::parse(arguments, &Limits::UNBOUNDED).unwrap_or(Tree::Null);
    let (mut parts, mut shown) = (Vec::new(), String::new());
    for piece in pieces(&once.key).unwrap_or_default() {
        let (kind, text) = match piece {
            Piece::Text(text) => ('=', text),
            Piece::Argument(path) => (':', value(path.iter().try_fold(&arguments, |tree, name| tree.get(name)))),
            Piece::Begin | Piece::End => continue,
        };
        shown.push_str(&text);
        parts.push(format!("{kind}{text}"));
    }
    EffectKey { parts, shown: plain(&shown, MAX_KEY_CHARS) }
}

fn value(found: Option<&Tree<'_>>) -> String {
    match found {
        None => String::new(),
        Some(Tree::String(text)) => text.clone().into_owned(),
        Some(other) => canonical::to_text(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::OnceScope;

    #[test]
    fn values_do_not_pass_for_the_text_around_them() {
        let key = |arguments: &str| {
            let once = Once { key: "move:{from}:{to.id}".into(), scope: OnceScope::Tenant, keep: None };
            let EffectKey { parts, shown } = effect_key(&once, arguments);
            (parts, shown)
        };
        let (one, shown) = key(r#"{"from":"a:b","to":{"id":7}}"#);
        let (other, _) = key(r#"{"from":"a","to":{"id":"b:7"}}"#);
        assert_eq!(shown, "move:a:b:7");
        assert_ne!(one, other);
        assert_eq!(one, key(r#"{"to":{"id":7},"from":"a:b"}"#).0);
    }

    #[test]
    fn a_value_of_one_tool_does_not_pass_for_the_text_of_another() {
        let key = |text: &str| {
            let once = Once { key: text.into(), scope: OnceScope::Tenant, keep: None };
            effect_key(&once, r#"{"kind":"refund:","id":"7"}"#)
        };
        let (one, other) = (key("{kind}{id}"), key("refund:{id}"));
        assert_eq!(one.shown, other.shown);
        assert_ne!(one.parts, other.parts);
    }
}
