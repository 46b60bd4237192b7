//! Programs that the macros refuse, each with the exact messages of the pinned compiler.
//!
//! `TRYBUILD=overwrite` writes the answers again; read the diff. The package depends on what authors depend on and on
//! the runtime without features, so that no command line and no HTTP client is compiled for the cases. Other compilers
//! word their own errors differently; `tests/tests/source/ui.rs` compares the first lines under any of them.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::process::Command;
use std::{env, fs};

/// The compiler that wrote the `.stderr` files.
const PINNED: &str = "1.95.0";

#[test]
fn refused_at_the_token_to_edit() {
    let rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())).arg("--version").output().unwrap();
    if !String::from_utf8(rustc.stdout).unwrap().starts_with(&format!("rustc {PINNED} ")) {
        return;
    }
    let cases = trybuild::TestCases::new();
    for entry in fs::read_dir(env!("CARGO_MANIFEST_DIR")).unwrap() {
        let topic = entry.unwrap();
        let name = topic.file_name().into_string().unwrap();
        if topic.file_type().unwrap().is_dir() && name != "pass" {
            cases.compile_fail(format!("{name}/*.rs"));
        }
    }
}
