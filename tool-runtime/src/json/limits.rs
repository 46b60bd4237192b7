//! [`Limits`]: how long and how deep a string may be.

/// No limit goes beyond this depth, so that reading, validating and dropping a tree never exhausts a stack.
pub(crate) const MAX_DEPTH: usize = 128;

/// How large a string may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of text, white space included.
    pub bytes: usize,
    /// Nested arrays and objects; 128 at most.
    pub depth: usize,
}

impl Limits {
    /// For JSON that this crate wrote: any length, nested to 128 levels.
    pub const UNBOUNDED: Self = Self { bytes: usize::MAX, depth: MAX_DEPTH };

    /// As [`UNBOUNDED`](Self::UNBOUNDED), with the levels of a record around its values.
    pub(super) const RECORD: Self = Self { bytes: usize::MAX, depth: MAX_DEPTH + 8 };

    pub(super) fn at_most(self) -> Self {
        Self { depth: self.depth.min(MAX_DEPTH), ..self }
    }
}

impl Default for Limits {
    /// 8 KiB and 64 levels.
    fn default() -> Self {
        Self { bytes: 8192, depth: 64 }
    }
}
