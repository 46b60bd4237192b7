//! The module of the runtime that expansions name.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::{Ident, Path};

/// The name of the module. It carries the version, so that macros and runtime of different releases do not compile
/// together, and nobody depends on what is in it.
pub(super) fn module_name() -> Ident {
    let version = env!("CARGO_PKG_VERSION").replace(|letter: char| !letter.is_ascii_alphanumeric(), "_");
    format_ident!("__private{version}", span = Span::call_site())
}

/// The module, for the runtime's own root.
pub(crate) fn module() -> TokenStream {
    let name = module_name();
    quote! {
        #[doc(hidden)]
        pub mod #name {
            pub use crate::private::*;
        }
    }
}

/// The path of the module.
pub(super) fn private(krate: Option<&Path>) -> TokenStream {
    let name = module_name();
    krate.map_or_else(|| quote!(::tool_runtime::#name), |path| quote!(#path::#name))
}
