//! Splits `key = value, key, key(..)` into pieces, so that a broken piece does not hide the others.

use proc_macro2::{Delimiter, Ident, Spacing, TokenStream, TokenTree};
use quote::ToTokens;
use syn::LitStr;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;

use crate::errors::Errors;
use crate::names::{nearest, one_of, plain};

/// One `key`, `key = value` or `key(value)`.
pub(crate) struct Piece {
    pub(crate) key: Ident,
    pub(crate) value: Value,
}

pub(crate) enum Value {
    None,
    /// `= ..`
    Equals(TokenStream),
    /// `(..)`
    List(TokenStream),
    /// A value that cannot be read. The mistake has been reported.
    Broken,
}

/// Splits at commas, except those inside the `<..>` of a type. A semicolon is reported, and splits like a comma. A
/// missing comma before one of the `known` keys is reported, and the list is split there, too.
pub(crate) fn pieces(tokens: TokenStream, known: &[&str], errors: &mut Errors) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut current: Vec<TokenTree> = Vec::new();
    let mut depth = 0_u32;
    let mut before = ' ';
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let mut now = ' ';
        if let TokenTree::Punct(punct) = &token {
            now = punct.as_char();
            match now {
                '<' => depth += 1,
                // The `>` of `->` and `=>` closes nothing.
                '>' if before != '-' && before != '=' => depth = depth.saturating_sub(1),
                ',' | ';' if depth == 0 => {
                    if now == ';' {
                        errors.at(&token, "write a comma instead of `;`");
                    }
                    pieces.extend(piece(&mut current, &token, errors));
                    before = now;
                    continue;
                }
                _ => {}
            }
        }
        before = now;
        if depth == 0 && is_next_key(&current, &token, tokens.peek(), known) {
            errors.at(&token, format_args!("a comma is missing before `{token}`"));
            pieces.extend(piece(&mut current, &token, errors));
        }
        current.push(token);
    }
    if let Some(last) = current.last().cloned() {
        pieces.extend(piece(&mut current, &last, errors));
    }
    pieces
}

/// Whether a token begins the next piece although the comma before it is missing: `effect` in
/// `name = "a__b" effect = read_only`.
fn is_next_key(current: &[TokenTree], token: &TokenTree, next: Option<&TokenTree>, known: &[&str]) -> bool {
    let TokenTree::Ident(word) = token else { return false };
    let behind_value =
        matches!(current.last(), Some(TokenTree::Ident(_) | TokenTree::Literal(_) | TokenTree::Group(_)));
    let before_value = match next {
        None => true,
        Some(TokenTree::Punct(punct)) => matches!(punct.as_char(), '=' | ','),
        Some(TokenTree::Group(group)) => group.delimiter() == Delimiter::Parenthesis,
        Some(_) => false,
    };
    behind_value && before_value && known.contains(&plain(word).as_str())
}

fn piece(current: &mut Vec<TokenTree>, end: &TokenTree, errors: &mut Errors) -> Option<Piece> {
    let mut tokens = current.drain(..);
    let key = match tokens.next() {
        Some(TokenTree::Ident(key)) => key,
        Some(other) => {
            errors.at(other, "expected a key, for example `name = \"core__add\"`");
            return None;
        }
        None => {
            errors.at(end, "expected a key before the comma");
            return None;
        }
    };
    let value = match tokens.next() {
        None => Value::None,
        Some(TokenTree::Punct(equals)) if equals.as_char() == '=' => Value::Equals(tokens.collect()),
        Some(TokenTree::Punct(colon)) if colon.as_char() == ':' && colon.spacing() == Spacing::Alone => {
            errors.at(colon, "write `=` instead of `:`");
            Value::Broken
        }
        Some(TokenTree::Group(list)) if list.delimiter() == Delimiter::Parenthesis => {
            let value = Value::List(list.stream());
            match tokens.next() {
                Some(extra) => {
                    errors.at(extra, "expected a comma");
                    Value::Broken
                }
                None => value,
            }
        }
        Some(other) => {
            errors.at(other, format_args!("expected `=` or a comma after `{key}`"));
            Value::Broken
        }
    };
    Some(Piece { key, value })
}

impl Piece {
    pub(crate) fn key_text(&self) -> String {
        plain(&self.key)
    }

    /// Whether the value begins with `[`.
    pub(crate) fn is_list(&self) -> bool {
        let Value::Equals(value) = &self.value else { return false };
        matches!(value.clone().into_iter().next(), Some(TokenTree::Group(list)) if list.delimiter() == Delimiter::Bracket)
    }

    /// Returns whether the piece is a key alone; reports a value.
    pub(crate) fn flag(&self, errors: &mut Errors) -> bool {
        match &self.value {
            Value::None => return true,
            Value::Broken => {}
            Value::Equals(value) | Value::List(value) => {
                let tokens = if value.is_empty() { self.key.to_token_stream() } else { value.clone() };
                errors.at(tokens, format_args!("`{}` takes no value; write the key alone", self.key_text()));
            }
        }
        false
    }

    /// Parses the value of `key = value`. `wanted` describes it in error messages.
    pub(crate) fn value<T: Parse>(&self, wanted: &str, errors: &mut Errors) -> Option<T> {
        self.parse_with(T::parse, wanted, errors)
    }

    pub(crate) fn parse_with<T>(
        &self,
        parser: fn(ParseStream<'_>) -> syn::Result<T>,
        wanted: &str,
        errors: &mut Errors,
    ) -> Option<T> {
        let key = self.key_text();
        match &self.value {
            Value::Equals(value) if !value.is_empty() => {
                // Some authors write `effect = "read_only"`, as in other attributes.
                let parsed = parser.parse2(value.clone()).ok();
                if parsed.is_some() {
                    return parsed;
                }
                let quoted = syn::parse2::<LitStr>(value.clone()).ok().and_then(|text| text.parse_with(parser).ok());
                match quoted {
                    Some(_) => errors.at(value, format_args!("`{key}` is written without quotes")),
                    None => errors.at(value, format_args!("`{key}` is {wanted}")),
                }
                quoted
            }
            Value::Equals(_) | Value::None => {
                errors.at(&self.key, format_args!("`{key}` has no value; it is {wanted}"));
                None
            }
            Value::List(_) => {
                errors.at(&self.key, format_args!("write `{key} = ..`; it is {wanted}"));
                None
            }
            Value::Broken => None,
        }
    }

    /// Parses `key = [a, b]`. Items that cannot be read are reported and left out.
    pub(crate) fn list<T: Parse>(&self, wanted: &str, errors: &mut Errors) -> Option<Vec<T>> {
        fn items(input: ParseStream<'_>) -> syn::Result<Vec<TokenStream>> {
            let content;
            syn::bracketed!(content in input);
            let items = Punctuated::<Item, syn::Token![,]>::parse_terminated(&content)?;
            Ok(items.into_iter().map(|item| item.0).collect())
        }
        let items = self.parse_with(items, wanted, errors)?;
        let mut parsed = Vec::new();
        let mut is_readable = true;
        for item in items {
            if let Ok(item) = syn::parse2(item.clone()) {
                parsed.push(item);
                continue;
            }
            is_readable = false;
            match behind_first::<T>(&item) {
                Some(next) => errors.at(&next, format_args!("a comma is missing before `{next}`")),
                None => errors.at(item, format_args!("`{}` is {wanted}", self.key_text())),
            }
        }
        // A list without a readable item is not an empty list.
        (is_readable || !parsed.is_empty()).then_some(parsed)
    }

    /// Parses `key = word`, with a word from a fixed list.
    pub(crate) fn choice<T: Copy>(&self, what: &str, choices: &[(&str, T)], errors: &mut Errors) -> Option<T> {
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let word: Ident = self.value(&one_of(&words), errors)?;
        let found = choices.iter().find(|(name, _)| word == name).map(|(_, choice)| *choice);
        if found.is_none() {
            match nearest(&word.to_string(), &words) {
                Some(meant) => errors.at(&word, format_args!("unknown {what} `{word}`; did you mean `{meant}`?")),
                None => errors.at(&word, format_args!("unknown {what} `{word}`; write {}", one_of(&words))),
            }
        }
        found
    }
}

/// Returns the second token if each of the first two tokens is an item, which means that a comma between them is
/// missing: `"b"` in `["a" "b"]`.
fn behind_first<T: Parse>(item: &TokenStream) -> Option<TokenTree> {
    let is_item = |token: &TokenTree| syn::parse2::<T>(token.to_token_stream()).is_ok();
    let mut tokens = item.clone().into_iter();
    let first = tokens.next()?;
    tokens.next().filter(|second| is_item(&first) && is_item(second))
}

/// The tokens up to the next comma.
struct Item(TokenStream);

impl Parse for Item {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut tokens = TokenStream::new();
        while !input.is_empty() && !input.peek(syn::Token![,]) {
            tokens.extend([input.parse::<TokenTree>()?]);
        }
        if tokens.is_empty() { Err(input.error("expected a value")) } else { Ok(Self(tokens)) }
    }
}
