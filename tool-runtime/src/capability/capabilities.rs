//! [`Capabilities`]: the adapters that an application binds to capability traits when it starts.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::capability::injected::{Bind, Injected, OnlyReads};
use crate::error::ToolError;

/// The application's implementations (adapters) of the capability traits. If a trait is bound more than once, the last
/// binding wins.
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
/// let dice = Capabilities::new().with::<dyn Dice>(Arc::new(Loaded));
/// // Each crate of adapters may bring its own.
/// let capabilities = Capabilities::new().merge(dice);
/// assert_eq!(format!("{capabilities:?}"), r#"Capabilities(["Dice"])"#);
/// ```
#[derive(Default, Clone)]
pub struct Capabilities {
    bound: HashMap<TypeId, Binding>,
}

#[derive(Clone)]
struct Binding {
    name: &'static str,
    /// An `Arc<T>`, found by the type id of `T`.
    value: Arc<dyn Any + Send + Sync>,
}

/// The trait bound of [`Capabilities::with`], with a compiler message for a forgotten turbofish.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is an adapter, not a capability",
    label = "adapters are bound to a `#[capability]` trait",
    note = "name the trait: `.with::<dyn Trait>(Arc::new(adapter))`"
)]
pub trait Bindable: Injected {
    /// The same type as [`Injected::Borrowing`], without the compiler message of [`Injected`].
    type Borrowing;
}

#[diagnostic::do_not_recommend]
impl<T: Injected + ?Sized> Bindable for T {
    type Borrowing = <T as Injected>::Borrowing;
}

impl Capabilities {
    /// Returns an empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Binds an adapter to a capability trait: `.with::<dyn Clock>(Arc::new(SystemClock))`.
    #[must_use]
    pub fn with<T>(mut self, adapter: Arc<T>) -> Self
    where
        T: Bindable + ?Sized,
        <T as Bindable>::Borrowing: Bind<T>,
    {
        self.bound.insert(TypeId::of::<T>(), Binding { name: T::NAME, value: Arc::new(adapter) });
        self
    }

    /// Adds the bindings of `other`, which win over those of `self`.
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        self.bound.extend(other.bound);
        self
    }

    /// Returns a capability that only reads, for [`ToolComponent::precondition`](crate::ToolComponent::precondition).
    ///
    /// # Errors
    /// The capability is not bound, or the tool does not borrow it.
    pub fn read<C>(&self) -> Result<&C, ToolError>
    where
        C: Injected + ?Sized,
        C::Effect: OnlyReads<C>,
    {
        let bound = self.get(TypeId::of::<C>()).and_then(|value| value.downcast_ref::<Arc<C>>());
        bound.map(|value| &**value).ok_or_else(|| {
            ToolError::internal(format!("`{}` is not bound, or not among the capabilities of the tool", C::NAME))
        })
    }

    /// Binds a type-erased `Arc<T>` under the type id of `T`.
    pub(crate) fn bind(&mut self, id: TypeId, name: &'static str, value: Arc<dyn Any + Send + Sync>) {
        self.bound.insert(id, Binding { name, value });
    }

    pub(crate) fn get(&self, wanted: TypeId) -> Option<&Arc<dyn Any + Send + Sync>> {
        self.bound.get(&wanted).map(|binding| &binding.value)
    }
}

impl fmt::Debug for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<_> = self.bound.values().map(|binding| binding.name).collect();
        names.sort_unstable();
        f.debug_tuple("Capabilities").field(&names).finish()
    }
}
