//! How the files of a library depend on each other, where the methods of a type are, and where folders have their
//! files.

use std::collections::{BTreeMap, BTreeSet};

use syn::{Item, Type};

use super::imports::{attributes, segments};
use super::{Library, is_test, paths};

/// The files that each file imports.
type Arrows = BTreeMap<String, BTreeSet<String>>;

impl Library {
    /// The circles of files that import each other, the largest first.
    ///
    /// A re-export is a door, not an import: who goes through it imports the file behind it. A path to a module above,
    /// as in `pub(in crate::runner)`, imports nothing.
    pub(crate) fn circles(&self) -> Vec<BTreeSet<String>> {
        let arrows = self.arrows();
        let reached: BTreeMap<_, _> = arrows.keys().map(|file| (file, reach(&arrows, file))).collect();
        let mut circles = BTreeSet::new();
        for (file, others) in &reached {
            let back = |other: &&String| reached.get(other).is_some_and(|files| files.contains(*file));
            let circle: BTreeSet<_> = others.iter().filter(back).cloned().collect();
            if circle.len() > 1 {
                circles.insert(circle);
            }
        }
        let mut circles: Vec<_> = circles.into_iter().collect();
        circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
        circles
    }

    fn arrows(&self) -> Arrows {
        let mut arrows = Arrows::new();
        for (path, module) in self.modules.iter().filter(|(_, module)| !module.test) {
            let from = arrows.entry(module.file.clone()).or_default();
            for named in paths::named(self, path, module).into_iter().filter(|named| !named.is_door) {
                if let Some(file) = self.file_of_path(path, &named.path).filter(|file| *file != module.file) {
                    from.insert(file);
                }
            }
        }
        arrows
    }

    /// The file of the item that a path names. `None` for other crates, and for a module above the one that names it.
    fn file_of_path(&self, from: &[String], path: &str) -> Option<String> {
        let path: Vec<_> = path.strip_prefix("crate::")?.split("::").map(str::to_owned).collect();
        let module =
            (1..=path.len()).rev().map(|length| &path[..length]).find(|part| self.modules.contains_key(*part))?;
        let is_above = module.len() == path.len() && from.starts_with(module);
        self.modules.get(module).filter(|found| !is_above && !found.test).map(|found| found.file.clone())
    }

    /// The files in which each type has inherent methods, by the path of the type.
    pub(crate) fn methods(&self) -> BTreeMap<String, BTreeSet<&str>> {
        let mut found: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for (path, module) in self.modules.iter().filter(|(_, module)| !module.test) {
            for item in module.items.iter().filter(|item| !is_test(attributes(item))) {
                let Item::Impl(item) = item else { continue };
                if item.trait_.is_some() {
                    continue;
                }
                if let Type::Path(ty) = &*item.self_ty {
                    for resolved in self.resolve(path, &segments(&ty.path)) {
                        // A name of the module's own stands for itself.
                        let is_own = resolved.first().is_none_or(|first| first != "crate");
                        let start = ["crate".to_owned()].into_iter().chain(path.iter().cloned()).filter(|_| is_own);
                        let whole: Vec<_> = start.chain(resolved).collect();
                        found.entry(whole.join("::")).or_default().insert(module.file.as_str());
                    }
                }
            }
        }
        found
    }

    /// The files that are not where their module's name says: `x/mod.rs`, and `x/x.rs`, in place of `x.rs`.
    pub(crate) fn misplaced(&self) -> Vec<&str> {
        let is_misplaced = |file: &&str| {
            let Some((folders, name)) = file.rsplit_once('/') else { return false };
            let folder = folders.rsplit('/').next().unwrap_or(folders);
            name == "mod.rs" || name.strip_suffix(".rs") == Some(folder)
        };
        self.files().into_iter().filter(is_misplaced).collect()
    }
}

/// The files that a file leads to.
fn reach(arrows: &Arrows, from: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut next = vec![from];
    while let Some(file) = next.pop() {
        for other in arrows.get(file).into_iter().flatten() {
            if found.insert(other.clone()) {
                next.push(other);
            }
        }
    }
    found
}
