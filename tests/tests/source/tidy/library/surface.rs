//! The public surface: the items that a user of a library can name.

use std::collections::{BTreeMap, BTreeSet};

use syn::{Attribute, Item, Meta, Visibility};

use super::imports::{attributes, leaves};
use super::{Library, is_test};

impl Library {
    /// Each public item, by the path where it is defined, with the paths under which users reach it. Modules are paths,
    /// not items; items hidden from the documentation do not count.
    pub(crate) fn surface(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut surface = Surface { library: self, items: BTreeMap::new(), open: Vec::new() };
        surface.module(&[], &self.name);
        for module in self.modules.values().filter(|module| !module.test) {
            for item in &module.items {
                if let Item::Macro(item) = item
                    && let Some(name) = &item.ident
                    && item.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export"))
                    && !is_hidden(&item.attrs)
                {
                    surface.add(format!("{name}!"), format!("{}::{name}!", self.name));
                }
            }
        }
        surface.items
    }
}

struct Surface<'a> {
    library: &'a Library,
    items: BTreeMap<String, BTreeSet<String>>,
    /// The modules on the way here: a re-export may lead back to one.
    open: Vec<Vec<String>>,
}

impl Surface<'_> {
    fn add(&mut self, item: String, path: String) {
        self.items.entry(item).or_default().insert(path);
    }

    fn module(&mut self, module: &[String], shown: &str) {
        let Some(known) = self.library.modules.get(module).filter(|known| !known.test) else { return };
        if self.open.iter().any(|open| open == module) {
            return;
        }
        self.open.push(module.to_vec());
        for item in known.items.iter().filter(|item| !is_test(attributes(item)) && !is_hidden(attributes(item))) {
            match item {
                Item::Mod(item) if is_public(&item.vis) => {
                    let child: Vec<_> = module.iter().cloned().chain([item.ident.to_string()]).collect();
                    self.module(&child, &format!("{shown}::{}", item.ident));
                }
                Item::Use(item) if is_public(&item.vis) => {
                    for leaf in leaves(item) {
                        for target in self.library.resolve(module, &leaf.path) {
                            self.imported(&target, leaf.name.as_deref(), shown);
                        }
                    }
                }
                _ => {
                    if let Some(name) = public_name(item) {
                        let path: Vec<_> = module.iter().cloned().chain([name.clone()]).collect();
                        self.add(path.join("::"), format!("{shown}::{name}"));
                    }
                }
            }
        }
        self.open.pop();
    }

    /// `pub use target as name`, or all of the target for a glob.
    fn imported(&mut self, target: &[String], name: Option<&str>, shown: &str) {
        let own = target.strip_prefix(&["crate".to_owned()][..]);
        let is_module = own.is_some_and(|own| self.library.modules.contains_key(own));
        match (own, name) {
            (Some(own), None) => self.module(own, shown),
            (Some(own), Some(name)) if is_module => self.module(own, &format!("{shown}::{name}")),
            (Some(own), Some(name)) => self.add(own.join("::"), format!("{shown}::{name}")),
            (None, name) => self.add(target.join("::"), format!("{shown}::{}", name.unwrap_or("*"))),
        }
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => list.path.is_ident("doc") && list.tokens.to_string() == "hidden",
        _ => false,
    })
}

pub(super) fn public_name(item: &Item) -> Option<String> {
    let (visibility, name) = match item {
        Item::Const(item) => (&item.vis, &item.ident),
        Item::Enum(item) => (&item.vis, &item.ident),
        Item::Fn(item) => (&item.vis, &item.sig.ident),
        Item::Static(item) => (&item.vis, &item.ident),
        Item::Struct(item) => (&item.vis, &item.ident),
        Item::Trait(item) => (&item.vis, &item.ident),
        Item::TraitAlias(item) => (&item.vis, &item.ident),
        Item::Type(item) => (&item.vis, &item.ident),
        Item::Union(item) => (&item.vis, &item.ident),
        _ => return None,
    };
    is_public(visibility).then(|| name.to_string())
}
