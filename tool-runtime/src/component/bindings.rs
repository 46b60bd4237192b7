//! [`Bindings`]: the values that the runner bound for one call.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

use crate::call::ToolContext;
use crate::capability::{Cap, Capabilities, Requirement, bound};
use crate::tool::ToolEffect;

/// The values that one call may borrow. Only the runner creates it.
pub struct Bindings<'a> {
    /// The requirements that the tool had when its catalog was built. Nothing else is injected.
    pub(crate) granted: &'a [Requirement],
    pub(crate) capabilities: &'a Capabilities,
    /// The capabilities that the client of this call offers. They take precedence over `capabilities`.
    pub(crate) client: Option<&'a Capabilities>,
    /// Each value is an `Arc<Connection<C>>`, under the type id of `Connection<C>`.
    pub(crate) connections: &'a [(TypeId, Arc<dyn Any + Send + Sync>)],
    pub(crate) context: ToolContext,
    /// The handle to the calling run, for a graph (an agent or a script that runs as a tool) or for the tool search.
    /// `None` for every other tool.
    pub(crate) host: Option<Arc<dyn Any + Send + Sync>>,
}

impl Bindings<'_> {
    /// Returns the capability `T`, if it is bound. The compiler checks that `T` may be injected.
    pub(crate) fn get<T: ?Sized + 'static>(&self) -> Option<Cap<T>> {
        self.find(TypeId::of::<T>())?.get::<Arc<T>>().cloned().map(bound)
    }

    /// Returns the value for a type that the tool borrows. `None` if the type is not granted or not bound.
    pub(crate) fn find(&self, wanted: TypeId) -> Option<Bound> {
        if !self.granted.iter().any(|requirement| requirement.type_id == wanted) {
            return None;
        }
        if wanted == TypeId::of::<ToolContext>() {
            return Some(Bound::Context(Arc::new(self.context.share())));
        }
        self.shared(wanted).map(Bound::Shared)
    }

    /// Returns the values whose effect is `read_only`, which the tool may use before its call is approved.
    pub(crate) fn read_only(&self) -> Capabilities {
        let mut capabilities = Capabilities::new();
        for requirement in self.granted.iter().filter(|requirement| requirement.effect == ToolEffect::ReadOnly) {
            let value: Arc<dyn Any + Send + Sync> = match self.find(requirement.type_id) {
                Some(Bound::Shared(value)) => value,
                Some(Bound::Context(context)) => Arc::new(context),
                None => continue,
            };
            capabilities.bind(requirement.type_id, requirement.name, value);
        }
        capabilities
    }

    /// Returns the bound adapter or connection for a type: an `Arc<T>`.
    pub(crate) fn shared(&self, wanted: TypeId) -> Option<Arc<dyn Any + Send + Sync>> {
        let connection = self.connections.iter().find(|(id, _)| *id == wanted).map(|(_, connection)| connection);
        let client = || self.client.and_then(|client| client.get(wanted));
        connection.or_else(client).or_else(|| self.capabilities.get(wanted)).cloned()
    }
}

/// A type-erased bound value: the `Arc<T>` for a type `T` that the tool borrows.
pub(crate) enum Bound {
    Shared(Arc<dyn Any + Send + Sync>),
    Context(Arc<ToolContext>),
}

impl Bound {
    pub(crate) fn get<A: 'static>(&self) -> Option<&A> {
        match self {
            Self::Shared(value) => value.downcast_ref(),
            Self::Context(context) => (context as &dyn Any).downcast_ref(),
        }
    }
}

impl fmt::Debug for Bindings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bindings(..)")
    }
}
