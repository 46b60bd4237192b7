//! Support for the adapters that record the use of capabilities: the macro that keeps them only in builds with the
//! feature `testing`, and the text of an argument.

use std::fmt::Debug;

/// Emits the adapters that record the use of capabilities, in a build with the feature `testing`.
#[cfg(feature = "testing")]
#[doc(hidden)]
#[macro_export]
macro_rules! __recording {
    ($($item:tt)*) => { $($item)* };
}

/// Drops the adapters that record the use of capabilities, in a build without the feature `testing`.
#[cfg(not(feature = "testing"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __recording {
    ($($item:tt)*) => {};
}

/// Probes an argument of a method.
#[derive(Debug)]
pub struct DebugProbe<'a, T>(pub &'a T);

impl<T: Debug> DebugProbe<'_, T> {
    /// Returns the argument as `Debug` prints it.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// The text of an argument without `Debug`.
pub trait NotDebug {
    /// Returns `_`.
    #[must_use]
    fn text(&self) -> String {
        "_".to_owned()
    }
}

impl<T> NotDebug for DebugProbe<'_, T> {}
