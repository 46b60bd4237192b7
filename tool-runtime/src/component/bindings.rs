//! [`Bindings`]: what the runner bound for one call.

use std::any::{Any, TypeId};
use std::sync::Arc;

use crate::call::ToolContext;
use crate::capability::{Cap, Capabilities, Requirement};

/// Everything that one call may be lent. Made by the runner only.
pub struct Bindings<'a> {
    /// What the tool listed when its catalog was built: nothing else is lent.
    pub(crate) granted: &'a [Requirement],
    pub(crate) capabilities: &'a Capabilities,
    /// Each holds an `Arc<Connection<C>>`, found by the type id of `Connection<C>`.
    pub(crate) connections: &'a [(TypeId, Box<dyn Any + Send + Sync>)],
    pub(crate) context: &'a Arc<ToolContext>,
}

impl Bindings<'_> {
    /// What is borrowed as `&T`, if it was bound. Whether `T` may be borrowed at all is the compiler's question.
    pub(crate) fn get<T: ?Sized + 'static>(&self) -> Option<Cap<T>> {
        let wanted = TypeId::of::<T>();
        if !self.granted.iter().any(|requirement| requirement.type_id == wanted) {
            return None;
        }
        let found: &dyn Any = if wanted == TypeId::of::<ToolContext>() {
            self.context
        } else if let Some((_, connection)) = self.connections.iter().find(|(id, _)| *id == wanted) {
            connection.as_ref()
        } else {
            self.capabilities.get(wanted)?
        };
        found.downcast_ref::<Arc<T>>().cloned().map(Cap::new)
    }
}

impl std::fmt::Debug for Bindings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Bindings(..)")
    }
}
