//! [`Registration`]: what an expansion hands to the catalog.

use std::fmt;

use crate::component::Tool;
use crate::component::declaration::Declaration;
use crate::registration::Described;
use crate::registration::shim::describe;
use crate::tool::Location;

/// What `#[tool]` hands to `inventory`: the constants and one function pointer.
#[derive(Clone, Copy)]
pub struct Registration {
    pub(crate) meta: &'static Declaration,
    pub(crate) describe: fn() -> Described,
}

impl Registration {
    /// Returns the registration of a tool.
    #[must_use]
    pub const fn of<T: Tool>() -> Self {
        Self { meta: &T::DECLARATION, describe: describe::<T> }
    }

    /// Returns where the tool is written.
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
