//! What functions and structs expand to alike: the derives, the constants, the questions to the compiler.

use std::collections::HashSet;

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::Type;

use crate::attr::{Effect, NoSchemaMode};
use crate::expand::spans::at;
use crate::model::{Argument, Form, Tool, is_nested_option};

/// Where everything that an expansion names comes from.
pub(super) fn private(krate: Option<&syn::Path>) -> TokenStream {
    krate.map_or_else(|| quote!(::tool_runtime::__private1), |path| quote!(#path::__private1))
}

/// A path as serde and schemars take it.
fn path_text(path: &TokenStream) -> String {
    path.to_string().replace(' ', "")
}

/// The derives on a struct of arguments.
pub(super) fn derives(tool: &Tool) -> TokenStream {
    let private = private(tool.attr.krate.as_ref());
    let text = path_text(&private);
    let serde = format!("{text}::serde");
    let parser = quote! {
        #[derive(#private::serde::Deserialize)]
        #[serde(crate = #serde, deny_unknown_fields)]
    };
    if tool.attr.allow_no_schema.is_some() {
        return parser;
    }
    let schemars = format!("{text}::schemars");
    quote! {
        #[derive(#private::serde::Deserialize, #private::schemars::JsonSchema)]
        #[serde(crate = #serde, deny_unknown_fields)]
        #[schemars(crate = #schemars)]
    }
}

/// The attributes of an argument as a field; `default` is where its default function is.
pub(super) fn field_attributes(tool: &Tool, argument: &Argument, default: Option<&str>) -> TokenStream {
    let has_schema = tool.attr.allow_no_schema.is_none();
    // Without the derive nothing would read the attribute.
    let derived = argument.attr.derived.iter().filter(|attr| has_schema || !attr.path().is_ident("schemars"));
    let mut tokens = quote!(#(#derived)*);
    if argument.default_expr().is_some() {
        tokens.extend(quote!(#[serde(default = #default)]));
    }
    if is_nested_option(&argument.ty) {
        let private = path_text(&private(tool.attr.krate.as_ref()));
        let nullable = format!("{private}::nullable");
        tokens.extend(quote!(#[serde(deserialize_with = #nullable)]));
        if argument.attr.default.is_none() {
            // The second key keeps `"default": null` out of the schema.
            tokens.extend(quote!(#[serde(default, skip_serializing_if = "::core::option::Option::is_none")]));
        }
    }
    tokens
}

/// `const META: ..`
pub(super) fn meta(tool: &Tool) -> TokenStream {
    let attr = &tool.attr;
    let name = &attr.name;
    let title = option(attr.title.as_ref());
    let description = tool.docs.to_expr();
    let redact = attr.redact.iter().flatten();
    let model = &attr.model;
    let prepare = attr.prepare.iter().flat_map(|(_, paths)| paths);
    let tags = &attr.tags;
    let timeout = option(attr.timeout.map(|timeout| {
        let millis = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        quote!(::core::time::Duration::from_millis(#millis))
    }));
    let max_result_bytes = option(attr.max_result_bytes.as_ref());
    let execution = if attr.client.is_some() { quote!(Client) } else { quote!(Server) };
    let idempotent = attr.idempotent;
    let required = attr.require_any.iter().flat_map(|(_, listed)| listed);
    let require_any = required.filter_map(|name| tool.argument(name)).map(|argument| &argument.wire);
    let evidence = tool.arguments.iter().filter_map(|argument| {
        let (wire, lister) = (&argument.wire, argument.evidence()?);
        Some(quote!((#wire, #lister)))
    });
    let sensitive = tool.arguments.iter().filter(|one| one.attr.sensitive.is_some()).map(|one| &one.wire);
    let no_schema = option(attr.no_schema_mode.as_ref().map(|(_, mode)| match mode {
        NoSchemaMode::RejectEffects => quote!(__rt::NoSchemaMode::RejectEffects),
        NoSchemaMode::ApproveEach => quote!(__rt::NoSchemaMode::ApproveEach),
    }));
    quote! {
        const DECLARATION: __rt::Declaration = __rt::Declaration {
            name: #name,
            title: #title,
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

/// `impl Tool for ..`; `validate` is the author's hook, called. Where the tokens of `ty` stand, the compiler reports a
/// component that is missing or has an unusable output.
pub(super) fn tool_impl(tool: &Tool, ty: &TokenStream, validate: Option<TokenStream>) -> TokenStream {
    let effect = effect(tool.attr.effect);
    let answer = tool.attr.client_result.as_ref().map_or_else(|| quote!(()), |(_, answer)| quote!(#answer));
    let meta = meta(tool);
    let schema = if tool.attr.allow_no_schema.is_some() {
        quote! {
            fn input_schema(
                _: &mut __rt::schemars::SchemaGenerator,
            ) -> ::core::option::Option<__rt::schemars::Schema> {
                ::core::option::Option::None
            }
        }
    } else {
        quote! {
            fn input_schema(
                generator: &mut __rt::schemars::SchemaGenerator,
            ) -> ::core::option::Option<__rt::schemars::Schema> {
                ::core::option::Option::Some(<Self as __rt::schemars::JsonSchema>::json_schema(generator))
            }
        }
    };
    let validate = validate.map(|call| {
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
            #meta
            #schema
            #validate
        }
    }
}

/// The effect as a type.
pub(super) fn effect(effect: Option<Effect>) -> TokenStream {
    match effect {
        Some(Effect::StateChange) => quote!(__rt::StateChange),
        Some(Effect::External) => quote!(__rt::ExternalSideEffect),
        // Without an effect nothing is expanded.
        Some(Effect::ReadOnly) | None => quote!(__rt::ReadOnly),
    }
}

/// What only the compiler knows of the arguments, asked at their types.
pub(super) fn questions(tool: &Tool) -> TokenStream {
    let mut tokens = TokenStream::new();
    let mut asked = HashSet::new();
    // A type that several arguments have is asked about once, where it stands first.
    let mut ask = |ty: &Type, question: &str| {
        if !asked.insert((question.to_owned(), ty.to_token_stream().to_string())) {
            return TokenStream::new();
        }
        let question = Ident::new(question, at(ty));
        quote_spanned!(at(ty)=> __rt::#question::<#ty>();)
    };
    for argument in &tool.arguments {
        let has_schema = tool.attr.allow_no_schema.is_none();
        tokens.extend(ask(&argument.ty, if has_schema { "assert_argument" } else { "assert_parsed_argument" }));
        if argument.attr.default.is_some() && has_schema {
            tokens.extend(ask(&argument.ty, "assert_default"));
        }
    }
    for name in tool.attr.require_any.iter().flat_map(|(_, listed)| listed) {
        if let Some(argument) = tool.argument(name).filter(|argument| argument.attr.default.is_none()) {
            tokens.extend(ask(&argument.ty, "assert_optional"));
        }
    }
    if let Some((_, answer)) = &tool.attr.client_result {
        let place = at(answer);
        tokens.extend(quote_spanned! {place=>
            __rt::assert_described::<#answer, { __rt::AnswerProbe::<#answer>::SAYS_SOMETHING }>();
        });
    }
    tokens
}

/// Asks at `blame` whether the output of the component `ty` has a schema that says something.
pub(super) fn described(ty: &TokenStream, blame: &TokenStream) -> TokenStream {
    quote_spanned! {at(blame)=>
        __rt::assert_described::<#blame, { __rt::ComponentProbe::<#ty>::SAYS_SOMETHING }>();
    }
}

/// The call of the author's hook, at its path.
pub(super) fn validate(tool: &Tool) -> Option<TokenStream> {
    let path = tool.attr.validate.as_ref()?;
    let place = at(path);
    let arguments = match &tool.form {
        Form::Structure(_) => quote_spanned!(place=> self),
        Form::Function(_) => {
            let fields = tool.arguments.iter().map(|argument| {
                let mut field = argument.ident.clone();
                field.set_span(place);
                field
            });
            quote_spanned!(place=> #(&self.#fields),*)
        }
    };
    Some(quote_spanned!(place=> #path(#arguments)))
}

/// Registers at the name of the item.
pub(super) fn register(ty: &TokenStream) -> TokenStream {
    quote! {
        __rt::inventory::submit! { __rt::Registration::of::<#ty>() }
    }
}
