//! The module of the runtime that expansions name.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::{Ident, Path};

/// The name of the module. It contains the version, so that macros and runtime of different releases do not compile
/// together and other crates do not rely on its contents.
pub(super) fn module_name() -> Ident {
    let version = env!("CARGO_PKG_VERSION").replace(|letter: char| !letter.is_ascii_alphanumeric(), "_");
    // `0.1.0` becomes `__private0_1_0`.
    format_ident!("__private{version}", span = Span::call_site())
}

/// The declaration of the module at the runtime's root.
pub(crate) fn module() -> TokenStream {
    let name = module_name();
    quote! {
        #[doc(hidden)]
        pub mod #name {
            pub use crate::private::*;
            pub use crate::__recording as recording;
        }
    }
}

/// The path of the module.
pub(super) fn private(krate: Option<&Path>) -> TokenStream {
    let name = module_name();
    krate.map_or_else(|| quote!(::tool_runtime::#name), |path| quote!(#path::#name))
}
