//! Writes the sentence of a tool's author about a call, for the person who decides.

use std::sync::Arc;

use crate::call::NamedArgument;
use crate::json::{self, Limits, Tree};
use crate::redact::mask::MASK;
use crate::text::{pointer, quoted};
use crate::tool::ToolSpec;
use crate::tool::sentence::{Piece, pieces};

/// The maximum number of characters of one value.
const MAX_VALUE_CHARS: usize = 80;

/// Writes the sentence about a call: the first sentence whose arguments are all present, or else the last one. An
/// optional part is left out if one of its arguments is absent. `None` for a tool without sentences.
///
/// `arguments` is the JSON text of the effective arguments. Values are quoted and cut, and sensitive values are masked.
pub(crate) fn summary(spec: &ToolSpec, arguments: &str, names: &[NamedArgument]) -> Option<String> {
    let last = spec.summary.last()?;
    let arguments = json::parse(arguments, &Limits::UNBOUNDED).unwrap_or(Tree::Null);
    let is_given = |piece: &Piece| match piece {
        Piece::Argument(path) => find(&arguments, path).is_some(),
        Piece::Text(_) | Piece::Begin | Piece::End => true,
    };
    let fits = |sentence: &&Arc<str>| Piece::always(&pieces(sentence).unwrap_or_default()).all(is_given);
    let sentence = spec.summary.iter().find(fits).unwrap_or(last);
    let pieces = pieces(sentence).ok()?;
    let mut written = String::new();
    let mut rest = pieces.iter();
    while let Some(piece) = rest.next() {
        match piece {
            Piece::Begin => {
                let part = || rest.as_slice().iter().take_while(|piece| **piece != Piece::End);
                if !part().all(is_given) {
                    rest.by_ref().find(|piece| **piece == Piece::End);
                }
            }
            Piece::End => {}
            Piece::Text(text) => written.push_str(text),
            Piece::Argument(path) if path.first().is_some_and(|name| spec.sensitive.contains(name)) => {
                written.push_str(MASK);
            }
            Piece::Argument(path) => match find(&arguments, path) {
                None => written.push_str("(not given)"),
                Some(found) => value(&mut written, found, &place(path), names),
            },
        }
    }
    Some(written)
}

fn find<'t>(arguments: &'t Tree<'t>, path: &[String]) -> Option<&'t Tree<'t>> {
    path.iter().try_fold(arguments, |tree, name| tree.get(name)).filter(|found| !found.is_null())
}

fn place(path: &[String]) -> String {
    let mut place = String::new();
    path.iter().for_each(|name| pointer::push(&mut place, name));
    place
}

fn value(written: &mut String, value: &Tree<'_>, place: &str, names: &[NamedArgument]) {
    let Tree::Array(items) = value else {
        written.push_str(&shown(value, MAX_VALUE_CHARS));
        return named(written, place, names);
    };
    if items.is_empty() {
        written.push_str("(none)");
    }
    let mut room = MAX_VALUE_CHARS;
    for (at, item) in items.iter().enumerate() {
        if room == 0 {
            written.push_str(" and ");
            written.push_str(&(items.len() - at).to_string());
            written.push_str(" more");
            break;
        }
        if at > 0 {
            written.push_str(", ");
        }
        let text = shown(item, room);
        room = room.saturating_sub(text.chars().count());
        written.push_str(&text);
        named(written, &format!("{place}/{at}"), names);
    }
}

fn shown(value: &Tree<'_>, most: usize) -> String {
    match value {
        Tree::String(text) => quoted(text, most),
        Tree::Array(_) | Tree::Object(_) => quoted(&serde_json::to_string(value).unwrap_or_default(), most),
        scalar => serde_json::to_string(scalar).unwrap_or_default(),
    }
}

/// Writes the name that was looked up for the value, with a mark that it was looked up.
fn named(written: &mut String, place: &str, names: &[NamedArgument]) {
    if let Some(found) = names.iter().find(|named| named.pointer == place) {
        written.push_str(" (");
        written.push_str(&found.label());
        written.push(')');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The attribute and the catalog refuse a sentence with a sensitive argument. This is a second protection.
    #[test]
    fn a_sensitive_argument_is_masked() {
        let spec = ToolSpec {
            summary: vec!["Unlocks {door} with {pin}".into()],
            sensitive: vec!["pin".into()],
            ..ToolSpec::plain("doors__unlock")
        };
        let sentence = summary(&spec, r#"{"door":"north","pin":"4711"}"#, &[]);
        assert_eq!(sentence.as_deref(), Some("Unlocks “north” with [sensitive]"));
    }
}
