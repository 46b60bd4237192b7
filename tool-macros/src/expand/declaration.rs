//! The constants of a tool, and the implementation of the runtime's hidden trait.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};

use crate::attr::{Hook, NoSchemaMode, Reach, Scope};
use crate::checked::{Checked, Execution, Form, Once, Schema};
use crate::expand::spans::at;

/// Returns `impl Tool for ..`. If the `ToolComponent` is missing or has an unusable output, the compiler reports it at
/// the tokens of `ty`.
pub(super) fn tool_impl(tool: &Checked, ty: &TokenStream) -> TokenStream {
    let effect = effect(tool.effect);
    let answer = match &tool.execution {
        Execution::Server => quote!(()),
        Execution::Client { answer, .. } => answer.to_token_stream(),
    };
    let declaration = declaration(tool);
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
            #validate
        }
    }
}

/// Returns `impl Named for ..`, and the registration of the tool.
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

/// Returns the type that stands for an effect.
pub(super) fn effect(effect: Reach) -> TokenStream {
    match effect {
        Reach::ReadOnly => quote!(__rt::ReadOnly),
        Reach::StateChange => quote!(__rt::StateChange),
        Reach::External => quote!(__rt::ExternalSideEffect),
    }
}

fn declaration(tool: &Checked) -> TokenStream {
    let Checked { name, redact, .. } = tool;
    let description = tool.docs.to_expr();
    let rest = rest(tool);
    quote! {
        const DECLARATION: __rt::Declaration = __rt::Declaration {
            name: #name,
            description: #description,
            redact: &[#(#redact),*],
            #(#rest)*
            // These macros expand in the author's crate and return the place of the tool.
            location: __rt::location(
                ::core::module_path!(),
                ::core::file!(),
                ::core::line!(),
                ::core::column!(),
            ),
            ..__rt::Declaration::SILENT
        };
    }
}

/// Returns the fields that few tools set. Only the fields that a tool sets are generated, to save compile time.
fn rest(tool: &Checked) -> Vec<TokenStream> {
    let timeout = tool.timeout.map(|timeout| {
        let millis = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        quote!(::core::time::Duration::from_millis(#millis))
    });
    let prepare = match &tool.execution {
        Execution::Server => None,
        Execution::Client { prepare, .. } => Some(prepare),
    };
    let require_any = tool.require_any.iter().filter_map(|index| tool.arguments.get(*index)).map(|one| &one.wire);
    let evidence = tool.arguments.iter().filter_map(|argument| {
        let (wire, lister) = (&argument.wire, argument.evidence.as_ref()?);
        Some(quote!((#wire, #lister)))
    });
    let sensitive = tool.arguments.iter().filter(|argument| argument.is_sensitive).map(|argument| &argument.wire);
    let constraints = tool.arguments.iter().flat_map(|argument| {
        let wire = &argument.wire;
        argument.constraints.iter().map(move |keys| quote!((#wire, #keys)))
    });
    let no_schema = match tool.schema {
        Schema::Derived => None,
        Schema::None(NoSchemaMode::RejectEffects) => Some(quote!(__rt::NoSchemaMode::RejectEffects)),
        Schema::None(NoSchemaMode::ApproveEach) => Some(quote!(__rt::NoSchemaMode::ApproveEach)),
    };
    let once = tool.once.as_ref().map(|Once { key, scope, keep }| {
        let scope = match scope {
            Scope::Tenant => quote!(Tenant),
            Scope::Principal => quote!(Principal),
            Scope::Run => quote!(Run),
        };
        let keep = match keep.map(|keep| keep.as_secs()) {
            Some(seconds) => quote!(::core::option::Option::Some(::core::time::Duration::from_secs(#seconds))),
            None => quote!(::core::option::Option::None),
        };
        quote!((#key, __rt::OnceScope::#scope, #keep))
    });
    let input = match tool.schema {
        Schema::Derived => Some(quote!(<__Arguments as __rt::schemars::JsonSchema>::json_schema)),
        Schema::None(_) => None,
    };
    // Generates for example `timeout: Some(Duration::from_millis(10000)), evidence: &[("part_id", "stock__find")],`.
    let fields = [
        one("input", input),
        one("title", tool.title.as_ref()),
        list("summary", &tool.summary),
        list("model", &tool.model),
        list("prepare", prepare.into_iter().flatten()),
        list("tags", &tool.tags),
        list("also", &tool.also),
        one("timeout", timeout),
        one("max_result_bytes", tool.max_result_bytes.as_ref()),
        // Only client tools have `prepare`.
        prepare.map(|_| quote!(execution: __rt::Execution::Client,)),
        tool.idempotent.then(|| quote!(idempotent: true,)),
        one("once", once),
        list("require_any", require_any),
        list("evidence", evidence),
        list("sensitive", sensitive),
        list("constraints", constraints),
        one("no_schema", no_schema),
    ];
    fields.into_iter().flatten().collect()
}

/// Returns `field: Some(value),`; nothing for `None`.
fn one(field: &str, value: Option<impl ToTokens>) -> Option<TokenStream> {
    let (field, value) = (Ident::new(field, Span::call_site()), value?);
    Some(quote!(#field: ::core::option::Option::Some(#value),))
}

/// Returns `field: &[..],`; nothing for an empty list.
fn list(field: &str, values: impl IntoIterator<Item: ToTokens>) -> Option<TokenStream> {
    let field = Ident::new(field, Span::call_site());
    let mut values = values.into_iter().peekable();
    values.peek()?;
    Some(quote!(#field: &[#(#values),*],))
}

/// Returns the call of the author's hook. Errors about it appear at its path.
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
        // Without a list of arguments, a struct's hook gets the struct, and a function's hook gets all arguments.
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
    quote_spanned!(place=> __rt::validated(#path(#(#passed),*)))
}
