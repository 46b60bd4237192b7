//! [`Registration`]: the value that an expansion submits for the catalog.

use std::fmt;

use crate::component::Tool;
use crate::component::declaration::Declaration;
use crate::registration::Described;
use crate::registration::shim::Types;
use crate::tool::Location;

/// The value that `#[tool]` submits to `inventory`: constants and function pointers.
#[derive(Clone, Copy)]
pub struct Registration {
    pub(crate) meta: &'static Declaration,
    types: &'static Types,
}

impl Registration {
    /// Returns the registration of a tool.
    #[must_use]
    pub const fn of<T: Tool>() -> Self {
        Self { meta: &T::DECLARATION, types: const { &Types::of::<T>() } }
    }

    pub(crate) fn describe(&self) -> Described {
        self.types.describe(self.meta)
    }

    /// Returns the place of the tool in its source.
    #[must_use]
    pub const fn location(&self) -> Location {
        self.meta.location
    }
}

inventory::collect!(Registration);

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").field("name", &self.meta.name).finish_non_exhaustive()
    }
}
