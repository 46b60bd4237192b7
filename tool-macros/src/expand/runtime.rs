//! The name and the path of the runtime's hidden module, which generated code uses.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::{Ident, Path};

/// Returns the name of the module. It contains the version, so that macros and runtime of different releases do not
/// compile together, and other crates cannot rely on its contents.
pub(super) fn module_name() -> Ident {
    let version = env!("CARGO_PKG_VERSION").replace(|letter: char| !letter.is_ascii_alphanumeric(), "_");
    // `0.1.0` becomes `__private0_1_0`.
    format_ident!("__private{version}", span = Span::call_site())
}

/// Returns the declaration of the module, for the root of the runtime crate.
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

/// Returns the path of the module.
pub(super) fn private(krate: Option<&Path>) -> TokenStream {
    let name = module_name();
    krate.map_or_else(|| quote!(::tool_runtime::#name), |path| quote!(#path::#name))
}
