//! Requirements of the registry and the forge: metadata, package contents, licences, oldest compiler, repository files.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use crate::{read, root};

/// The published packages, with their folders and the pages of their documentation.
const PUBLISHED: [(&str, &str, &str); 4] = [
    ("tool-runtime", "tool-runtime", "https://docs.rs/tool-runtime"),
    ("tool-runtime-macros", "tool-macros", "https://docs.rs/tool-runtime"),
    ("tool-runtime-cli", "tool-runtime/cli", "https://docs.rs/tool-runtime-cli"),
    ("tool-runtime-sql", "tool-runtime/sql", "https://docs.rs/tool-runtime-sql"),
];
/// Adapters have a separate workspace, and each its own version and oldest compiler.
const ADAPTERS: [&str; 4] =
    ["tool-runtime-async-openai", "tool-runtime-genai", "tool-runtime-restate", "tool-runtime-rig"];
const ADAPTERS_MANIFEST: &str = "tool-runtime/adapters/Cargo.toml";
const REPOSITORY: &str = "https://github.com/tool-runtime/tool-runtime";

fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO")).current_dir(root()).args(arguments).output().unwrap();
    assert!(output.status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The folder of an adapter's package.
fn folder(adapter: &str) -> String {
    format!("tool-runtime/adapters/{}", adapter.trim_start_matches("tool-runtime-"))
}

/// The packages of the adapters' workspace without their dependencies, which need not be downloaded.
fn adapters() -> Value {
    let arguments =
        ["metadata", "--format-version", "1", "--offline", "--no-deps", "--manifest-path", ADAPTERS_MANIFEST];
    serde_json::from_str(&cargo(&arguments)).unwrap()
}

/// The resolved packages of the workspace.
fn metadata() -> Value {
    resolved("Cargo.toml")
}

/// The resolved packages of this machine's platform: those of other platforms need not be downloaded.
fn resolved(manifest: &str) -> Value {
    let version = cargo(&["--version", "--verbose"]);
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("cargo names its host");
    let arguments = ["metadata", "--format-version", "1", "--offline", "--locked", "--filter-platform", host];
    let arguments = [&arguments[..], &["--manifest-path", manifest]].concat();
    serde_json::from_str(&cargo(&arguments)).unwrap()
}

fn packages(metadata: &Value) -> &[Value] {
    metadata["packages"].as_array().unwrap()
}

fn package<'a>(metadata: &'a Value, name: &str) -> &'a Value {
    packages(metadata).iter().find(|package| package["name"] == name).unwrap_or_else(|| panic!("there is no {name}"))
}

#[test]
fn packages_have_what_a_registry_page_shows() {
    let (metadata, adapters) = (metadata(), adapters());
    let libraries = PUBLISHED.map(|(name, _, page)| (package(&metadata, name), name, page.to_owned()));
    let adapters = ADAPTERS.map(|name| (package(&adapters, name), name, format!("https://docs.rs/{name}")));
    for (package, name, documentation) in libraries.into_iter().chain(adapters) {
        assert_eq!(package["repository"], REPOSITORY, "{name}");
        assert_eq!(package["documentation"], documentation, "{name}");
        assert_eq!(package["license"], "MIT OR Apache-2.0", "{name}");
        for key in ["description", "readme", "rust_version"] {
            assert!(package[key].as_str().is_some_and(|text| !text.is_empty()), "{name} has no {key}");
        }
        for key in ["keywords", "categories"] {
            let count = package[key].as_array().unwrap().len();
            assert!((1..=5).contains(&count), "{name}: the registry takes one to five {key}, not {count}");
        }
        assert_ne!(package["publish"], serde_json::json!([]), "{name} cannot be published");
        if name != "tool-runtime-macros" {
            let docs = &package["metadata"]["docs"]["rs"];
            assert_eq!(docs["all-features"], true, "{name}");
            assert_eq!(docs["rustdoc-args"], serde_json::json!(["--cfg", "docsrs"]), "{name}");
        }
    }
    for (name, folder, _) in PUBLISHED.into_iter().filter(|(name, ..)| *name != "tool-runtime-macros") {
        assert!(read(format!("{folder}/src/lib.rs")).contains("#![cfg_attr(docsrs, feature(doc_cfg))]"), "{name}");
    }
}

#[test]
fn only_the_libraries_are_published() {
    for (metadata, published) in [(metadata(), &PUBLISHED.map(|(name, ..)| name)[..]), (adapters(), &ADAPTERS[..])] {
        let members = metadata["workspace_members"].as_array().unwrap();
        for package in packages(&metadata).iter().filter(|package| members.contains(&package["id"])) {
            let name = package["name"].as_str().unwrap();
            assert_eq!(package["publish"].is_null(), published.contains(&name), "{name}");
        }
    }
}

#[test]
fn adapters_have_the_lints_of_the_library() {
    let lints = |manifest| read(manifest).parse::<toml::Table>().unwrap()["workspace"]["lints"].clone();
    assert_eq!(lints(ADAPTERS_MANIFEST), lints("Cargo.toml"));
    for adapter in ADAPTERS {
        let manifest: toml::Table = read(format!("{}/Cargo.toml", folder(adapter))).parse().unwrap();
        assert_eq!(manifest["lints"]["workspace"].as_bool(), Some(true), "{adapter}");
        assert!(manifest["package"]["version"].is_str(), "{adapter} has its own version");
    }
}

#[test]
fn packages_hold_readme_and_licences_and_no_goldens() {
    let libraries = PUBLISHED.map(|(name, ..)| (name, "Cargo.toml"));
    for (name, manifest) in libraries.into_iter().chain(ADAPTERS.map(|name| (name, ADAPTERS_MANIFEST))) {
        // With a lock file, cargo would look up the dependencies of the adapters, which need not be downloaded.
        let options = ["--list", "--allow-dirty", "--offline", "--exclude-lockfile"];
        let list = cargo(&[&["package"], &options[..], &["--manifest-path", manifest, "-p", name]].concat());
        // Cargo writes the separators of the system.
        let list = list.replace('\\', "/");
        let files: BTreeSet<_> = list.lines().collect();
        for wanted in ["Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md", "src/lib.rs"] {
            assert!(files.contains(wanted), "{name} lacks {wanted}");
        }
        let stray = files.iter().find(|file| file.starts_with("tests/") || file.starts_with("adapters/"));
        assert_eq!(stray, None, "{name} carries test data or another package");
    }
}

#[test]
fn licence_texts_are_the_same_everywhere() {
    for file in ["LICENSE-APACHE", "LICENSE-MIT"] {
        let text = read(file);
        for folder in PUBLISHED.map(|(_, folder, _)| folder.to_owned()).into_iter().chain(ADAPTERS.map(folder)) {
            assert_eq!(read(format!("{folder}/{file}")), text, "{folder}/{file}");
        }
    }
}

/// Whether one alternative of an SPDX expression is allowed. Expressions nest one level at most.
fn is_allowed(expression: &str, allowed: &BTreeSet<&str>) -> bool {
    let expression = expression.replace('/', " OR ");
    let one = |term: &str| allowed.contains(term.trim());
    let any = |terms: &str| terms.trim().trim_matches(['(', ')']).split(" OR ").any(one);
    expression.split(" AND ").all(any)
}

#[test]
fn dependencies_have_licences_that_the_policy_allows() {
    let policy: toml::Table = read("deny.toml").parse().unwrap();
    let allowed = policy["licenses"]["allow"].as_array().unwrap();
    let allowed: BTreeSet<_> = allowed.iter().map(|one| one.as_str().unwrap()).collect();
    let exceptions = policy["licenses"]["exceptions"].as_array().unwrap();
    let mut exceptions: BTreeMap<_, _> =
        exceptions.iter().map(|one| (one["crate"].as_str().unwrap(), one["allow"][0].as_str().unwrap())).collect();
    let workspaces = if cfg!(feature = "adapters") { &["Cargo.toml", ADAPTERS_MANIFEST][..] } else { &["Cargo.toml"] };
    let workspaces: Vec<_> = workspaces.iter().map(|manifest| resolved(manifest)).collect();
    for package in workspaces.iter().flat_map(packages) {
        let licence = package["license"].as_str().unwrap_or_else(|| panic!("{} has no licence", package["name"]));
        // `+` is for later versions of the licence too.
        let excepted = exceptions.remove(package["name"].as_str().unwrap());
        let is_excepted = excepted.is_some_and(|one| one == licence.trim_end_matches('+'));
        assert!(is_excepted || is_allowed(licence, &allowed), "{}: {licence}", package["name"]);
    }
    assert!(exceptions.is_empty(), "no dependency needs {exceptions:?}");
    assert!(!is_allowed("GPL-3.0-only", &allowed));
    assert!(!is_allowed("(MIT OR Apache-2.0) AND GPL-3.0-only", &allowed));
}

fn minor(version: &Value) -> (u32, u32) {
    let Some(text) = version.as_str() else { return (0, 0) };
    let mut parts = text.split('.').map(|part| part.parse().unwrap());
    (parts.next().unwrap(), parts.next().unwrap_or(0))
}

/// The compiler that the guide states in the row of a package, or of a package's feature.
fn stated(row: &str) -> (u32, u32) {
    let page = read("docs/src/features.md");
    let row = page.lines().find(|line| line.starts_with(&format!("| {row} |"))).unwrap();
    let version = row.rsplit("Rust ").next().unwrap().trim_end_matches([' ', '|']);
    minor(&Value::from(version))
}

/// Checks a package with what it depends on, except for the dependencies that a feature brings.
fn compiles_with(metadata: &Value, oldest: (u32, u32), name: &str, brought: &[&str]) {
    let nodes = metadata["resolve"]["nodes"].as_array().unwrap();
    let mut open = vec![&package(metadata, name)["id"]];
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        let package = packages(metadata).iter().find(|package| package["id"] == *id).unwrap();
        if !seen.insert(id.as_str().unwrap()) || brought.contains(&package["name"].as_str().unwrap()) {
            continue;
        }
        let wanted = minor(&package["rust_version"]);
        assert!(wanted <= oldest, "{} asks for Rust {wanted:?}", package["name"]);
        let node = nodes.iter().find(|node| node["id"] == *id).unwrap();
        for dependency in node["deps"].as_array().unwrap() {
            if dependency["dep_kinds"].as_array().unwrap().iter().any(|kind| kind["kind"] != "dev") {
                open.push(&dependency["pkg"]);
            }
        }
    }
}

#[test]
fn no_dependency_asks_for_a_newer_compiler() {
    let metadata = metadata();
    let oldest = minor(&package(&metadata, "tool-runtime")["rust_version"]);
    compiles_with(&metadata, oldest, "tool-runtime", &[]);
    let store = minor(&package(&metadata, "tool-runtime-sql")["rust_version"]);
    compiles_with(&metadata, store, "tool-runtime-sql", &[]);
    let of_cli = minor(&package(&metadata, "tool-runtime-cli")["rust_version"]);
    compiles_with(&metadata, of_cli, "tool-runtime-cli", &["tool-runtime-sql"]);
    for feature in ["sqlite", "postgres"] {
        assert_eq!(stated(&format!("`tool-runtime-sql`, `{feature}`")), store, "the guide states another compiler");
    }
    for adapter in ADAPTERS {
        assert_eq!(minor(&package(&adapters(), adapter)["rust_version"]), stated(&format!("`{adapter}`")), "{adapter}");
    }
    if cfg!(feature = "adapters") {
        let metadata = resolved(ADAPTERS_MANIFEST);
        for adapter in ADAPTERS {
            compiles_with(&metadata, stated(&format!("`{adapter}`")), adapter, &[]);
        }
    }
    let (major, minor) = oldest;
    assert!(read("README.md").contains(&format!("Rust {major}.{minor}")), "README states another compiler");
    assert!(read(".github/workflows/ci.yml").contains(&format!("RUSTUP_TOOLCHAIN: \"{major}.{minor}\"")));
}

#[test]
fn the_repository_has_what_a_forge_looks_for() {
    let files = [
        ".gitattributes",
        ".github/ISSUE_TEMPLATE/bug.yml",
        ".github/ISSUE_TEMPLATE/config.yml",
        ".github/ISSUE_TEMPLATE/feature.yml",
        ".github/dependabot.yml",
        ".github/pull_request_template.md",
        ".github/workflows/ci.yml",
        ".github/workflows/release.yml",
        "CHANGELOG.md",
        "CODE_OF_CONDUCT.md",
        "CONTRIBUTING.md",
        "README.md",
        "SECURITY.md",
        "deny.toml",
        "llms.txt",
        "release-plz.toml",
        "tool-runtime/adapters/release-plz.toml",
        "template/cargo-generate.toml",
    ];
    for file in files {
        assert!(read(file).lines().count() > 1, "{file}");
    }
    let workflow = read(".github/workflows/ci.yml");
    for wanted in [
        "ubuntu-latest, macos-latest, windows-latest",
        "cargo test --workspace --no-fail-fast",
        "cargo fmt --all --check",
        "cargo-deny-action",
        "cargo-semver-checks-action",
        "--cfg docsrs",
        "tests/interop/run",
        "tool-runtime/adapters/check",
        "template/check",
    ] {
        assert!(workflow.contains(wanted), "ci.yml does not run {wanted}");
    }
}

#[test]
fn addresses_of_the_project_name_one_repository() {
    let files = ["CODE_OF_CONDUCT.md", "README.md", "SECURITY.md", "llms.txt", ".github/ISSUE_TEMPLATE/config.yml"];
    for file in files {
        for address in read(file).split("https://github.com/").skip(1) {
            assert!(address.starts_with("tool-runtime/tool-runtime"), "{file}: {}", address.lines().next().unwrap());
        }
    }
}
