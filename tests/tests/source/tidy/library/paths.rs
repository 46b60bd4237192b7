//! The names in the code of a module, and their meanings.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{
    Attribute, ExprMethodCall, ExprPath, ImplItem, Item, ItemExternCrate, ItemUse, Lit, Local, Macro, Path, Stmt,
    TraitItem, Type, TypePath,
};

use super::imports::{self, line, segments};
use super::{Library, Module, is_test};

/// A name in the code, and its meaning.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Named {
    pub(crate) place: Place,
    /// Its meaning: begins with `crate` or with the name of another crate; `name!` is a macro, `.name` a method and a
    /// `*` at the end a glob.
    pub(crate) path: String,
    /// A re-export names it.
    pub(crate) is_door: bool,
}

/// Where a name is written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// Relative to the library's folder.
    pub(crate) file: String,
    pub(crate) line: usize,
    /// The module that the name is in, by the name of its outermost ancestor; empty for the root.
    pub(crate) module: String,
}

pub(super) fn named(library: &Library, path: &[String], module: &Module) -> Vec<Named> {
    let mut finder = Finder { library, path, module, named: Vec::new(), is_door: false };
    module.items.iter().filter(|item| !matches!(item, Item::Mod(_))).for_each(|item| finder.visit_item(item));
    finder.named
}

struct Finder<'a> {
    library: &'a Library,
    path: &'a [String],
    module: &'a Module,
    named: Vec<Named>,
    /// It is in a re-export.
    is_door: bool,
}

impl Finder<'_> {
    fn add(&mut self, line: usize, path: String) {
        let module = self.path.first().cloned().unwrap_or_default();
        let place = Place { file: self.module.file.clone(), line, module };
        self.named.push(Named { place, path, is_door: self.is_door });
    }

    /// A path of several segments; a single one is a local name, or the import that brought it in is a path itself.
    fn path(&mut self, line: usize, path: &[String]) {
        if path.len() > 1 {
            for resolved in self.library.resolve(self.path, path) {
                self.add(line, resolved.join("::"));
            }
        }
    }

    fn macro_name(&mut self, line: usize, path: &[String]) {
        if let Some(name) = path.last() {
            self.add(line, format!("{name}!"));
        }
    }

    /// The paths, macros and methods that a macro's tokens may name.
    fn tokens(&mut self, tokens: TokenStream, prefix: &[String]) {
        let mut tokens = tokens.into_iter().peekable();
        let mut path = prefix.to_vec();
        // Whether the last token lets the path continue: it is `::`, or the path has not begun.
        let mut open = true;
        let mut at = 0;
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Ident(ident) if open => {
                    at = line(ident.span());
                    path.push(ident.to_string());
                    open = false;
                }
                TokenTree::Ident(ident) => {
                    self.path(at, &path);
                    at = line(ident.span());
                    path = prefix.iter().cloned().chain([ident.to_string()]).collect();
                }
                TokenTree::Punct(colon) if colon.as_char() == ':' && !open && joins(&mut tokens) => open = true,
                TokenTree::Group(group)
                    if open && path.len() > prefix.len() && group.delimiter() == Delimiter::Brace =>
                {
                    // `std::{fs, env}`.
                    self.tokens(group.stream(), &path);
                    (path, open) = (prefix.to_vec(), true);
                }
                other => {
                    self.path(at, &path);
                    match &other {
                        TokenTree::Punct(bang) if bang.as_char() == '!' && !open => self.macro_name(at, &path),
                        TokenTree::Punct(dot) if dot.as_char() == '.' => {
                            if let Some(TokenTree::Ident(method)) = tokens.peek() {
                                self.add(line(method.span()), format!(".{method}"));
                            }
                        }
                        TokenTree::Punct(star) if star.as_char() == '*' && open && path.len() > prefix.len() => {
                            let glob: Vec<_> = path.iter().cloned().chain(["*".to_owned()]).collect();
                            self.path(at, &glob);
                        }
                        TokenTree::Group(group) => self.tokens(group.stream(), &[]),
                        _ => {}
                    }
                    (path, open) = (prefix.to_vec(), true);
                }
            }
        }
        self.path(at, &path);
    }

    /// `<T>::method` names `T::method`.
    fn qualified(&mut self, ty: &Type, path: &Path) {
        if let Type::Path(TypePath { qself: None, path: ty, .. }) = ty {
            let whole: Vec<_> =
                segments(ty).into_iter().chain(path.segments.last().map(|last| last.ident.to_string())).collect();
            self.path(line(imports::span(ty)), &whole);
        }
    }
}

/// Whether the second `:` of `::` is next; takes it.
fn joins(tokens: &mut std::iter::Peekable<proc_macro2::token_stream::IntoIter>) -> bool {
    tokens.next_if(|next| matches!(next, TokenTree::Punct(colon) if colon.as_char() == ':')).is_some()
}

impl Visit<'_> for Finder<'_> {
    fn visit_item(&mut self, item: &Item) {
        if !is_test(imports::attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &ImplItem) {
        let attributes: &[Attribute] = match item {
            ImplItem::Const(item) => &item.attrs,
            ImplItem::Fn(item) => &item.attrs,
            ImplItem::Macro(item) => &item.attrs,
            ImplItem::Type(item) => &item.attrs,
            _ => &[],
        };
        if !is_test(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_trait_item(&mut self, item: &TraitItem) {
        let attributes: &[Attribute] = match item {
            TraitItem::Const(item) => &item.attrs,
            TraitItem::Fn(item) => &item.attrs,
            TraitItem::Macro(item) => &item.attrs,
            TraitItem::Type(item) => &item.attrs,
            _ => &[],
        };
        if !is_test(attributes) {
            visit::visit_trait_item(self, item);
        }
    }

    fn visit_stmt(&mut self, statement: &Stmt) {
        let attributes: &[Attribute] = match statement {
            Stmt::Local(Local { attrs, .. }) => attrs,
            Stmt::Macro(statement) => &statement.attrs,
            _ => &[],
        };
        if !is_test(attributes) {
            visit::visit_stmt(self, statement);
        }
    }

    fn visit_field(&mut self, field: &syn::Field) {
        if !is_test(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_variant(&mut self, variant: &syn::Variant) {
        if !is_test(&variant.attrs) {
            visit::visit_variant(self, variant);
        }
    }

    fn visit_item_use(&mut self, item: &ItemUse) {
        self.is_door = !matches!(item.vis, syn::Visibility::Inherited);
        for mut leaf in imports::leaves(item) {
            if leaf.name.is_none() {
                leaf.path.push("*".to_owned());
            }
            self.path(leaf.line, &leaf.path);
        }
        self.is_door = false;
    }

    fn visit_item_extern_crate(&mut self, _: &ItemExternCrate) {}

    fn visit_path(&mut self, path: &Path) {
        self.path(line(imports::span(path)), &segments(path));
        visit::visit_path(self, path);
    }

    fn visit_expr_path(&mut self, path: &ExprPath) {
        if let Some(qself) = &path.qself {
            self.qualified(&qself.ty, &path.path);
        }
        visit::visit_expr_path(self, path);
    }

    fn visit_type_path(&mut self, path: &TypePath) {
        if let Some(qself) = &path.qself {
            self.qualified(&qself.ty, &path.path);
        }
        visit::visit_type_path(self, path);
    }

    fn visit_expr_method_call(&mut self, call: &ExprMethodCall) {
        self.add(line(call.method.span()), format!(".{}", call.method));
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, mac: &Macro) {
        self.macro_name(line(imports::span(&mac.path)), &segments(&mac.path));
        self.tokens(mac.tokens.clone(), &[]);
        visit::visit_macro(self, mac);
    }

    fn visit_attribute(&mut self, attribute: &Attribute) {
        // `#[derive(path)]`; `#[serde(with = "path")]` and its kind name paths in strings.
        if let syn::Meta::List(list) = &attribute.meta {
            self.tokens(list.tokens.clone(), &[]);
            self.strings(list.tokens.clone());
        }
        visit::visit_attribute(self, attribute);
    }
}

impl Finder<'_> {
    fn strings(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.strings(group.stream()),
                TokenTree::Literal(literal) => {
                    let at = line(literal.span());
                    if let Lit::Str(text) = Lit::new(literal)
                        && let Ok(path) = text.parse::<Path>()
                    {
                        self.path(at, &segments(&path));
                    }
                }
                _ => {}
            }
        }
    }
}

/// Re-exports lead to re-exports; more of them than this are a circle.
const LONGEST: usize = 8;

impl Library {
    /// The meanings of a path in a module; several if a name in it has several meanings.
    pub(super) fn resolve(&self, module: &[String], path: &[String]) -> Vec<Vec<String>> {
        let mut found = Vec::new();
        self.start(module, path, LONGEST, &mut found);
        found
    }

    fn start(&self, module: &[String], path: &[String], left: usize, found: &mut Vec<Vec<String>>) {
        let Some((first, rest)) = path.split_first().filter(|_| left > 0) else { return };
        match first.as_str() {
            "crate" => self.walk(&[], rest, left, found),
            "self" => self.walk(module, rest, left, found),
            "super" => self.walk(&module[..module.len().saturating_sub(1)], rest, left, found),
            "::" if rest.first().is_some_and(|name| *name == self.name) => self.walk(&[], &rest[1..], left, found),
            "::" => found.push(rest.to_vec()),
            name => {
                if self.step(module, name, rest, left, found) {
                    return;
                }
                if name == self.name { self.walk(&[], rest, left, found) } else { found.push(path.to_vec()) }
            }
        }
    }

    /// Follows a path from a module of this crate.
    fn walk(&self, module: &[String], path: &[String], left: usize, found: &mut Vec<Vec<String>>) {
        let whole =
            || ["crate".to_owned()].into_iter().chain(module.iter().cloned()).chain(path.iter().cloned()).collect();
        let Some((first, rest)) = path.split_first().filter(|_| left > 0) else {
            found.push(whole());
            return;
        };
        if first == "super" {
            return self.walk(&module[..module.len().saturating_sub(1)], rest, left, found);
        }
        if first == "self" {
            return self.walk(module, rest, left, found);
        }
        if !self.step(module, first, rest, left, found) {
            found.push(whole());
        }
    }

    /// A name of a module: a child, an import, or one that a glob brings in. Returns false for the module's own items.
    fn step(&self, module: &[String], name: &str, rest: &[String], left: usize, found: &mut Vec<Vec<String>>) -> bool {
        let Some(known) = self.modules.get(module).filter(|_| left > 0) else { return false };
        let before = found.len();
        if known.children.contains(name) {
            let child: Vec<_> = module.iter().cloned().chain([name.to_owned()]).collect();
            self.walk(&child, rest, left - 1, found);
            return true;
        }
        for path in known.imports.get(name) {
            let onwards: Vec<_> = path.iter().chain(rest).cloned().collect();
            self.start(module, &onwards, left - 1, found);
        }
        if found.len() > before {
            return true;
        }
        for path in known.imports.globs() {
            let mut sources = Vec::new();
            self.start(module, path, left - 1, &mut sources);
            for source in sources {
                if source[0] == "crate" && source[1..] != *module {
                    self.step(&source[1..], name, rest, left - 1, found);
                }
            }
        }
        found.len() > before
    }
}
