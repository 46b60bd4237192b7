//! The item below `#[tool]`: its attributes, visibility and signature. The body of a function is not parsed, so that an
//! author who is still typing it sees only the compiler's errors.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::ToTokens;
use syn::parse::discouraged::Speculative;
use syn::parse::{Parse, ParseStream, Parser};
use syn::{Attribute, Fields, Generics, ItemStruct, Path, Signature, Token, Type, Visibility};

/// The item below `#[tool]`. It may be of a kind that cannot be a tool.
pub(crate) enum Item {
    Function(Function),
    Struct(ItemStruct),
    Methods(Methods),
    /// An item of a wrong kind. It is emitted without the attributes that only the macro reads. `blame` holds the
    /// tokens for the error message.
    Other {
        blame: TokenStream,
        message: &'static str,
    },
}

/// The `impl` block of a struct tool.
pub(crate) struct Methods {
    pub(crate) generics: Generics,
    /// The trait in front of `for`, which a rule refuses.
    pub(crate) of_trait: Option<Path>,
    pub(crate) ty: Type,
    /// The signatures of its functions, with their attributes.
    pub(crate) signatures: Vec<(Vec<Attribute>, Signature)>,
}

impl Parse for Methods {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        input.call(Attribute::parse_outer)?;
        input.parse::<Option<Token![unsafe]>>()?;
        input.parse::<Token![impl]>()?;
        let mut generics = if input.peek(Token![<]) { input.parse()? } else { Generics::default() };
        let first: Type = input.parse()?;
        let (of_trait, ty) = match (input.parse::<Option<Token![for]>>()?, first) {
            (None, ty) => (None, ty),
            (Some(_), Type::Path(path)) => (Some(path.path), input.parse()?),
            (Some(word), _) => return Err(syn::Error::new(word.span, "this `impl` cannot be read")),
        };
        generics.where_clause = input.parse()?;
        let content;
        syn::braced!(content in input);
        Ok(Self { generics, of_trait, ty, signatures: signatures(&content)? })
    }
}

/// Returns the signatures in an `impl` block. Bodies and all other items are skipped.
fn signatures(content: ParseStream<'_>) -> syn::Result<Vec<(Vec<Attribute>, Signature)>> {
    let mut found = Vec::new();
    while !content.is_empty() {
        let attributes = content.call(Attribute::parse_outer)?;
        content.parse::<Visibility>()?;
        let ahead = content.fork();
        if let Ok(signature) = ahead.parse::<Signature>() {
            content.advance_to(&ahead);
            found.push((attributes, signature));
        }
        while !content.is_empty() {
            let token: TokenTree = content.parse()?;
            let ends = match &token {
                TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                TokenTree::Punct(punct) => punct.as_char() == ';',
                _ => false,
            };
            if ends {
                break;
            }
        }
    }
    Ok(found)
}

/// A function whose body is not parsed.
pub(crate) struct Function {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) sig: Signature,
    pub(crate) body: TokenStream,
}

impl Parse for Item {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let ahead = input.fork();
        let attrs = ahead.call(Attribute::parse_outer)?;
        let vis: Visibility = ahead.parse()?;
        if ahead.peek(Token![struct]) {
            let item: ItemStruct = input.parse()?;
            return Ok(with_named_fields(item));
        }
        if ahead.peek(Token![impl]) || ahead.peek(Token![unsafe]) && ahead.peek2(Token![impl]) {
            return input.parse().map(Self::Methods);
        }
        let all: TokenStream = input.parse()?;
        let Ok(sig) = ahead.parse::<Signature>() else {
            let is_function =
                all.clone().into_iter().any(|token| matches!(token, TokenTree::Ident(word) if word == "fn"));
            let message = if is_function {
                "this signature cannot be read"
            } else {
                "`#[tool]` is for a function, a struct with named fields, and the `impl` block of such a struct"
            };
            return Ok(Self::Other { blame: keyword(&all).unwrap_or(all), message });
        };
        let body = ahead.parse()?;
        Ok(Self::Function(Function { attrs, vis, sig, body }))
    }
}

fn with_named_fields(item: ItemStruct) -> Item {
    let message = match &item.fields {
        Fields::Named(_) => return Item::Struct(item),
        Fields::Unnamed(_) => "the arguments of a tool have names; write a struct with named fields",
        Fields::Unit => "the arguments of a tool are named fields; write `{}` for a tool without arguments",
    };
    let blame = match &item.fields {
        Fields::Unnamed(fields) => fields.to_token_stream(),
        _ => item.ident.to_token_stream(),
    };
    Item::Other { blame, message }
}

/// Returns an item that cannot be a tool, without the attributes that only the macro reads.
pub(crate) fn without_helpers(item: TokenStream) -> TokenStream {
    strip(item, &HELPERS, &|group| stripped(group, &|inner| stripped(inner, &Clone::clone)))
}

const HELPERS: [&str; 3] = ["arg", "serde", "schemars"];

/// Removes the helper attributes in a group, and the doc comments of parameters, which the compiler would refuse.
fn stripped(group: &Group, inside: &dyn Fn(&Group) -> Group) -> Group {
    let in_parameters = group.delimiter() == Delimiter::Parenthesis;
    let helpers: &[&str] = if in_parameters { &["arg", "serde", "schemars", "doc"] } else { &HELPERS };
    let mut stripped = Group::new(group.delimiter(), strip(group.stream(), helpers, inside));
    stripped.set_span(group.span());
    stripped
}

fn strip(tokens: TokenStream, helpers: &[&str], inside: &dyn Fn(&Group) -> Group) -> TokenStream {
    let mut out = TokenStream::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let is_hash = matches!(&token, TokenTree::Punct(hash) if hash.as_char() == '#');
        let is_helper = |group: &Group| {
            let first = group.stream().into_iter().next();
            matches!(first, Some(TokenTree::Ident(name)) if helpers.iter().any(|helper| name == helper))
        };
        match (&token, tokens.peek()) {
            (_, Some(TokenTree::Group(group))) if is_hash && is_helper(group) => {
                tokens.next();
            }
            (TokenTree::Group(group), _) => out.extend([TokenTree::Group(inside(group))]),
            _ => out.extend([token]),
        }
    }
    out
}

/// Returns the first token after attributes and visibility, which shows the kind of the item.
pub(crate) fn keyword(item: &TokenStream) -> Option<TokenStream> {
    fn behind(input: ParseStream<'_>) -> syn::Result<TokenTree> {
        input.call(Attribute::parse_outer)?;
        input.parse::<Visibility>()?;
        let keyword = input.parse()?;
        input.parse::<TokenStream>()?;
        Ok(keyword)
    }
    behind.parse2(item.clone()).ok().map(|keyword| keyword.to_token_stream())
}
