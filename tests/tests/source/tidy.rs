//! Checks the house rules that the compiler does not check: permitted imports, the length of files, forbidden content.

mod cases;
mod documents;
mod library;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use library::{Library, Named};

use crate::root;

/// The layers of `tool-runtime`, lowest first. A module imports its own layer and lower ones only.
const LAYERS: &[&[&str]] = &[
    &["contain", "error", "media", "text", "tool"],
    &["capability"],
    &["call"],
    &["component"],
    &["json"],
    &["schema"],
    &["redact", "policy"],
    &["registration"],
    &["private"],
    &["catalog"],
    &["hydrate"],
    &["store"],
    &["runner"],
    &["agent", "testing"],
    &["mcp"],
    &["__workspace"],
];

/// From this layer on `wire` may be imported.
const LOOP: &str = "agent";

/// `wire` is next to the layers: it imports nothing above `json`, and only the outermost ones import it.
const WIRE: &str = "wire";

fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a readable folder") {
            let path = entry.expect("a readable entry").path();
            if path.is_dir() {
                if !matches!(path.file_name().and_then(|name| name.to_str()), Some("target" | "fixtures" | ".git")) {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a readable source");
                found.push((path, text));
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "no sources below {}", folder.display());
    found
}

/// The libraries of the workspace, by the name that code knows them by, and their folders.
const LIBRARIES: &[(&str, &str)] = &[
    ("tool_runtime_macros", "tool-macros/src"),
    ("tool_runtime", "tool-runtime/src"),
    ("tool_runtime_sql", "tool-runtime/sql/src"),
    ("tool_runtime_async_openai", "tool-runtime/adapters/async-openai/src"),
    ("tool_runtime_genai", "tool-runtime/adapters/genai/src"),
    ("tool_runtime_restate", "tool-runtime/adapters/restate/src"),
    ("tool_runtime_rig", "tool-runtime/adapters/rig/src"),
    ("tool_runtime_cli", "tool-runtime/cli/src"),
    ("office_tools", "examples/office-tools/src"),
    ("toolbox", "examples/toolbox/src"),
];

fn runtime() -> Library {
    Library::read("tool_runtime", &root().join("tool-runtime/src"))
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|modules| modules.contains(&module))
}

/// The imports that point upwards in the layers. The root names every layer, and no layer names the root.
fn upwards(library: &Library) -> Vec<String> {
    let mut wrong = Vec::new();
    for Named { place, path, .. } in library.named() {
        let Some(imported) = path.strip_prefix("crate::").and_then(|path| path.split("::").next()) else { continue };
        let module = place.module.as_str();
        if module.is_empty() {
            continue;
        }
        let allowed = match (layer(module), layer(imported)) {
            (Some(own), Some(other)) => other <= own,
            (None, Some(other)) if module == WIRE => layer("json").is_some_and(|json| other <= json),
            (Some(own), None) if imported == WIRE => layer(LOOP).is_some_and(|from| own >= from),
            (None, None) => module == WIRE && imported == WIRE,
            _ => false,
        };
        if !allowed {
            wrong.push(format!("{}:{}: `{module}` must not import `{path}`", place.file, place.line));
        }
    }
    wrong
}

#[test]
fn layers_import_downwards_only() {
    let wrong = upwards(&runtime());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The most files that may import each other, and in which the methods of one type may stand.
const MOST_FILES: usize = 3;

/// Calls `check` with every library of the workspace, and fails with what it finds.
fn in_every_library(check: impl Fn(&Library) -> Vec<String>) {
    let mut wrong = Vec::new();
    for (name, folder) in LIBRARIES {
        wrong
            .extend(check(&Library::read(name, &root().join(folder))).iter().map(|wrong| format!("{folder}: {wrong}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Circles of more than [`MOST_FILES`] files that import each other.
fn knotted(library: &Library) -> Vec<String> {
    let large = library.circles().into_iter().filter(|circle| circle.len() > MOST_FILES);
    large.map(|circle| format!("{} files import each other ({})", circle.len(), joined(circle))).collect()
}

#[test]
fn no_circle_of_imports_is_large() {
    in_every_library(knotted);
}

/// Types with methods in more than [`MOST_FILES`] files: rustdoc shows one page for a type.
fn scattered(library: &Library) -> Vec<String> {
    let many = library.methods().into_iter().filter(|(_, files)| files.len() > MOST_FILES);
    many.map(|(ty, files)| format!("{} files have methods of `{ty}` ({})", files.len(), joined(files))).collect()
}

fn joined(names: impl IntoIterator<Item = impl Into<String>>) -> String {
    names.into_iter().map(Into::into).collect::<Vec<_>>().join(", ")
}

#[test]
fn the_methods_of_a_type_stand_together() {
    in_every_library(scattered);
}

/// Files of another layout.
fn misplaced(library: &Library) -> Vec<String> {
    let misplaced = library.misplaced().into_iter();
    misplaced.map(|file| format!("{file}: a module `x` is in `x.rs`, with its children in the folder `x`")).collect()
}

#[test]
fn folders_have_one_layout() {
    in_every_library(misplaced);
}

/// Things that only the given places of `tool-runtime/src` may name: a path with everything below it, a `macro!`, or a
/// `.method`.
const CONFINED: &[(&[&str], &[&str])] = &[
    (&["std::env"], &[]),
    (&["std::fs", ".canonicalize", ".exists", ".is_dir", ".is_file", ".metadata", ".read_dir"], &["policy/"]),
    (&["std::net", "tokio::net", ".to_socket_addrs"], &["mcp/serve/"]),
    (&["std::process", "tokio::signal"], &["mcp/source/stdio.rs"]),
    (&["tokio::process", "rustix"], &["mcp/source/process.rs", "mcp/source/stdio.rs"]),
    (&["tokio::fs", "std::thread::sleep", "std::thread::spawn"], &[]),
    (&["std::io::stdin", "std::io::stdout", "std::io::stderr"], &[]),
    (&["print!", "println!", "eprint!", "dbg!", "include!"], &[]),
    // `assert_catalog_ok!` is expanded in a test, and the cases for stores run in one.
    (&["eprintln!"], &["lib.rs", "store/conformance.rs"]),
    (&["std::time::SystemTime", "std::time::UNIX_EPOCH", "jiff::Zoned::now"], &[]),
    (&["jiff::Timestamp::now"], &["store/clock.rs", "agent/http/"]),
    (&["std::time::Instant"], &["hydrate/", "store/clock.rs"]),
    (&["rustls", "webpki_roots"], &["agent/http/"]),
    (&["reqwest"], &["agent/http/", "mcp/source/http/"]),
    (&["jsonschema"], &["schema/"]),
    (&["rhai"], &["agent/code/"]),
    (&["rmcp"], &["mcp/"]),
    (&["http_body_util", "hyper", "hyper_util", "tower_service"], &["mcp/serve/"]),
    (&["cedar_policy", "stacker"], &["policy/cedar/"]),
    (&["clap"], &[]),
    (&["inventory::iter"], &["catalog/build.rs"]),
];

/// The names of confined things outside their places.
fn unconfined(library: &Library, confined: &[(&[&str], &[&str])]) -> Vec<String> {
    let mut wrong = Vec::new();
    for Named { place, path, .. } in library.named() {
        for (things, places) in confined {
            let named = things.iter().any(|thing| names(&path, thing));
            // A folder is a place with the file that it belongs to: `hydrate/` with `hydrate.rs`.
            let head = |allowed: &str| allowed.strip_suffix('/').is_some_and(|it| place.file == format!("{it}.rs"));
            if named && !places.iter().any(|allowed| place.file.starts_with(allowed) || head(allowed)) {
                wrong.push(format!("{}:{}: `{path}` belongs to {places:?} only", place.file, place.line));
            }
        }
    }
    wrong
}

/// Whether the path is the thing, lies below it, or is a glob that brings it in. `core` and `alloc` are parts of `std`.
fn names(path: &str, thing: &str) -> bool {
    let path = match path.split_once("::") {
        Some(("core" | "alloc", rest)) => format!("std::{rest}"),
        _ => path.to_owned(),
    };
    let below = |path: &str, thing: &str| {
        path.strip_prefix(thing).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    below(&path, thing) || path.strip_suffix("::*").is_some_and(|from| below(thing, from))
}

/// The same for the command line, whose places are its own.
const CONFINED_CLI: &[(&[&str], &[&str])] = &[
    (&["std::env"], &["args.rs", "chat/model.rs", "config.rs", "lib.rs", "mcp/", "terminal.rs", "webhook.rs"]),
    (&["std::net", "tokio::net", ".to_socket_addrs"], &["mcp/"]),
    (&["tokio::process", "rustix"], &["mcp/"]),
    (&["tokio::fs", "std::thread::sleep", "std::thread::spawn"], &[]),
    (&["print!", "println!", "eprint!", "eprintln!", "dbg!", "include!"], &[]),
    (&["reqwest", "rustls", "jsonschema", "rmcp", "hyper", "cedar_policy"], &[]),
    (&["tool_runtime_sql"], &["store.rs"]),
    (&["tool_runtime::__workspace"], &[]),
];

#[test]
fn what_the_command_line_touches_is_confined() {
    let library = Library::read("tool_runtime_cli", &root().join("tool-runtime/cli/src"));
    let wrong = unconfined(&library, CONFINED_CLI);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The command line is a guest: the library is the same whether an application embeds it or not.
#[test]
fn the_library_does_not_know_its_command_line() {
    let needle = ["feature = ", "\"cli\""].concat();
    for (path, text) in sources(&root().join("tool-runtime/src")) {
        assert!(!text.contains(&needle), "{}: {needle}", path.display());
    }
}

#[test]
fn what_touches_the_world_is_confined() {
    let wrong = unconfined(&runtime(), CONFINED);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Authors' tools reach the world through capabilities, and macros through the item that they are given. One message of
/// a macro depends on its source file.
#[test]
fn tools_and_macros_touch_nothing() {
    let reader: &[&str] = &["surroundings.rs"];
    for (name, folder, readers) in
        [("office_tools", "examples/office-tools/src", &[][..]), ("tool_runtime_macros", "tool-macros/src", reader)]
    {
        let places = |things: &[&str]| if things.contains(&"std::fs") { readers } else { &[] };
        let everything: Vec<_> = CONFINED.iter().map(|(things, _)| (*things, places(things))).collect();
        let wrong = unconfined(&Library::read(name, &root().join(folder)), &everything);
        assert!(wrong.is_empty(), "{folder}: {}", wrong.join("\n"));
    }
}

/// Adapters are separate packages: the library names none of the crates that they are for, and they name no item that
/// the library's documentation hides.
#[test]
fn adapters_are_beside_the_library() {
    let crates: &[(&[&str], &[&str])] = &[(&["async_openai", "genai", "restate_sdk", "rig_core"], &[])];
    let mut wrong = unconfined(&runtime(), crates);
    for (name, folder) in LIBRARIES.iter().filter(|(_, folder)| folder.starts_with("tool-runtime/adapters/")) {
        let hidden = |path: &str| path.starts_with("tool_runtime::") && path.contains("::__");
        let library = Library::read(name, &root().join(folder));
        let named = library.named().into_iter().filter(|named| hidden(&named.path));
        wrong
            .extend(named.map(|Named { place, path, .. }| format!("{folder}/{}:{}: `{path}`", place.file, place.line)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The most public items that the library may have. The number only gets smaller: a new item takes the place of one
/// that users do not need as a name of its own.
const MOST_ITEMS: usize = 200;

/// The items that users can name are in `tests/tests/source/surface.txt`, so that a review sees each addition.
/// `REFRESH_SURFACE=1` writes the file again.
#[test]
fn the_public_surface_is_the_reviewed_one() {
    let surface = runtime().surface();
    let paths: Vec<_> = surface.values().flatten().map(String::as_str).collect::<BTreeSet<_>>().into_iter().collect();
    let file = root().join("tests/tests/source/surface.txt");
    if std::env::var_os("REFRESH_SURFACE").is_some() {
        fs::write(&file, paths.join("\n") + "\n").expect("a writable file");
    }
    let reviewed = fs::read_to_string(&file).expect("surface.txt");
    let reviewed: BTreeSet<_> = reviewed.lines().collect();
    let added: Vec<_> = paths.iter().filter(|path| !reviewed.contains(**path)).collect();
    let gone: Vec<_> = reviewed.iter().filter(|path| !paths.contains(path)).collect();
    assert!(added.is_empty() && gone.is_empty(), "added: {added:#?}, gone: {gone:#?}; see REFRESH_SURFACE");
    assert!(surface.len() <= MOST_ITEMS, "{} public items", surface.len());
}

#[test]
fn public_types_and_traits_have_examples() {
    let without = runtime().without_example();
    assert!(
        without.is_empty(),
        "without an example; write one, or name the type whose example shows them (\"[`X`] has an example.\"): {without:#?}"
    );
}

#[test]
fn every_source_belongs_to_a_module() {
    for (name, folder) in LIBRARIES {
        let orphans = Library::read(name, &root().join(folder)).orphans;
        assert!(orphans.is_empty(), "no `mod` of {folder} declares {orphans:?}");
    }
}

#[test]
fn files_say_what_they_are_for_and_why_they_are_long() {
    let mut wrong = Vec::new();
    for (name, folder) in LIBRARIES {
        for file in Library::read(name, &root().join(folder)).files() {
            let relative = format!("{folder}/{file}");
            let text = fs::read_to_string(root().join(&relative)).expect("a readable source");
            let length = text.lines().count();
            let head: String = text.lines().take_while(|line| line.starts_with("//!")).collect();
            if length > 400 && !head.contains("long") {
                wrong.push(format!(
                    "{relative}: {length} lines; split it if it holds two concepts, or say in its head why it is long"
                ));
            }
            if text.contains("#[path") {
                wrong.push(format!("{relative}: a module has the path that its name says, without `#[path]`"));
            }
            if !text.starts_with("//!") {
                wrong.push(format!("{relative}: begins without a `//!` sentence of purpose"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nothing_is_left_undone() {
    // Spelled apart, so that this file holds none of them.
    let needles =
        [["to", "do!("], ["unimple", "mented!("], ["db", "g!("], ["#[ign", "ore"]].map(|parts| parts.concat());
    let mut wrong = Vec::new();
    for (path, text) in sources(&root()) {
        for needle in needles.iter().filter(|needle| text.contains(needle.as_str())) {
            wrong.push(format!("{}: {needle}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
