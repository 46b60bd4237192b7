//! What the registry and the forge need: metadata, package contents, licences, oldest compiler, repository files.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test says what it expects")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const PUBLISHED: [&str; 3] = ["tool-runtime", "tool-runtime-cli", "tool-runtime-macros"];
const REPOSITORY: &str = "https://github.com/tool-runtime/tool-runtime";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO")).current_dir(root()).args(arguments).output().unwrap();
    assert!(output.status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The resolved packages of this machine's platform: those of other platforms need not be downloaded.
fn metadata() -> Value {
    let version = cargo(&["--version", "--verbose"]);
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("cargo names its host");
    let arguments = ["metadata", "--format-version", "1", "--offline", "--locked", "--filter-platform", host];
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
    let metadata = metadata();
    for name in PUBLISHED {
        let package = package(&metadata, name);
        assert_eq!(package["repository"], REPOSITORY, "{name}");
        // The macros are documented where they are re-exported.
        let documented = name.trim_end_matches("-macros");
        assert_eq!(package["documentation"], format!("https://docs.rs/{documented}"), "{name}");
        assert_eq!(package["license"], "MIT OR Apache-2.0", "{name}");
        for key in ["description", "readme", "rust_version"] {
            assert!(package[key].as_str().is_some_and(|text| !text.is_empty()), "{name} has no {key}");
        }
        for key in ["keywords", "categories"] {
            let count = package[key].as_array().unwrap().len();
            assert!((1..=5).contains(&count), "{name}: the registry takes one to five {key}, not {count}");
        }
        assert_ne!(package["publish"], serde_json::json!([]), "{name} cannot be published");
    }
    for (name, folder) in [("tool-runtime", "tool-runtime"), ("tool-runtime-cli", "tool-runtime/cli")] {
        let docs = &package(&metadata, name)["metadata"]["docs"]["rs"];
        assert_eq!(docs["all-features"], true, "{name}");
        assert_eq!(docs["rustdoc-args"], serde_json::json!(["--cfg", "docsrs"]), "{name}");
        assert!(read(&format!("{folder}/src/lib.rs")).contains("#![cfg_attr(docsrs, feature(doc_cfg))]"), "{name}");
    }
}

#[test]
fn only_the_libraries_are_published() {
    let metadata = metadata();
    let members = metadata["workspace_members"].as_array().unwrap();
    for package in packages(&metadata).iter().filter(|package| members.contains(&package["id"])) {
        let name = package["name"].as_str().unwrap();
        assert_eq!(package["publish"].is_null(), PUBLISHED.contains(&name), "{name}");
    }
}

#[test]
fn packages_hold_readme_and_licences_and_no_goldens() {
    for name in PUBLISHED {
        let list = cargo(&["package", "--list", "--allow-dirty", "--offline", "-p", name]);
        // Cargo writes the separators of the system.
        let list = list.replace('\\', "/");
        let files: BTreeSet<_> = list.lines().collect();
        for wanted in ["Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md", "src/lib.rs"] {
            assert!(files.contains(wanted), "{name} lacks {wanted}");
        }
        let stray = files.iter().find(|file| file.starts_with("tests/"));
        assert_eq!(stray, None, "{name} carries test data");
    }
}

#[test]
fn licence_texts_are_the_same_everywhere() {
    for file in ["LICENSE-APACHE", "LICENSE-MIT"] {
        let text = read(file);
        for folder in ["tool-macros", "tool-runtime", "tool-runtime/cli"] {
            assert_eq!(read(&format!("{folder}/{file}")), text, "{folder}/{file}");
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
    let metadata = metadata();
    for package in packages(&metadata) {
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

/// The compiler that README.md states for a feature.
fn stated(feature: &str) -> (u32, u32) {
    let readme = read("README.md");
    let row = readme.lines().find(|line| line.starts_with(&format!("| `{feature}` |"))).unwrap();
    let version = row.rsplit("Rust ").next().unwrap().trim_end_matches([' ', '|']);
    minor(&Value::from(version))
}

/// Checks a package with what it depends on, except for the dependencies that a feature brings.
fn compiles_with(oldest: (u32, u32), name: &str, brought: &[&str]) {
    let metadata = metadata();
    let nodes = metadata["resolve"]["nodes"].as_array().unwrap();
    let mut open = vec![&package(&metadata, name)["id"]];
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        let package = packages(&metadata).iter().find(|package| package["id"] == *id).unwrap();
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
    let oldest = minor(&package(&metadata(), "tool-runtime")["rust_version"]);
    compiles_with(oldest, "tool-runtime", &["sqlx"]);
    let of_cli = minor(&package(&metadata(), "tool-runtime-cli")["rust_version"]);
    compiles_with(of_cli, "tool-runtime-cli", &["sqlx"]);
    for feature in ["sqlite", "postgres"] {
        compiles_with(stated(feature), "sqlx", &[]);
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
