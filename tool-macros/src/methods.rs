//! [`Method`]: a method of a struct tool, with its parameters classified.

use syn::{FnArg, Receiver, ReceiverKind, ReturnType, Signature, Type, TypeReference};

use crate::model::peel;

/// The methods that the runtime calls. They have passed the rules.
pub(crate) struct Called {
    pub(crate) run: Method,
    pub(crate) reconcile: Option<Method>,
    pub(crate) precondition: Option<Method>,
}

/// A method that the runtime calls.
pub(crate) struct Method {
    pub(crate) sig: Signature,
    /// The parameters after `self`, in the author's order.
    pub(crate) parameters: Vec<Passed>,
    pub(crate) output: Type,
}

/// A value that generated code passes to the method.
pub(crate) enum Passed {
    /// The context of the call: `&Call<Self>` or `&ToolContext`.
    Call,
    /// A capability or a connection: the type behind the `&`.
    Injected(Box<Type>),
}

impl Method {
    /// Creates the method from a signature. `None` if the signature breaks a rule; the rule reports the mistake.
    pub(crate) fn new(sig: &Signature) -> Option<Self> {
        Self::with(sig, passed)
    }

    /// Like [`new`](Self::new), for `precondition`. It runs before the call begins, so its context is borrowed like a
    /// `read_only` capability.
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

/// Returns the type of a parameter if it is a reference.
pub(crate) fn borrowed(ty: &Type) -> Option<&TypeReference> {
    match peel(ty) {
        Type::Reference(reference) => Some(reference),
        _ => None,
    }
}

/// Classifies a borrowed parameter. The context is recognised by its two names. With another name, such as an alias, it
/// is injected like a capability, with the same value.
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
