//! Generated assertions about the author's types, for facts that only the compiler knows.

use std::collections::HashSet;

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::Type;

use crate::checked::{Checked, Execution, Form, Schema};
use crate::expand::declaration::effect;
use crate::expand::spans::{at, generated};
use crate::model::peel;

/// Returns `fn __assertions() { .. }`. It precedes the code that needs the asserted traits, so that its errors come
/// first.
pub(super) fn assertions(tool: &Checked) -> TokenStream {
    let arguments = of_arguments(tool);
    let output = match &tool.form {
        Form::Function(function) => described(&quote!(__Arguments), &function.output),
        Form::Struct(_) => {
            let name = generated(&tool.ident);
            let effect = effect(tool.effect);
            // This expansion does not see the `impl` block of a struct, so the compiler compares the effects.
            let allowed = quote_spanned! {at(&tool.ident)=>
                __rt::assert_allowed::<#effect, _>(&__rt::ComponentProbe::<#name>::HOLDS);
            };
            let described = described(&name.to_token_stream(), &tool.ident);
            quote!(#allowed #described)
        }
    };
    quote! {
        fn __assertions() {
            use __rt::Otherwise as _;
            #arguments
            #output
        }
    }
}

fn of_arguments(tool: &Checked) -> TokenStream {
    let mut tokens = TokenStream::new();
    let mut asserted = HashSet::new();
    // The type of several arguments is asserted once, at its first occurrence.
    let mut assert = |ty: &Type, assertion: &str| {
        if asserted.insert((assertion.to_owned(), ty.to_token_stream().to_string())) {
            let assertion = Ident::new(assertion, at(ty));
            tokens.extend(quote_spanned!(at(ty)=> __rt::#assertion::<#ty>();));
        }
    };
    for argument in &tool.arguments {
        match tool.schema {
            Schema::Derived => {
                // The name selects only the wording of the error; the trait decides whether there is one.
                assert(
                    &argument.ty,
                    if is_secret(&argument.ty) { "assert_secret_argument" } else { "assert_argument" },
                );
                if argument.default.is_some() {
                    assert(&argument.ty, "assert_default");
                }
            }
            Schema::None(_) => assert(&argument.ty, "assert_parsed_argument"),
        }
    }
    let required = tool.require_any.iter().filter_map(|index| tool.arguments.get(*index));
    // An argument with a default needs no `Option` to be absent.
    for argument in required.filter(|argument| argument.default.is_none()) {
        assert(&argument.ty, "assert_optional");
    }
    if let Execution::Client { answer, .. } = &tool.execution {
        tokens.extend(quote_spanned! {at(answer)=>
            __rt::assert_described::<#answer, { __rt::AnswerProbe::<#answer>::SAYS_SOMETHING }>();
        });
    }
    tokens
}

/// Asserts at `blame` that the output of the component `ty` has its own schema.
fn described(ty: &TokenStream, blame: &impl ToTokens) -> TokenStream {
    quote_spanned! {at(blame)=>
        __rt::assert_described::<#blame, { __rt::ComponentProbe::<#ty>::SAYS_SOMETHING }>();
    }
}

fn is_secret(ty: &Type) -> bool {
    let Type::Path(path) = peel(ty) else { return false };
    path.path.segments.last().is_some_and(|last| last.ident == "Secret")
}
