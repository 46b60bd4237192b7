//! Compares the generated code with files: `tests/expand/<case>.in.rs` expands to `tests/expand/<case>.rs`.
//!
//! `REFRESH_EXPANSIONS=1` rewrites the files. Review the diff like code.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::parse::{Parse, ParseStream, Parser};
use syn::{Attribute, Meta};

use super::{capability, tool};

/// The macro, its attribute, and the item below it.
struct Input {
    name: String,
    attr: TokenStream,
    item: TokenStream,
}

impl Parse for Input {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut attrs = input.call(Attribute::parse_outer)?;
        let at = attrs.iter().position(|attr| attr.path().is_ident("tool") || attr.path().is_ident("capability"));
        let ours = attrs.remove(at.ok_or_else(|| input.error("no macro"))?);
        let attr = match &ours.meta {
            Meta::List(list) => list.tokens.clone(),
            _ => TokenStream::new(),
        };
        let rest: TokenStream = input.parse()?;
        let item = attrs.iter().map(ToTokens::to_token_stream).chain([rest]).collect();
        Ok(Self { name: ours.path().to_token_stream().to_string(), attr, item })
    }
}

impl Input {
    fn expand(&self, attr: TokenStream, item: TokenStream) -> TokenStream {
        if self.name == "tool" { tool(attr, item, &|| false) } else { capability(attr, item) }
    }
}

fn inputs() -> Vec<(PathBuf, Input)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/expand");
    let mut inputs: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_str().unwrap().ends_with(".in.rs"))
        .map(|path| {
            let input = Input::parse.parse_str(&fs::read_to_string(&path).unwrap()).unwrap();
            (path, input)
        })
        .collect();
    inputs.sort_by(|(left, _), (right, _)| left.cmp(right));
    inputs
}

fn pretty(input: &Input) -> String {
    let tokens = input.expand(input.attr.clone(), input.item.clone());
    // The name of the runtime's module changes with every release.
    let module = super::runtime::module_name().to_string();
    prettyplease::unparse(&syn::parse2(tokens).unwrap()).replace(&module, "__private")
}

#[test]
fn expansions_are_as_reviewed() {
    let mut different = Vec::new();
    for (path, input) in inputs() {
        let expanded = pretty(&input);
        let golden = PathBuf::from(path.to_str().unwrap().replace(".in.rs", ".rs"));
        if env::var_os("REFRESH_EXPANSIONS").is_some() {
            fs::write(&golden, &expanded).unwrap();
        }
        if fs::read_to_string(&golden).unwrap_or_default() != expanded {
            different.push(golden);
        }
    }
    assert!(different.is_empty(), "expansions differ from {different:?}; REFRESH_EXPANSIONS=1 writes them");
}

#[test]
fn another_path_of_the_runtime_replaces_every_one() {
    for (path, input) in inputs() {
        let is_renamed = input.attr.to_string().contains("crate");
        // An item that is not a tool passes through and does not name the module.
        let is_tool = !path.ends_with("wrong_item.in.rs");
        assert_eq!(pretty(&input).contains("tool_runtime"), is_tool && !is_renamed, "{}", path.display());
    }
}

/// Expands half-typed input: every prefix of every attribute and item, and each of them without one token.
#[test]
fn nothing_that_is_half_typed_panics() {
    for (_, input) in inputs() {
        let (attr, item): (Vec<_>, Vec<_>) =
            (input.attr.clone().into_iter().collect(), input.item.clone().into_iter().collect());
        for cut in 0..attr.len() {
            let without = attr.iter().enumerate().filter(|(at, _)| *at != cut).map(|(_, token)| token.clone());
            for half in [attr.iter().take(cut).cloned().collect(), without.collect()] {
                assert!(!input.expand(half, input.item.clone()).is_empty());
            }
        }
        for cut in 0..item.len() {
            let without = item.iter().enumerate().filter(|(at, _)| *at != cut).map(|(_, token)| token.clone());
            for half in [item.iter().take(cut).cloned().collect::<TokenStream>(), without.collect()] {
                assert!(!input.expand(input.attr.clone(), half).is_empty());
            }
        }
    }
}
