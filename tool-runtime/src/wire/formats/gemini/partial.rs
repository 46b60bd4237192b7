//! [`PartialArguments`]: collects arguments that arrive value by value, each with its path (rule G3 of `wire`).

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::json::quote;
use crate::wire::decode::cursor::{Invalid, Json};
use crate::wire::decode::fields::{Field, Flag, Raw, Text, shape};

/// The maximum depth of a path; the runner refuses arguments that nest deeper.
const MAX_DEPTH: usize = 64;

shape! {
    /// One value, or a piece of a string.
    pub(super) struct Value<'a> {
        "jsonPath" => path: Text<'a>,
        "stringValue" => text: Text<'a>,
        "numberValue" => number: Raw<'a>,
        "boolValue" => boolean: Raw<'a>,
        "nullValue" => null: Came,
        "willContinue" => continues: Flag,
    }
}

/// Whether the member is present: `null` is the value of `nullValue`.
#[derive(Default)]
struct Came(bool);

impl<'a> Field<'a> for Came {
    fn read(&mut self, json: &mut Json<'a>) -> Result<(), Invalid> {
        self.0 = true;
        json.skip()
    }
}

/// The arguments of one call so far.
pub(super) struct PartialArguments {
    root: Node,
    /// The number of strings that still lack their last piece.
    open: usize,
}

enum Node {
    /// A place without a value so far.
    Empty,
    /// The JSON text of a number, a boolean or null.
    Plain(String),
    Text {
        text: String,
        continues: bool,
    },
    Object(BTreeMap<String, Self>),
    Array(Vec<Self>),
}

/// A new value, borrowed from its frame, because most values extend an existing string.
enum New<'a> {
    Plain(&'a str),
    Text { text: &'a str, continues: bool },
}

enum Step<'a> {
    Key(Cow<'a, str>),
    Index(usize),
}

impl Default for PartialArguments {
    fn default() -> Self {
        Self { root: Node::Object(BTreeMap::new()), open: 0 }
    }
}

impl PartialArguments {
    /// Whether every string has its last piece.
    pub(super) const fn is_whole(&self) -> bool {
        self.open == 0
    }

    /// Adds a value. Fails if its path is invalid or already has a value; an empty value is skipped (R6).
    pub(super) fn add(&mut self, value: &Value<'_>) -> Result<(), Invalid> {
        let Some(new) = value.came()? else { return Ok(()) };
        let mut node = &mut self.root;
        let mut rest = value.path.get().strip_prefix('$').ok_or(Invalid)?;
        let mut depth = 0;
        while !rest.is_empty() {
            depth += 1;
            if depth > MAX_DEPTH {
                return Err(Invalid);
            }
            let step;
            (step, rest) = first_step(rest)?;
            node = node.child(step)?;
        }
        let was_open = node.is_open();
        node.set(&new)?;
        self.open = self.open + usize::from(node.is_open()) - usize::from(was_open);
        Ok(())
    }

    /// The arguments as JSON text.
    pub(super) fn to_json(&self) -> String {
        let mut out = String::new();
        self.root.write(&mut out);
        out
    }
}

impl Value<'_> {
    fn came(&self) -> Result<Option<New<'_>>, Invalid> {
        let word = self.boolean.0.filter(|word| matches!(*word, "true" | "false"));
        Ok(if self.text.came() {
            Some(New::Text { text: self.text.get(), continues: self.continues.0 })
        } else if let Some(number) = self.number.0 {
            // NaN and the infinities arrive as strings, and JSON cannot express them.
            if number.starts_with('"') {
                return Err(Invalid);
            }
            Some(New::Plain(number))
        } else if let Some(word) = word {
            Some(New::Plain(word))
        } else {
            self.null.0.then_some(New::Plain("null"))
        })
    }
}

impl Node {
    const fn is_open(&self) -> bool {
        matches!(self, Self::Text { continues: true, .. })
    }

    fn child(&mut self, step: Step<'_>) -> Result<&mut Self, Invalid> {
        match step {
            Step::Key(key) => {
                if matches!(self, Self::Empty) {
                    *self = Self::Object(BTreeMap::new());
                }
                let Self::Object(members) = self else { return Err(Invalid) };
                if !members.contains_key(&*key) {
                    members.insert(key.clone().into_owned(), Self::Empty);
                }
                members.get_mut(&*key).ok_or(Invalid)
            }
            Step::Index(index) => {
                if matches!(self, Self::Empty) {
                    *self = Self::Array(Vec::new());
                }
                let Self::Array(items) = self else { return Err(Invalid) };
                // Items arrive in order: an index after the next one would leave a gap.
                if index == items.len() {
                    items.push(Self::Empty);
                }
                items.get_mut(index).ok_or(Invalid)
            }
        }
    }

    /// Sets the first value, or adds the next piece of a string that continues.
    fn set(&mut self, new: &New<'_>) -> Result<(), Invalid> {
        match (&mut *self, new) {
            (Self::Empty, New::Plain(word)) => *self = Self::Plain((*word).to_owned()),
            (Self::Empty, New::Text { text, continues }) => {
                *self = Self::Text { text: (*text).to_owned(), continues: *continues };
            }
            // Only an unfinished string accepts more; a second value for one path is refused (G3).
            (Self::Text { text, continues: continues @ true }, New::Text { text: more, continues: on }) => {
                text.push_str(more);
                *continues = *on;
            }
            _ => return Err(Invalid),
        }
        Ok(())
    }

    /// The recursion is at most [`MAX_DEPTH`] deep.
    fn write(&self, out: &mut String) {
        match self {
            Self::Empty => out.push_str("null"),
            Self::Plain(text) => out.push_str(text),
            Self::Text { text, .. } => quote(out, text),
            Self::Object(members) => {
                out.push('{');
                for (at, (key, member)) in members.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    quote(out, key);
                    out.push(':');
                    member.write(out);
                }
                out.push('}');
            }
            Self::Array(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    item.write(out);
                }
                out.push(']');
            }
        }
    }
}

/// The first step of a path such as `$.places[0]['the city']` after its `$`, and the rest (RFC 9535, singular queries).
fn first_step(path: &str) -> Result<(Step<'_>, &str), Invalid> {
    let Some(named) = path.strip_prefix('.') else {
        return bracketed(path.strip_prefix('[').ok_or(Invalid)?);
    };
    let (name, rest) = named.split_at(named.find(['.', '[']).unwrap_or(named.len()));
    if name.is_empty() { Err(Invalid) } else { Ok((Step::Key(name.into()), rest)) }
}

/// Reads the text after a bracket: an index or a quoted name, and the closing bracket.
fn bracketed(text: &str) -> Result<(Step<'_>, &str), Invalid> {
    let Some(quote) = text.chars().next().filter(|first| matches!(first, '\'' | '"')) else {
        let (index, rest) = text.split_once(']').ok_or(Invalid)?;
        let digits = !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit());
        return Ok((Step::Index(index.parse().ok().filter(|_| digits).ok_or(Invalid)?), rest));
    };
    let (mut name, mut characters) = (String::new(), text.char_indices().skip(1));
    while let Some((at, character)) = characters.next() {
        if character == quote {
            let rest = text.get(at + 1..).and_then(|rest| rest.strip_prefix(']')).ok_or(Invalid)?;
            return Ok((Step::Key(name.into()), rest));
        }
        name.push(match character {
            '\\' => characters.next().map(|(_, escaped)| escaped).ok_or(Invalid)?,
            plain => plain,
        });
    }
    Err(Invalid)
}
