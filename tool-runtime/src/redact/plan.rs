//! [`Plan`]: an allowlist as a tree, one node per object that a value passes on its way to a leaf.

use serde_json::Value;

use crate::redact::leaf::Leaf;

/// What may be written at one place of a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Plan {
    /// A scalar, or an array of scalars.
    Leaf(Leaf),
    /// An object of which some members may be written.
    Object {
        /// Sorted by name.
        members: Vec<(Box<str>, Plan)>,
        /// The plan for the values of a map.
        any: Option<Box<Plan>>,
        /// The schema allows only an object here, inside as many arrays; `None` if it allows more, or is unknown.
        arrays: Option<u8>,
        /// Bit set of required members, by index; members past the 64th are not checked.
        required: u64,
    },
}

impl Plan {
    /// Reads allowlists. `$` is the whole output, `*` any member; segments are joined by dots.
    pub(super) fn of<'a>(paths: impl Iterator<Item = &'a str>) -> Self {
        let mut root = Self::empty();
        for path in paths {
            if path == "$" {
                return Self::Leaf(Leaf::ANY);
            }
            root.insert(path.split('.'));
        }
        root
    }

    fn empty() -> Self {
        Self::Object { members: Vec::new(), any: None, arrays: None, required: 0 }
    }

    fn insert<'a>(&mut self, mut segments: impl Iterator<Item = &'a str>) {
        let Some(segment) = segments.next() else {
            *self = Self::Leaf(Leaf::ANY);
            return;
        };
        // A shorter path named a leaf here, and a leaf has no members.
        let Self::Object { members, any, .. } = self else { return };
        let child = if segment == "*" {
            any.get_or_insert_with(|| Box::new(Self::empty()))
        } else {
            match members.binary_search_by(|(name, _)| (**name).cmp(segment)) {
                Ok(at) => &mut members[at].1,
                Err(at) => {
                    // Most have one or two, and a catalog keeps thousands of plans.
                    members.reserve_exact(1);
                    members.insert(at, (segment.into(), Self::empty()));
                    &mut members[at].1
                }
            }
        };
        child.insert(segments);
    }

    /// Attaches the schema's simple type and bound checks to the leaves.
    pub(super) fn bind(&mut self, schema: &Value) {
        match self {
            Self::Leaf(leaf) => *leaf = Leaf::of(schema).unwrap_or(Leaf::ANY),
            // Arrays are passed through.
            Self::Object { .. } if schema.get("items").is_some() => {
                if schema["type"] == "array" {
                    self.bind(&schema["items"]);
                    if let Self::Object { arrays: Some(arrays), .. } = self {
                        *arrays = arrays.saturating_add(1);
                    }
                }
            }
            Self::Object { members, any, arrays, required } => {
                *arrays = (schema["type"] == "object").then_some(0);
                if let Some(names) = schema.get("required").and_then(Value::as_array).filter(|_| arrays.is_some()) {
                    let is_required = |name: &str| names.iter().any(|one| one == name);
                    let places = members.iter().take(64).enumerate().filter(|(_, (name, _))| is_required(name));
                    *required = places.fold(0, |mask, (at, _)| mask | 1 << at);
                }
                for (name, plan) in members {
                    if let Some(schema) = schema.get("properties").and_then(|all| all.get(&**name)) {
                        plan.bind(schema);
                    }
                }
                if let (Some(plan), Some(schema)) = (any, schema.get("additionalProperties")) {
                    plan.bind(schema);
                }
            }
        }
    }

    /// The plan for a member, and its place among the named ones; `None` if it may not be written.
    pub(super) fn member(&self, name: &str) -> Option<(&Self, Option<usize>)> {
        match self {
            Self::Leaf(_) => None,
            Self::Object { members, any, .. } => match members.binary_search_by(|(known, _)| (**known).cmp(name)) {
                Ok(at) => Some((&members[at].1, Some(at))),
                Err(_) => Some((any.as_deref()?, None)),
            },
        }
    }
}
