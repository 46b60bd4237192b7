//! [`Recorder`]: records which methods of its capabilities a call uses, for tests.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::capability::injected::Injected;
use crate::capability::requirement::Requirement;

/// Records the method calls on one borrowed capability. `#[capability]` generates an adapter that reports to it. It
/// generates none if the trait can have methods that the attribute does not see: if the trait extends another
/// capability, or has an attribute that may change its methods.
#[derive(Clone)]
pub struct Recorder {
    note: Arc<Note>,
    has_arguments: bool,
}

/// Receives the name of a called method and, if the test wants them, the texts of its arguments.
type Note = dyn Fn(&'static str, Option<Vec<String>>) + Send + Sync;

impl Recorder {
    pub(crate) fn new(
        has_arguments: bool,
        note: impl Fn(&'static str, Option<Vec<String>>) + Send + Sync + 'static,
    ) -> Self {
        Self { note: Arc::new(note), has_arguments }
    }

    /// Records a method call. `arguments` runs only if the test wants the arguments.
    pub fn note(&self, method: &'static str, arguments: impl FnOnce() -> Vec<String>) {
        (self.note)(method, self.has_arguments.then(arguments));
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recorder(..)")
    }
}

/// A type-erased bound value: an `Arc<T>`.
type Bound = Arc<dyn Any + Send + Sync>;

/// Wraps a bound value in a recording adapter. `None` if its trait has no such adapter.
pub(crate) type Recording = fn(&Bound, &Recorder) -> Option<Bound>;

/// The [`Recording`] of a borrowed type.
pub(super) fn recording<T: Injected + ?Sized>(bound: &Bound, recorder: &Recorder) -> Option<Bound> {
    let adapter = bound.downcast_ref::<Arc<T>>()?;
    Some(Arc::new(T::recording(Arc::clone(adapter), recorder)?))
}

impl Requirement {
    /// Wraps the value that is bound for this requirement in a recording adapter. `None` if its trait has no such
    /// adapter.
    pub(crate) fn recorded(&self, bound: &Bound, recorder: &Recorder) -> Option<Bound> {
        (self.recording)(bound, recorder)
    }
}
