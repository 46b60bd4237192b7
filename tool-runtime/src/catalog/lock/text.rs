//! The text of a lock (`tools.lock`): JSON with sorted keys and a line for each member, so that changes of different
//! tools merge.

use std::collections::BTreeMap;

use serde::Deserialize as _;
use serde_json::{Map, Value};

use crate::catalog::lock::VERSION;
use crate::catalog::lock::locked::Locked;
use crate::error::ParseError;
use crate::json::{Limits, Tree, canonical, parse_value};
use crate::text::sentence;

/// The conflict markers that a merge leaves at the beginning of a line. No line of a lock begins with one.
const MARKS: [&str; 4] = ["<<<<<<<", "|||||||", "=======", ">>>>>>>"];

/// The maximum length of the message about an unreadable entry, in bytes.
const MESSAGE: usize = 300;

/// The longest schema that is read, in bytes. A catalog accepts at most 64 KiB (`schema::texts::MAX_BYTES`).
const MAX_SCHEMA: usize = 256 * 1024;

/// The entries of a lock by tool. `Err` is the reason why an entry is unreadable.
pub(super) type Entries = BTreeMap<String, Result<Locked, String>>;

/// Writes the readable entries only.
pub(super) fn write(tools: &Entries) -> String {
    let readable = tools.iter().filter_map(|(name, locked)| Some((name.clone(), locked.as_ref().ok()?.to_value())));
    let document = serde_json::json!({"tools": readable.collect::<Map<_, _>>(), "version": VERSION});
    let mut text = String::new();
    pretty(&document, 0, &mut text);
    text.push('\n');
    text
}

fn pretty(value: &Value, depth: usize, out: &mut String) {
    let new_line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    match value {
        Value::Array(items) if !items.is_empty() => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                new_line(out, depth + 1);
                pretty(item, depth + 1, out);
            }
            new_line(out, depth);
            out.push(']');
        }
        Value::Object(members) if !members.is_empty() => {
            // The members are sorted here, because the order of a map depends on the features of `serde_json`.
            let members: BTreeMap<_, _> = members.iter().collect();
            out.push('{');
            for (at, (name, value)) in members.into_iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                new_line(out, depth + 1);
                out.push_str(&canonical::to_text(&Value::from(name.as_str())));
                out.push_str(": ");
                pretty(value, depth + 1, out);
            }
            new_line(out, depth);
            out.push('}');
        }
        scalar => out.push_str(&canonical::to_text(scalar)),
    }
}

pub(super) fn read(text: &str) -> Result<Entries, ParseError> {
    for (at, line) in text.lines().enumerate() {
        if let Some(mark) = MARKS.into_iter().find(|mark| line.starts_with(mark)) {
            let number = at + 1;
            let message = format!(
                "line {number} begins with `{mark}`, a merge conflict; take either side, then write the lock again"
            );
            return Err(ParseError::formatted("lock_merge", message));
        }
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // No limit of bytes: the text is already in memory, and a catalog may have any number of tools.
    let tree = parse_value(text, &Limits::UNBOUNDED).map_err(|error| {
        let message = format!("{error}; restore the lock, or remove it and write it again");
        ParseError::formatted("lock_malformed", message)
    })?;
    let shape = |message: &str| ParseError::formatted("lock_shape", format!("this is not a lock: {message}"));
    let Tree::Object(members) = &tree else { return Err(shape("it is not an object")) };
    let member = |name: &str| members.iter().find(|(key, _)| key == name).map(|(_, value)| value);
    match member("version").and_then(|version| version.to_value().as_u64()) {
        Some(VERSION) => {}
        Some(found) => {
            let message = format!(
                "the lock has version {found}, this library reads version {VERSION}; remove the lock and write it again"
            );
            return Err(ParseError::formatted("lock_version", message));
        }
        None => return Err(shape("`version` is missing, or is not a positive whole number")),
    }
    if let Some((name, _)) = members.iter().find(|(name, _)| !matches!(&**name, "tools" | "version")) {
        return Err(shape(&format!("the member `{}` is not known", sentence(name, 64).escape_debug())));
    }
    let Some(Tree::Object(tools)) = member("tools") else {
        return Err(shape("`tools` is missing, or is not an object"));
    };
    // One entry at a time: an unreadable one does not affect the others.
    let entry = |tree: &Tree<'_>| {
        let locked = Locked::deserialize(tree.to_value()).map_err(|error| sentence(&error.to_string(), MESSAGE))?;
        let schemas = [Some(&locked.input_schema), Some(&locked.output_schema), locked.payload_schema.as_ref()];
        let is_long = schemas.into_iter().flatten().any(|schema| canonical::to_text(schema).len() > MAX_SCHEMA);
        if is_long { Err(format!("a schema is longer than {MAX_SCHEMA} bytes")) } else { Ok(locked) }
    };
    Ok(tools.iter().map(|(name, tree)| (name.as_ref().to_owned(), entry(tree))).collect())
}
