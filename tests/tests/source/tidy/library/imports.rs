//! The names that a module's `use` trees, type aliases and `extern crate` items bring in.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};
use syn::{Ident, Item, ItemExternCrate, ItemType, ItemUse, Path, Type, UseTree};

use super::is_test;

/// The meanings of names in a module. The bodies of functions count as the module: which function imports a name does
/// not matter to a rule about the module.
#[derive(Default)]
pub(super) struct Imports {
    /// The meanings of each name; two functions may give one name two meanings.
    names: BTreeMap<String, Vec<Vec<String>>>,
    /// The modules whose names are all imported.
    globs: Vec<Vec<String>>,
}

impl Imports {
    pub(super) fn of(items: &[Item]) -> Self {
        let mut imports = Self::default();
        items.iter().for_each(|item| imports.visit_item(item));
        imports
    }

    pub(super) fn get(&self, name: &str) -> &[Vec<String>] {
        self.names.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    pub(super) fn globs(&self) -> &[Vec<String>] {
        &self.globs
    }

    fn add(&mut self, name: String, path: Vec<String>) {
        // `use std;` and `pub use runtime;` name what they import: as an alias it would stand for itself.
        if path.len() > 1 || path[0] != name {
            self.names.entry(name).or_default().push(path);
        }
    }
}

impl Visit<'_> for Imports {
    fn visit_item(&mut self, item: &Item) {
        // An inline module has its own scope.
        if !matches!(item, Item::Mod(_)) && !is_test(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &ItemUse) {
        for leaf in leaves(item) {
            match leaf.name {
                Some(name) => self.add(name, leaf.path),
                None => self.globs.push(leaf.path),
            }
        }
    }

    fn visit_item_extern_crate(&mut self, item: &ItemExternCrate) {
        if let Some((_, name)) = &item.rename {
            let krate = if item.ident == "self" { "crate".to_owned() } else { item.ident.to_string() };
            self.add(name.to_string(), vec![krate]);
        }
    }

    fn visit_item_type(&mut self, item: &ItemType) {
        if let Type::Path(ty) = &*item.ty
            && ty.qself.is_none()
        {
            self.add(item.ident.to_string(), segments(&ty.path));
        }
    }
}

/// One name or glob of a `use` tree.
pub(super) struct Leaf {
    /// Without the `*` of a glob.
    pub(super) path: Vec<String>,
    /// The name that it brings in; `None` for a glob.
    pub(super) name: Option<String>,
    pub(super) line: usize,
}

pub(super) fn leaves(item: &ItemUse) -> Vec<Leaf> {
    let mut found = Vec::new();
    let start = if item.leading_colon.is_some() { vec!["::".to_owned()] } else { Vec::new() };
    flatten(&item.tree, &start, &mut found);
    found
}

fn flatten(tree: &UseTree, prefix: &[String], found: &mut Vec<Leaf>) {
    // `a::{self}` brings in `a`.
    let with = |ident: &Ident| -> Vec<String> {
        let own = (prefix.is_empty() || ident != "self").then(|| ident.to_string());
        prefix.iter().cloned().chain(own).collect()
    };
    match tree {
        UseTree::Path(path) => flatten(&path.tree, &with(&path.ident), found),
        UseTree::Name(name) => {
            let path = with(&name.ident);
            found.push(Leaf { name: path.last().cloned(), path, line: line(name.ident.span()) });
        }
        UseTree::Rename(rename) => {
            let name = Some(rename.rename.to_string());
            found.push(Leaf { path: with(&rename.ident), name, line: line(rename.ident.span()) });
        }
        UseTree::Glob(glob) => {
            found.push(Leaf { path: prefix.to_vec(), name: None, line: line(glob.star_token.spans[0]) });
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, prefix, found)),
    }
}

pub(super) fn span(path: &Path) -> proc_macro2::Span {
    path.segments.first().map_or_else(proc_macro2::Span::call_site, |first| first.ident.span())
}

pub(super) fn line(span: proc_macro2::Span) -> usize {
    span.start().line
}

pub(super) fn segments(path: &Path) -> Vec<String> {
    let leading = path.leading_colon.map(|_| "::".to_owned());
    leading.into_iter().chain(path.segments.iter().map(|segment| segment.ident.to_string())).collect()
}

pub(super) fn attributes(item: &Item) -> &[syn::Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
