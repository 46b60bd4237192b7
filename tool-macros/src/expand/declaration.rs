//! The constants of a tool, and the implementation of the runtime's hidden trait.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};

use crate::attr::{Hook, NoSchemaMode, Reach};
use crate::checked::{Checked, Execution, Form, Schema};
use crate::expand::spans::at;

/// `impl Tool for ..`. The compiler reports a component that is missing or has an unusable output at the tokens of
/// `ty`.
pub(super) fn tool_impl(tool: &Checked, ty: &TokenStream) -> TokenStream {
    let effect = effect(tool.effect);
    let answer = match &tool.execution {
        Execution::Server => quote!(()),
        Execution::Client { answer, .. } => answer.to_token_stream(),
    };
    let declaration = declaration(tool);
    let (generator, schema) = match tool.schema {
        Schema::Derived => (
            quote!(generator),
            quote!(::core::option::Option::Some(<__Arguments as __rt::schemars::JsonSchema>::json_schema(generator))),
        ),
        Schema::None(_) => (quote!(_), quote!(::core::option::Option::None)),
    };
    let validate = tool.validate.as_ref().map(|hook| {
        let call = hook_call(tool, hook);
        quote! {
            fn validate(&self) -> ::core::result::Result<(), __rt::Violation> {
                #call
            }
        }
    });
    quote! {
        #[automatically_derived]
        impl __rt::Tool for #ty {
            type Effect = #effect;
            type Answer = #answer;
            #declaration
            fn input_schema(
                #generator: &mut __rt::schemars::SchemaGenerator,
            ) -> ::core::option::Option<__rt::schemars::Schema> {
                #schema
            }
            #validate
        }
    }
}

/// `impl Named for ..`, and the registration of the tool that it names.
pub(super) fn named(marker: &impl ToTokens, ty: &TokenStream) -> TokenStream {
    quote! {
        #[automatically_derived]
        impl __rt::Named for #marker {
            fn visit<V: __rt::Visitor>(visitor: V) -> V::Answer {
                visitor.visit::<#ty>()
            }
        }
        __rt::inventory::submit! { __rt::Registration::of::<#ty>() }
    }
}

/// The effect as a type.
pub(super) fn effect(effect: Reach) -> TokenStream {
    match effect {
        Reach::ReadOnly => quote!(__rt::ReadOnly),
        Reach::StateChange => quote!(__rt::StateChange),
        Reach::External => quote!(__rt::ExternalSideEffect),
    }
}

fn declaration(tool: &Checked) -> TokenStream {
    let Checked { name, summary, redact, model, tags, idempotent, .. } = tool;
    let title = option(tool.title.as_ref());
    let description = tool.docs.to_expr();
    let timeout = option(tool.timeout.map(|timeout| {
        let millis = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        quote!(::core::time::Duration::from_millis(#millis))
    }));
    let max_result_bytes = option(tool.max_result_bytes.as_ref());
    let (execution, prepare) = match &tool.execution {
        Execution::Server => (quote!(Server), &[][..]),
        Execution::Client { prepare, .. } => (quote!(Client), &prepare[..]),
    };
    let require_any = tool.require_any.iter().filter_map(|index| tool.arguments.get(*index)).map(|one| &one.wire);
    let evidence = tool.arguments.iter().filter_map(|argument| {
        let (wire, lister) = (&argument.wire, argument.evidence.as_ref()?);
        Some(quote!((#wire, #lister)))
    });
    let sensitive = tool.arguments.iter().filter(|argument| argument.is_sensitive).map(|argument| &argument.wire);
    let no_schema = option(match tool.schema {
        Schema::Derived => None,
        Schema::None(NoSchemaMode::RejectEffects) => Some(quote!(__rt::NoSchemaMode::RejectEffects)),
        Schema::None(NoSchemaMode::ApproveEach) => Some(quote!(__rt::NoSchemaMode::ApproveEach)),
    });
    quote! {
        const DECLARATION: __rt::Declaration = __rt::Declaration {
            name: #name,
            title: #title,
            summary: &[#(#summary),*],
            description: #description,
            redact: &[#(#redact),*],
            model: &[#(#model),*],
            prepare: &[#(#prepare),*],
            tags: &[#(#tags),*],
            timeout: #timeout,
            max_result_bytes: #max_result_bytes,
            execution: __rt::Execution::#execution,
            idempotent: #idempotent,
            require_any: &[#(#require_any),*],
            evidence: &[#(#evidence),*],
            sensitive: &[#(#sensitive),*],
            no_schema: #no_schema,
            location: __rt::location(
                ::core::module_path!(),
                ::core::file!(),
                ::core::line!(),
                ::core::column!(),
            ),
        };
    }
}

fn option(value: Option<impl ToTokens>) -> TokenStream {
    value.map_or_else(|| quote!(::core::option::Option::None), |value| quote!(::core::option::Option::Some(#value)))
}

/// The call of the author's hook, at its path.
fn hook_call(tool: &Checked, hook: &Hook) -> TokenStream {
    let Hook { path, arguments } = hook;
    let place = at(path);
    let passed: Vec<TokenStream> = match (arguments, &tool.form) {
        (Some(listed), _) => {
            let passed = listed.iter().map(|argument| {
                let (star, name) = (&argument.star, &argument.name);
                star.map_or_else(|| quote!(&self.#name), |_| quote!(self.#name))
            });
            passed.collect()
        }
        (None, Form::Struct(_)) => vec![quote_spanned!(place=> self)],
        (None, Form::Function(_)) => {
            let fields = tool.arguments.iter().map(|argument| {
                let mut field = argument.ident.clone();
                field.set_span(place);
                quote_spanned!(place=> &self.#field)
            });
            fields.collect()
        }
    };
    quote_spanned!(place=> #path(#(#passed),*))
}
