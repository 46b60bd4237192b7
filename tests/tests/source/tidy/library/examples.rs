//! The examples of the public types and traits.

use syn::{Attribute, Expr, ExprLit, Item, Lit, Meta};

use super::imports::attributes;
use super::surface::public_name;
use super::{Library, is_test};

impl Library {
    /// The public types and traits without an example, by their paths for users. The documentation of each other one
    /// has a block of code, or a paragraph that names an item with an example: "[`Run`] has an example."
    pub(crate) fn without_example(&self) -> Vec<String> {
        let without = self.surface().into_iter().filter(|(item, _)| {
            let is_type = |item: &Item| {
                matches!(item, Item::Enum(_) | Item::Struct(_) | Item::Trait(_) | Item::Type(_) | Item::Union(_))
            };
            self.items(item).any(is_type) && !self.has_example(item) && !self.names_example(item)
        });
        without.flat_map(|(_, paths)| paths).collect()
    }

    /// The items under a path in the library. A type can have one definition for each feature.
    fn items(&self, path: &str) -> impl Iterator<Item = &Item> {
        let (module, name) = path.rsplit_once("::").unwrap_or(("", path));
        let module: Vec<_> = module.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let items = self.modules.get(&module).into_iter().flat_map(|module| &module.items);
        let name = name.to_owned();
        items.filter(move |item| !is_test(attributes(item)) && public_name(item).as_ref() == Some(&name))
    }

    fn has_example(&self, path: &str) -> bool {
        self.items(path).any(|item| documentation(attributes(item)).contains("```"))
    }

    /// Whether the documentation names an item with an example, or a method of a type with one.
    fn names_example(&self, path: &str) -> bool {
        let (module, name) = path.rsplit_once("::").unwrap_or(("", path));
        let module: Vec<_> = module.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let has_example = |link: &str| {
            let segments: Vec<_> = link.split("::").map(str::to_owned).collect();
            self.resolve(&module, &segments).into_iter().any(|resolved| {
                let named = match resolved.split_first() {
                    Some((first, rest)) if first == "crate" => rest.to_vec(),
                    // An item of the same module stands for itself.
                    _ => module.iter().cloned().chain(resolved).collect(),
                };
                let owner = &named[..named.len().saturating_sub(1)];
                self.has_example(&named.join("::")) || self.has_example(&owner.join("::"))
            })
        };
        self.items(path).any(|item| {
            let documentation = documentation(attributes(item));
            let mut paragraphs = documentation.split("\n\n").filter(|paragraph| paragraph.contains("example"));
            paragraphs.any(|paragraph| links(paragraph).any(|link| link != name && has_example(link)))
        })
    }
}

/// The text of the `///` lines.
fn documentation(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    });
    lines.map(|line| line.strip_prefix(' ').unwrap_or(&line).to_owned()).collect::<Vec<_>>().join("\n")
}

/// The paths of the links in a text: of "[`A`]" and "[`A`](b::A)", without the kind (`trait@`) and the place (`#..`).
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("[`").skip(1).filter_map(|rest| {
        let (shown, behind) = rest.split_once("`]")?;
        let target = behind.strip_prefix('(').and_then(|target| target.split(')').next()).unwrap_or(shown);
        let target = target.split_once('@').map_or(target, |(_, path)| path);
        target.split('#').next()
    })
}
