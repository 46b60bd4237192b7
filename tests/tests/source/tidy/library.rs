//! A library as its compiler reads it: the tree of its modules, and every path that their code names.

mod examples;
mod files;
mod imports;
mod paths;
mod surface;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use syn::{Attribute, Item, ItemMod, Meta};

pub(crate) use paths::Named;

use imports::Imports;

/// The modules of one library.
pub(crate) struct Library {
    /// The name by which other crates, and the library itself, know it.
    name: String,
    /// By path; the root has the empty one.
    modules: BTreeMap<Vec<String>, Module>,
    /// Source files that no `mod` declares.
    pub(crate) orphans: Vec<String>,
}

/// One module, in a separate file or inline.
struct Module {
    /// Relative to the library's folder.
    file: String,
    items: Vec<Item>,
    children: BTreeSet<String>,
    imports: Imports,
    /// Built for tests only: the `mod` that declares it, or one above, is below `#[cfg(test)]`.
    test: bool,
}

impl Library {
    /// Reads the sources below a folder, from its `lib.rs` or `main.rs` on.
    pub(crate) fn read(name: &str, folder: &Path) -> Self {
        let relative = |path: &Path| path.strip_prefix(folder).unwrap().to_str().unwrap().replace('\\', "/");
        let sources = super::sources(folder);
        Self::parse(name, &sources.iter().map(|(path, text)| (relative(path), text.as_str())).collect())
    }

    /// Parses sources by their paths.
    pub(crate) fn parse(name: &str, sources: &BTreeMap<String, &str>) -> Self {
        let mut reader = Reader { sources, found: BTreeSet::new(), modules: BTreeMap::new() };
        let root = if sources.contains_key("lib.rs") { "lib.rs" } else { "main.rs" };
        reader.file(Vec::new(), root, false);
        let Reader { found, modules, .. } = reader;
        let binary = |file: &&String| *file == "main.rs" || file.starts_with("bin/");
        let orphans = sources.keys().filter(|file| !found.contains(*file) && !binary(file)).cloned().collect();
        Self { name: name.to_owned(), modules, orphans }
    }

    /// The files that are not built for tests only.
    pub(crate) fn files(&self) -> BTreeSet<&str> {
        self.modules.values().filter(|module| !module.test).map(|module| module.file.as_str()).collect()
    }

    /// Every path, macro and method that the library's code names, except in unit tests, with its meaning.
    pub(crate) fn named(&self) -> Vec<Named> {
        let modules = self.modules.iter().filter(|(_, module)| !module.test);
        let mut named: Vec<_> = modules.flat_map(|(path, module)| paths::named(self, path, module)).collect();
        named.sort();
        named.dedup();
        named
    }
}

struct Reader<'a> {
    sources: &'a BTreeMap<String, &'a str>,
    found: BTreeSet<String>,
    modules: BTreeMap<Vec<String>, Module>,
}

impl Reader<'_> {
    fn file(&mut self, path: Vec<String>, file: &str, test: bool) {
        let text = self.sources.get(file).unwrap_or_else(|| panic!("there is no {file}"));
        let parsed = syn::parse_file(text).unwrap_or_else(|error| panic!("{file}: {error}"));
        self.found.insert(file.to_owned());
        let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
        let owns_folder = matches!(name, "lib.rs" | "mod.rs" | "main.rs");
        let below = if owns_folder { folder.to_owned() } else { file.trim_end_matches(".rs").to_owned() };
        let test = test || is_test(&parsed.attrs);
        self.module(path, Source { file, folder, below: &below }, parsed.items, test);
    }

    fn module(&mut self, path: Vec<String>, source: Source<'_>, items: Vec<Item>, test: bool) {
        let mut children = BTreeSet::new();
        for item in &items {
            let Item::Mod(declared) = item else { continue };
            let name = declared.ident.to_string();
            let child: Vec<_> = path.iter().cloned().chain([name.clone()]).collect();
            let test = test || is_test(&declared.attrs);
            if let Some((_, items)) = &declared.content {
                let below = join(source.below, &name);
                self.module(child, Source { below: &below, ..source }, items.clone(), test);
            } else {
                let file = self.file_of(declared, source);
                self.file(child, &file, test);
            }
            children.insert(name);
        }
        let imports = Imports::of(&items);
        self.modules.insert(path, Module { file: source.file.to_owned(), items, children, imports, test });
    }

    /// The file of `mod name;`.
    fn file_of(&self, declared: &ItemMod, source: Source<'_>) -> String {
        if let Some(path) = path_attribute(&declared.attrs) {
            return join(source.folder, &path);
        }
        let stem = join(source.below, &declared.ident.to_string());
        let flat = format!("{stem}.rs");
        if self.sources.contains_key(&flat) { flat } else { format!("{stem}/mod.rs") }
    }
}

/// Where a module's text is, and where the files of its children are.
#[derive(Clone, Copy)]
struct Source<'a> {
    file: &'a str,
    folder: &'a str,
    below: &'a str,
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    })
}

/// Whether the item is built for tests only.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::Path(path) => path.segments.last().is_some_and(|segment| segment.ident == "test"),
        Meta::List(list) if list.path.is_ident("cfg") => {
            list.parse_args().is_ok_and(|predicate| needs_test(&predicate))
        }
        Meta::List(list) => list.path.segments.last().is_some_and(|segment| segment.ident == "test"),
        Meta::NameValue(_) => false,
    })
}

/// Whether a predicate of `cfg` holds in tests only. `any(test, ..)` does not: the code is in the library too.
fn needs_test(predicate: &Meta) -> bool {
    match predicate {
        Meta::Path(path) => path.is_ident("test") || path.is_ident("doctest"),
        Meta::List(list) if list.path.is_ident("all") => {
            let all = list.parse_args_with(syn::punctuated::Punctuated::<Meta, syn::Token![,]>::parse_terminated);
            all.is_ok_and(|all| all.iter().any(needs_test))
        }
        _ => false,
    }
}
