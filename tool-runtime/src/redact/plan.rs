//! [`Plan`]: an allowlist as a tree. Each node stands for an object on the path to a leaf.

use serde_json::Value;

use crate::json::quote;
use crate::redact::leaf::Leaf;

/// The content that may be written at one place of a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Plan {
    /// A scalar, or an array of scalars.
    Leaf(Leaf),
    /// An object with some members that may be written.
    Object {
        /// The members, sorted by name.
        members: Vec<Member>,
        /// The index of the member that the allowlist names first.
        first: usize,
        /// The plan for the values of a map.
        any: Option<Box<Plan>>,
        /// The number of arrays around the object, if the schema allows nothing else here. `None` otherwise.
        arrays: Option<u8>,
        /// A bit set of the required members, by index. Members past the 64th are not checked.
        required: u64,
    },
}

/// A member that may be written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Member {
    pub(super) name: Box<str>,
    pub(super) plan: Plan,
    /// `,"name":`, ready to be written.
    pub(super) quoted: Box<str>,
    /// The position of the name in the allowlist.
    order: usize,
    /// The index of the member that the allowlist names next.
    pub(super) next: usize,
}

impl Member {
    fn new(name: &str, order: usize) -> Self {
        let mut quoted = ",".to_owned();
        quote(&mut quoted, name);
        quoted.push(':');
        Self { name: name.into(), plan: Plan::empty(), quoted: quoted.into(), order, next: 0 }
    }
}

impl Plan {
    /// Compiles the paths of allowlists. `$` is the whole output, `*` any member; dots join the segments.
    pub(super) fn of<'a>(paths: impl Iterator<Item = &'a str>) -> Self {
        let mut root = Self::empty();
        for path in paths {
            if path == "$" {
                return Self::Leaf(Leaf::ANY);
            }
            root.insert(path.split('.'));
        }
        root.link();
        root
    }

    /// Links each member to the next one of the allowlist, because most allowlists have the order of the fields.
    fn link(&mut self) {
        let Self::Object { members, any, first, .. } = self else { return };
        any.iter_mut().for_each(|plan| plan.link());
        members.iter_mut().for_each(|member| member.plan.link());
        let mut places: Vec<_> = (0..members.len()).collect();
        places.sort_by_key(|at| members[*at].order);
        *first = places.first().copied().unwrap_or_default();
        for (at, next) in places.iter().zip(places.iter().cycle().skip(1)) {
            members[*at].next = *next;
        }
    }

    fn empty() -> Self {
        Self::Object { members: Vec::new(), first: 0, any: None, arrays: None, required: 0 }
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
            match members.binary_search_by(|member| (*member.name).cmp(segment)) {
                Ok(at) => &mut members[at].plan,
                Err(at) => {
                    let member = Member::new(segment, members.len());
                    // Most plans have one or two members, and a catalog keeps thousands of plans.
                    members.reserve_exact(1);
                    members.insert(at, member);
                    &mut members[at].plan
                }
            }
        };
        child.insert(segments);
    }

    /// Attaches the schema's simple type and bound checks to the leaves.
    pub(super) fn bind(&mut self, schema: &Value) {
        match self {
            Self::Leaf(leaf) => *leaf = Leaf::of(schema).unwrap_or(Leaf::ANY),
            // A plan has no nodes for arrays.
            Self::Object { .. } if schema.get("items").is_some() => {
                if schema["type"] == "array" {
                    self.bind(&schema["items"]);
                    if let Self::Object { arrays: Some(arrays), .. } = self {
                        *arrays = arrays.saturating_add(1);
                    }
                }
            }
            Self::Object { members, any, arrays, required, .. } => {
                *arrays = (schema["type"] == "object").then_some(0);
                if let Some(names) = schema.get("required").and_then(Value::as_array).filter(|_| arrays.is_some()) {
                    let is_required = |name: &str| names.iter().any(|one| one == name);
                    let places = members.iter().take(64).enumerate().filter(|(_, member)| is_required(&member.name));
                    *required = places.fold(0, |mask, (at, _)| mask | 1 << at);
                }
                for Member { name, plan, .. } in members {
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

    /// Returns the plan of a member; `None` if it may not be written.
    pub(super) fn variant(&self, name: &str) -> Option<&Self> {
        self.member(name, 0).map(|found| match found {
            MemberMatch::Named(_, member) => &member.plan,
            MemberMatch::Any(plan) => plan,
        })
    }

    /// Finds a member; `None` if it may not be written. `expected` is the index to try first, which is right if the
    /// fields come in the order of the allowlist.
    #[inline]
    pub(super) fn member(&self, name: &str, expected: usize) -> Option<MemberMatch<'_>> {
        let Self::Object { members, .. } = self else { return None };
        match members.get(expected) {
            Some(member) if *member.name == *name => Some(MemberMatch::Named(expected, member)),
            _ => self.search(name),
        }
    }

    fn search(&self, name: &str) -> Option<MemberMatch<'_>> {
        let Self::Object { members, any, .. } = self else { return None };
        match members.binary_search_by(|member| (*member.name).cmp(name)) {
            Ok(at) => members.get(at).map(|member| MemberMatch::Named(at, member)),
            Err(_) => any.as_deref().map(MemberMatch::Any),
        }
    }

    /// Returns the index of the member to try first.
    pub(super) const fn first(&self) -> usize {
        if let Self::Object { first, .. } = self { *first } else { 0 }
    }
}

/// The part of a plan that allows a member.
pub(super) enum MemberMatch<'p> {
    /// The allowlist names the member. Contains its index.
    Named(usize, &'p Member),
    /// The allowlist has `*` here.
    Any(&'p Plan),
}
