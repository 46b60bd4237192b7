//! Tests that the lints of this crate refuse every way for a tool to reach the outside without a capability.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects")]
#![allow(unused_crate_dependencies, reason = "the crate's own dependencies are not this test's")]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "this test runs the lints; it is no tool")]

use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

/// Violations of the lints, each with the path that the message must name.
const VIOLATIONS: &[(&str, &str)] = &[
    ("let _ = std::env::vars().count();", "std::env::vars"),
    ("let _ = std::env::var(\"KEY\");", "std::env::var"),
    ("use std::env; let _ = env::args_os().count();", "std::env::args_os"),
    ("let _ = std::fs::remove_dir_all(\"data\");", "std::fs::remove_dir_all"),
    ("use std::fs::read as get; let _ = get(\"data\");", "std::fs::read"),
    ("let _ = std::fs::OpenOptions::new();", "std::fs::OpenOptions"),
    ("let _ = std::fs::File::create(\"data\");", "std::fs::File"),
    ("let _ = std::fs::DirBuilder::new();", "std::fs::DirBuilder"),
    ("let _ = std::path::Path::new(\"data\").exists();", "std::path::Path::exists"),
    ("let _ = std::net::TcpListener::bind(\"127.0.0.1:0\");", "std::net::TcpListener"),
    ("let _ = std::net::UdpSocket::bind(\"127.0.0.1:0\");", "std::net::UdpSocket"),
    ("use std::net::ToSocketAddrs; let _ = \"localhost:1\".to_socket_addrs();", "to_socket_addrs"),
    ("let _ = std::process::Command::new(\"sh\");", "std::process::Command"),
    ("std::process::exit(1);", "std::process::exit"),
    ("let _ = std::time::SystemTime::now();", "std::time::SystemTime::now"),
    ("std::thread::sleep(std::time::Duration::ZERO);", "std::thread::sleep"),
    ("let _ = std::io::stdin();", "std::io::stdin"),
];

/// Returns the messages of the lints about a source.
fn lint(name: &str, source: &str) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join(name);
    std::fs::write(&file, source).unwrap();
    let output = Command::new("clippy-driver")
        .env("CLIPPY_CONF_DIR", env!("CARGO_MANIFEST_DIR"))
        .args(["--crate-type", "lib", "--edition", "2024", "--emit", "metadata", "-D", "clippy::disallowed_methods"])
        .args(["-D", "clippy::disallowed_types", "--out-dir"])
        .args([folder, &file])
        .output();
    match output {
        Ok(output) => String::from_utf8(output.stderr).unwrap(),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            panic!("this test runs `clippy-driver`: install it with `rustup component add clippy`")
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn every_way_past_the_capabilities_is_refused() {
    let functions = VIOLATIONS.iter().enumerate().map(|(at, (code, _))| format!("pub fn f{at}() {{ {code} }}\n"));
    let said = lint("violations.rs", &functions.collect::<String>());
    let errors: Vec<_> = said.split("\n\n").filter(|error| error.contains("error: use of a disallowed")).collect();
    for (at, (code, path)) in VIOLATIONS.iter().enumerate() {
        let line = format!("violations.rs:{}:", at + 1);
        let refused = errors.iter().any(|error| error.contains(&line) && error.contains(path));
        assert!(refused, "`{code}` passes\n{said}");
    }
}

#[test]
fn what_reaches_nothing_is_allowed() {
    let said = lint("harmless.rs", "pub fn f() -> usize { let list = vec![1]; list.len() }\n");
    assert!(!said.contains("disallowed"), "{said}");
}
