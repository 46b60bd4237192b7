//! [`Plan`]: an allowlist as a tree, one node per object that a value passes on its way to a leaf.

/// What may be written at one place of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Plan {
    /// A scalar, or an array of scalars.
    Leaf,
    /// An object of which some members may be written.
    Object {
        /// Sorted by name.
        members: Vec<(Box<str>, Plan)>,
        /// The plan for the values of a map.
        any: Option<Box<Plan>>,
    },
}

impl Plan {
    /// Reads allowlists. `$` is the whole output, `*` any member; segments are joined by dots.
    pub(super) fn of<'a>(paths: impl Iterator<Item = &'a str>) -> Self {
        let mut root = Self::empty();
        for path in paths {
            if path == "$" {
                return Self::Leaf;
            }
            root.insert(path.split('.'));
        }
        root
    }

    fn empty() -> Self {
        Self::Object { members: Vec::new(), any: None }
    }

    fn insert<'a>(&mut self, mut segments: impl Iterator<Item = &'a str>) {
        let Some(segment) = segments.next() else {
            *self = Self::Leaf;
            return;
        };
        // A shorter path named a leaf here, and a leaf has no members.
        let Self::Object { members, any } = self else { return };
        let child = if segment == "*" {
            any.get_or_insert_with(|| Box::new(Self::empty()))
        } else {
            match members.binary_search_by(|(name, _)| (**name).cmp(segment)) {
                Ok(at) => &mut members[at].1,
                Err(at) => {
                    members.insert(at, (segment.into(), Self::empty()));
                    &mut members[at].1
                }
            }
        };
        child.insert(segments);
    }

    /// The plan for a member; nothing when it may not be written.
    pub(super) fn member(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Leaf => None,
            Self::Object { members, any } => match members.binary_search_by(|(known, _)| (**known).cmp(name)) {
                Ok(at) => Some(&members[at].1),
                Err(_) => any.as_deref(),
            },
        }
    }
}
