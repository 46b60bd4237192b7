//! [`Limits`]: the maximum length and depth of JSON text.

/// The maximum of every depth limit, so that parsing, validating and dropping a tree never exhausts the stack.
pub(crate) const MAX_DEPTH: usize = 128;

/// The maximum length and depth of JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of bytes, including white space.
    pub bytes: usize,
    /// The maximum depth of nested arrays and objects, 128 at most.
    pub depth: usize,
}

impl Limits {
    /// The limits for JSON that this crate wrote: any length, and 128 levels.
    pub const UNBOUNDED: Self = Self { bytes: usize::MAX, depth: MAX_DEPTH };

    /// Like [`UNBOUNDED`](Self::UNBOUNDED), plus the levels that a record adds around its values.
    pub(super) const RECORD: Self = Self { bytes: usize::MAX, depth: MAX_DEPTH + 8 };

    pub(super) fn at_most(self) -> Self {
        Self { depth: self.depth.min(MAX_DEPTH), ..self }
    }
}

impl Default for Limits {
    /// The default is 8 KiB and 64 levels.
    fn default() -> Self {
        Self { bytes: 8192, depth: 64 }
    }
}
