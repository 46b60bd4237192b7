//! The tool as plain data: the facts from the attribute and the item, with the tokens at which errors are reported.

use proc_macro2::{Ident, Span, TokenStream};
use syn::spanned::Spanned;
use syn::{
    FnArg, GenericArgument, Generics, ItemStruct, LitStr, Pat, PathArguments, ReturnType, Signature, Type,
    TypeReference, Visibility,
};

use crate::attr::{self, ArgumentAttr, Container, ToolAttr};
use crate::docs::Docs;
use crate::errors::Errors;
use crate::item::Function;
use crate::names::plain;

/// One tool.
pub(crate) struct Tool {
    pub(crate) attr: ToolAttr,
    pub(crate) ident: Ident,
    pub(crate) vis: Visibility,
    pub(crate) docs: Docs,
    pub(crate) generics: Generics,
    pub(crate) container: Container,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) form: Form,
    /// Whether it is a function in an `impl` or a `trait` block, according to its source file.
    pub(crate) is_method: bool,
}

pub(crate) enum Form {
    Function(Box<Callable>),
    Struct(Box<ItemStruct>),
}

/// A function with its parameters classified.
pub(crate) struct Callable {
    /// The signature without the attributes that only the macro reads.
    pub(crate) sig: Signature,
    pub(crate) body: TokenStream,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) output: Option<Type>,
}

/// One parameter, in the author's order.
pub(crate) enum Parameter {
    /// From the model: an index into [`Tool::arguments`].
    Owned(usize),
    /// From the runtime.
    Borrowed(Box<Borrowed>),
    /// `self`, or a pattern instead of a name.
    Unusable(FnArg),
}

pub(crate) struct Borrowed {
    /// The parameter's name. `None` if it is a pattern.
    pub(crate) name: Option<Ident>,
    pub(crate) reference: TypeReference,
    /// The type behind the `&`, without parentheses.
    pub(crate) target: Type,
    pub(crate) attr: ArgumentAttr,
}

/// One argument from the model.
pub(crate) struct Argument {
    pub(crate) ident: Ident,
    pub(crate) ty: Type,
    pub(crate) wire: String,
    pub(crate) attr: ArgumentAttr,
}

impl Tool {
    pub(crate) fn of_function(attr: ToolAttr, item: Function, errors: &mut Errors) -> Self {
        let Function { attrs, vis, mut sig, body } = item;
        let container = attr::container(&attrs, errors);
        let mut arguments = Vec::new();
        let mut parameters = Vec::new();
        for input in &mut sig.inputs {
            parameters.push(parameter(input, &mut arguments, &container, errors));
        }
        let output = match &sig.output {
            ReturnType::Default => None,
            ReturnType::Type(_, ty) => Some((**ty).clone()),
        };
        Self {
            attr,
            ident: sig.ident.clone(),
            vis,
            docs: Docs::of(&container.kept),
            generics: sig.generics.clone(),
            container,
            arguments,
            form: Form::Function(Box::new(Callable { sig, body, parameters, output })),
            is_method: false,
        }
    }

    pub(crate) fn of_struct(attr: ToolAttr, mut item: ItemStruct, errors: &mut Errors) -> Self {
        let container = attr::container(&item.attrs, errors);
        item.attrs.retain(|attr| !attr::is_tool(attr));
        let mut arguments = Vec::new();
        for field in &item.fields {
            let Some(ident) = &field.ident else { continue };
            let attr = attr::argument(&field.attrs, false, errors);
            arguments.push(Argument::new(ident.clone(), field.ty.clone(), attr, &container));
        }
        Self {
            attr,
            ident: item.ident.clone(),
            vis: item.vis.clone(),
            docs: Docs::of(&container.kept),
            generics: item.generics.clone(),
            container,
            arguments,
            form: Form::Struct(Box::new(item)),
            is_method: false,
        }
    }

    pub(crate) fn argument(&self, name: &Ident) -> Option<&Argument> {
        self.arguments.iter().find(|argument| argument.is_called(name))
    }

    pub(crate) fn borrowed(&self) -> impl Iterator<Item = &Borrowed> {
        let parameters = match &self.form {
            Form::Function(function) => function.parameters.as_slice(),
            Form::Struct(_) => &[],
        };
        parameters.iter().filter_map(|parameter| match parameter {
            Parameter::Borrowed(borrowed) => Some(&**borrowed),
            _ => None,
        })
    }
}

fn parameter(
    input: &mut FnArg,
    arguments: &mut Vec<Argument>,
    container: &Container,
    errors: &mut Errors,
) -> Parameter {
    let FnArg::Typed(typed) = input else { return Parameter::Unusable(input.clone()) };
    let attr = attr::argument(&typed.attrs, true, errors);
    // `#[cfg]` is removed, too. A rule refuses it, and a missing parameter would cause a second error in the body.
    typed.attrs.clone_from(&attr.kept);
    if let Type::Reference(reference) = peel(&typed.ty) {
        let target = peel(&reference.elem).clone();
        let name = match &*typed.pat {
            Pat::Ident(pat) => Some(pat.ident.clone()),
            _ => None,
        };
        return Parameter::Borrowed(Box::new(Borrowed { name, reference: reference.clone(), target, attr }));
    }
    match &*typed.pat {
        Pat::Ident(pat) if pat.by_ref.is_none() && pat.subpat.is_none() => {
            arguments.push(Argument::new(pat.ident.clone(), (*typed.ty).clone(), attr, container));
            Parameter::Owned(arguments.len() - 1)
        }
        _ => Parameter::Unusable(input.clone()),
    }
}

impl Argument {
    fn new(ident: Ident, ty: Type, attr: ArgumentAttr, container: &Container) -> Self {
        let name = plain(&ident);
        let wire = match (attr.rename.value(), container.rename_all) {
            (Some(renamed), _) => renamed.value(),
            (None, Some(rule)) => rule.apply(&name),
            (None, None) => name,
        };
        Self { ident, ty, wire, attr }
    }

    pub(crate) fn is_called(&self, name: &Ident) -> bool {
        plain(&self.ident) == plain(name)
    }

    /// Returns the name of the tool that lists values of this argument.
    pub(crate) fn evidence(&self) -> Option<&LitStr> {
        self.attr.evidence.value()
    }
}

/// Returns a type without the parentheses and the invisible groups around it.
pub(crate) fn peel(mut ty: &Type) -> &Type {
    loop {
        ty = match ty {
            Type::Paren(inner) => &inner.elem,
            Type::Group(inner) => &inner.elem,
            _ => return ty,
        };
    }
}

/// Returns the span for errors about an output: its first type argument if there is one, or the whole type.
pub(crate) fn output_span(output: &Type) -> Span {
    let shown = last_segment(output).and_then(|(_, mut types)| types.next());
    shown.unwrap_or(output).span()
}

/// Returns whether a type is spelled `Option<Option<..>>`: a field that distinguishes `null` from absence.
///
/// serde needs an attribute on a field that may be absent. The macro writes it before types are known, so it can only
/// look at the spelling. The attribute selects `nullable`, whose signature checks the type. With a type alias, `null`
/// and absence both become `None`, as for every other `Option`.
pub(crate) fn is_nested_option(ty: &Type) -> bool {
    let inner = |ty| match last_segment(ty)? {
        (name, mut types) if name == "Option" => types.next(),
        _ => None,
    };
    inner(ty).and_then(inner).is_some()
}

/// Returns the last segment of a path and its type arguments.
fn last_segment(ty: &Type) -> Option<(&Ident, impl Iterator<Item = &Type>)> {
    let Type::Path(path) = peel(ty) else { return None };
    let segment = path.path.segments.last()?;
    let PathArguments::AngleBracketed(list) = &segment.arguments else { return None };
    let types = list.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    });
    Some((&segment.ident, types))
}
