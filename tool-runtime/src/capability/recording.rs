//! [`Recorder`]: notes which methods of its capabilities a call uses, for tests.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::capability::injected::Injected;
use crate::capability::requirement::Requirement;

/// Records the methods of one borrowed capability that a call uses. `#[capability]` writes an adapter around it, unless
/// the methods of the trait are not all in its block: it builds on another capability, or an attribute may change them.
#[derive(Clone)]
pub struct Recorder {
    note: Arc<Note>,
    has_arguments: bool,
}

/// Takes the name of a method and the text of its arguments.
type Note = dyn Fn(&'static str, Option<Vec<String>>) + Send + Sync;

impl Recorder {
    pub(crate) fn new(
        has_arguments: bool,
        note: impl Fn(&'static str, Option<Vec<String>>) + Send + Sync + 'static,
    ) -> Self {
        Self { note: Arc::new(note), has_arguments }
    }

    /// Notes the call of a method. Its arguments are written only if the test wants them.
    pub fn note(&self, method: &'static str, arguments: impl FnOnce() -> Vec<String>) {
        (self.note)(method, self.has_arguments.then(arguments));
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recorder(..)")
    }
}

/// A bound value without its type: an `Arc<T>`.
type Bound = Arc<dyn Any + Send + Sync>;

/// Puts a recording adapter around a bound value; `None` if the methods of its trait are not known.
pub(crate) type Recording = fn(&Bound, &Recorder) -> Option<Bound>;

/// The [`Recording`] of a borrowed type.
pub(super) fn recording<T: Injected + ?Sized>(bound: &Bound, recorder: &Recorder) -> Option<Bound> {
    let adapter = bound.downcast_ref::<Arc<T>>()?;
    Some(Arc::new(T::recording(Arc::clone(adapter), recorder)?))
}

impl Requirement {
    /// Puts a recording adapter around the value that is bound for this requirement, if its methods are known.
    pub(crate) fn recorded(&self, bound: &Bound, recorder: &Recorder) -> Option<Bound> {
        (self.recording)(bound, recorder)
    }
}
