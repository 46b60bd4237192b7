//! Compares two schemas by the values that fit them, with separate verdicts for arguments and for outputs.
//!
//! A comparison visits a limited number of places, and reports if there are more.

mod members;
mod shown;
mod values;
mod view;

use std::collections::HashSet;

use serde_json::Value;

use crate::catalog::lock::changes::MAX_CHANGES;
use crate::catalog::lock::{LockChange, LockMark, LockVerdict};
use crate::json::canonical;
use crate::text::{cut, pointer};
pub(super) use shown::{between, texts};
use view::{View, behind, resolve};

/// The maximum number of places of two schemas that are compared.
const MAX_PLACES: usize = 20_000;

/// The maximum depth of a place that is compared, including references.
const MAX_DEPTH: usize = 96;

/// The longest pointer of a change, in bytes.
const LONGEST_POINTER: usize = 512;

/// Keywords whose values are only compared for equality.
const WHOLE: [&str; 21] = [
    "$dynamicRef",
    "$recursiveRef",
    "additionalItems",
    "contains",
    "contentSchema",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "if",
    "maxContains",
    "minContains",
    "not",
    "patternProperties",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentEncoding",
    "contentMediaType",
];

/// Keywords whose values are compared by their meaning.
const RULES: [&str; 25] = [
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "default",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "oneOf",
    "pattern",
    "properties",
    "required",
    "type",
    "uniqueItems",
];

/// The use of a schema's values.
#[derive(Clone, Copy)]
pub(super) enum Use<'a> {
    /// Arguments, which a model writes.
    Input,
    /// An output. A model or a client reads the members that the allowlist names, or all members without one.
    Output(Option<&'a [String]>),
}

/// The change in the set of values that fit a schema.
#[derive(Clone, Copy, PartialEq)]
enum Shift {
    Narrower,
    Wider,
    /// Some values no longer fit, and others fit now.
    Other,
    /// The change cannot be judged.
    Unknown,
    /// A member that is not required was added.
    Added,
    Removed,
    /// The default of a member changed, so leaving it out means something else.
    Default,
    /// Titles, descriptions and examples.
    Text,
    /// An unknown keyword.
    Foreign,
    /// A difference without an effect.
    Same,
}

/// Compares two schemas, and adds the differences.
pub(super) fn compare(at: &str, old: &Value, new: &Value, usage: Use<'_>, changes: &mut Vec<LockChange>) {
    if canonical::to_text(old) == canonical::to_text(new) {
        return;
    }
    let mut comparison = Comparison {
        roots: (old, new),
        usage,
        pointer: at.to_owned(),
        path: Vec::new(),
        open: Vec::new(),
        clean: HashSet::new(),
        places: 0,
        found: 0,
        assumed: 0,
        was_required: false,
        kept: 0,
        beyond: None,
        changes,
    };
    comparison.schemas(old, new);
    if comparison.is_over() {
        comparison.pointer.truncate(at.len());
        comparison.path.clear();
        comparison.add(Shift::Unknown, "it changed, and is too large to be compared further");
    } else if comparison.found == 0 {
        comparison.add(Shift::Same, "it is written in another way; the same values fit");
    }
    if let Some(verdict) = comparison.beyond {
        changes.push(LockChange::new(at, verdict, LockMark::Review, "there are more changes than are listed"));
    }
}

struct Comparison<'a, 'c> {
    roots: (&'a Value, &'a Value),
    usage: Use<'a>,
    pointer: String,
    /// The names of the members on the path to the current place; `*` for a member of a map.
    path: Vec<&'a str>,
    open: Vec<(usize, usize)>,
    /// The pairs of schemas that were found to be equal.
    clean: HashSet<(usize, usize)>,
    places: usize,
    found: usize,
    /// The number of times that a pair contained itself and was assumed to be equal.
    assumed: usize,
    /// Whether the compared member was required before.
    was_required: bool,
    kept: usize,
    /// The most severe verdict of the differences that are not kept.
    beyond: Option<LockVerdict>,
    changes: &'c mut Vec<LockChange>,
}

impl<'a> Comparison<'a, '_> {
    fn is_over(&self) -> bool {
        self.places > MAX_PLACES
    }

    /// Runs `inside` with the pointer extended by these segments.
    fn below(&mut self, segments: &[&str], inside: impl FnOnce(&mut Self)) {
        let mark = self.pointer.len();
        segments.iter().for_each(|segment| pointer::push(&mut self.pointer, segment));
        inside(self);
        self.pointer.truncate(mark);
    }

    fn schemas(&mut self, old: &'a Value, new: &'a Value) {
        self.places += 1;
        if self.open.len() > MAX_DEPTH {
            self.places = MAX_PLACES + 1;
        }
        // The targets of references identify a pair, so that it is compared once, through any reference.
        let pair = (address(behind(self.roots.0, old)), address(behind(self.roots.1, new)));
        if self.is_over() || self.clean.contains(&pair) {
            return;
        }
        // A recursive schema contains itself. It is equal if its other parts are equal, so the inner pair is assumed
        // equal.
        if self.open.contains(&pair) {
            self.assumed += 1;
            return;
        }
        let (found, assumed) = (self.found, self.assumed);
        let was_required = std::mem::take(&mut self.was_required);
        self.open.push(pair);
        self.pair(old, new, was_required);
        self.open.pop();
        // A result that used this assumption is not remembered, because the outer pair may still differ.
        if (found, assumed) == (self.found, self.assumed) && !self.is_over() {
            self.clean.insert(pair);
        }
    }

    fn pair(&mut self, old: &'a Value, new: &'a Value, was_required: bool) {
        let (one, other) = (View::of(self.roots.0, old), View::of(self.roots.1, new));
        if one.is_opaque || other.is_opaque {
            if !self.same(old, new) {
                self.add(Shift::Unknown, "it changed in a way that is not compared further");
            }
            return;
        }
        self.texts(&one, &other, was_required);
        match (one.is_never, other.is_never) {
            (true, true) => return,
            (true, false) => return self.add(Shift::Wider, "values are accepted where none were"),
            (false, true) => return self.add(Shift::Narrower, "no value fits now"),
            (false, false) => {}
        }
        if self.is_alternative(&one, &other) {
            return;
        }
        self.types(&one, &other);
        self.bounds(&one, &other);
        self.members(&one, &other);
        self.items(&one, &other);
        for keyword in ["anyOf", "oneOf", "allOf"] {
            self.branches(keyword, &one, &other);
        }
        for keyword in WHOLE {
            let (old, new) = (one.get(keyword), other.get(keyword));
            let is_same = match (old, new) {
                (None, None) => true,
                (Some(old), Some(new)) => self.same(old, new),
                _ => false,
            };
            if !is_same {
                self.below(&[keyword], |below| below.add(Shift::Unknown, "it changed, and is not compared further"));
            }
        }
    }

    /// Whether two schemas are identical, with references followed.
    fn same(&mut self, old: &'a Value, new: &'a Value) -> bool {
        self.equal(old, new, 0, &mut HashSet::new())
    }

    /// `met` contains the visited pairs of reference targets. A difference in one of them would have ended the search.
    fn equal(&mut self, old: &'a Value, new: &'a Value, depth: usize, met: &mut HashSet<(usize, usize)>) -> bool {
        self.places += 1;
        if depth > MAX_DEPTH {
            self.places = MAX_PLACES + 1;
        }
        if self.is_over() {
            return false;
        }
        match (old, new) {
            (Value::Object(one), Value::Object(other)) => {
                if one.len() != other.len() || !one.keys().all(|key| other.contains_key(key)) {
                    return false;
                }
                one.iter().all(|(key, old)| {
                    let Some(new) = other.get(key) else { return false };
                    if key != "$ref" {
                        return self.equal(old, new, depth + 1, met);
                    }
                    match (resolve(self.roots.0, old), resolve(self.roots.1, new)) {
                        (Some(old), Some(new)) => {
                            !met.insert((address(old), address(new))) || self.equal(old, new, depth + 1, met)
                        }
                        (None, None) => old == new,
                        _ => false,
                    }
                })
            }
            (Value::Array(one), Value::Array(other)) => {
                one.len() == other.len() && one.iter().zip(other).all(|(old, new)| self.equal(old, new, depth + 1, met))
            }
            _ => old == new,
        }
    }

    /// Adds a difference at the current place.
    fn add(&mut self, shift: Shift, message: &str) {
        use LockVerdict::{Major, Minor, Patch};

        self.found += 1;
        let (verdict, mark, meaning) = match (self.usage, shift) {
            (_, Shift::Same) => (Patch, None, ""),
            (_, Shift::Text) => (Patch, Some(LockMark::Visible), ""),
            (_, Shift::Foreign) => (Patch, Some(LockMark::Review), " (unknown keyword)"),
            (Use::Output(_), _) if !self.is_shown() => (Patch, None, " (not shown)"),
            (_, Shift::Unknown) => (Major, Some(LockMark::Review), ""),
            (Use::Input, Shift::Narrower) => (Major, None, " (fewer arguments fit)"),
            (Use::Input, Shift::Wider) => (Minor, None, " (more arguments fit)"),
            (Use::Input, Shift::Other) => (Major, None, " (other arguments fit)"),
            (Use::Input, Shift::Default) => (Major, None, " (calls that leave it out mean something else)"),
            (Use::Output(_), Shift::Default) => (Patch, Some(LockMark::Visible), ""),
            (Use::Output(_), Shift::Narrower) => (Minor, None, " (fewer outputs are possible)"),
            (Use::Output(_), Shift::Wider) => (Major, None, " (more outputs are possible)"),
            (Use::Output(_), Shift::Other) => (Major, None, " (other outputs are possible)"),
            (_, Shift::Added) => (Minor, None, ""),
            (_, Shift::Removed) => (Major, None, ""),
        };
        if self.kept == MAX_CHANGES {
            self.beyond = self.beyond.max(Some(verdict));
            return;
        }
        self.kept += 1;
        let pointer = cut(&self.pointer, LONGEST_POINTER);
        self.changes.push(LockChange::new(pointer, verdict, mark, format!("{message}{meaning}")));
    }

    /// Whether the allowlist names this place, a place below it or a place above it.
    fn is_shown(&self) -> bool {
        let Use::Output(Some(allowed)) = self.usage else { return true };
        // `zip` ends with the shorter path, so a path covers the places above it and below it.
        let covers = |path: &String| path == "$" || path.split('.').zip(&self.path).all(|(one, other)| one == *other);
        !allowed.is_empty() && (self.path.is_empty() || allowed.iter().any(covers))
    }
}

/// Returns the address of a schema, which identifies it because the documents do not move.
fn address(schema: &Value) -> usize {
    std::ptr::from_ref(schema) as usize
}
