//! [`Capabilities`]: the adapters that an application binds, once, in its composition root.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::capability::injected::Injected;

/// The adapters behind the capability traits. The last binding of a trait wins.
///
/// ```
/// use std::sync::Arc;
/// use tool_runtime::{Capabilities, capability};
///
/// /// Rolls a die.
/// #[capability(effect = read_only)]
/// trait Dice { fn roll(&self) -> u8; }
///
/// struct Loaded;
/// impl Dice for Loaded { fn roll(&self) -> u8 { 6 } }
///
/// let capabilities = Capabilities::new().with::<dyn Dice>(Arc::new(Loaded));
/// ```
#[derive(Default)]
pub struct Capabilities {
    bound: HashMap<TypeId, Binding>,
}

struct Binding {
    name: &'static str,
    value: Box<dyn Any + Send + Sync>,
}

impl Capabilities {
    /// Nothing bound yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Binds an adapter to a capability trait.
    #[must_use]
    pub fn with<T: Injected + ?Sized>(mut self, adapter: Arc<T>) -> Self {
        self.bound.insert(TypeId::of::<T>(), Binding { name: T::NAME, value: Box::new(adapter) });
        self
    }

    /// Adds the bindings of `other`, which win over those of `self`.
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        self.bound.extend(other.bound);
        self
    }

    pub(crate) fn get(&self, wanted: TypeId) -> Option<&(dyn Any + Send + Sync)> {
        self.bound.get(&wanted).map(|binding| binding.value.as_ref())
    }
}

impl fmt::Debug for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<_> = self.bound.values().map(|binding| binding.name).collect();
        names.sort_unstable();
        f.debug_tuple("Capabilities").field(&names).finish()
    }
}
