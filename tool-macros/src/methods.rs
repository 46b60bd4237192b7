//! [`Method`]: one method of a struct tool, its parameters classified.

use syn::{FnArg, Receiver, ReceiverKind, ReturnType, Signature, Type, TypeReference};

use crate::model::peel;

/// The methods that the runtime calls, without mistakes.
pub(crate) struct Called {
    pub(crate) run: Method,
    pub(crate) reconcile: Option<Method>,
    pub(crate) precondition: Option<Method>,
}

/// One of these methods.
pub(crate) struct Method {
    pub(crate) sig: Signature,
    /// The parameters after `self`, in the author's order.
    pub(crate) parameters: Vec<Passed>,
    pub(crate) output: Type,
}

/// A value that the method is called with.
pub(crate) enum Passed {
    /// The context of the call: `&Call<Self>` or `&ToolContext`.
    Call,
    /// A capability or a connection: the type behind the `&`.
    Injected(Box<Type>),
}

impl Method {
    /// Returns `None` if the signature breaks a rule, which reports it.
    pub(crate) fn new(sig: &Signature) -> Option<Self> {
        Self::with(sig, passed)
    }

    /// As [`new`](Self::new), for `precondition`. Its call does not begin, so its context is borrowed like a capability
    /// that only reads.
    pub(crate) fn reading(sig: &Signature) -> Option<Self> {
        Self::with(sig, |reference| Passed::Injected(Box::new(peel(&reference.elem).clone())))
    }

    fn with(sig: &Signature, passed: impl Fn(&TypeReference) -> Passed) -> Option<Self> {
        let ReturnType::Type(_, output) = &sig.output else { return None };
        let mut inputs = sig.inputs.iter();
        let Some(FnArg::Receiver(Receiver { kind: ReceiverKind::Value, .. })) = inputs.next() else { return None };
        let parameters = inputs.map(|input| match input {
            FnArg::Typed(typed) => borrowed(&typed.ty).map(&passed),
            FnArg::Receiver(_) => None,
        });
        Some(Self { parameters: parameters.collect::<Option<_>>()?, output: (**output).clone(), sig: sig.clone() })
    }

    /// The types of injected values, without their `&`, in order.
    pub(crate) fn injected(&self) -> impl Iterator<Item = &Type> {
        self.parameters.iter().filter_map(|parameter| match parameter {
            Passed::Injected(target) => Some(&**target),
            Passed::Call => None,
        })
    }
}

/// The reference that a parameter is.
pub(crate) fn borrowed(ty: &Type) -> Option<&TypeReference> {
    match peel(ty) {
        Type::Reference(reference) => Some(reference),
        _ => None,
    }
}

/// The context has two names. Behind any other name it is bound like a capability, and the value is the same.
pub(crate) fn passed(reference: &TypeReference) -> Passed {
    let target = peel(&reference.elem);
    match target {
        Type::Path(path)
            if path.path.segments.last().is_some_and(|last| last.ident == "Call" || last.ident == "ToolContext") =>
        {
            Passed::Call
        }
        _ => Passed::Injected(Box::new(target.clone())),
    }
}
