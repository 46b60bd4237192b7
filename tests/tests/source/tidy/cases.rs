//! The rules of `tidy` tried on small crates: each ordinary way of importing is seen, and allowed imports pass.

use std::collections::BTreeMap;

use super::library::Library;
use super::{CONFINED, knotted, misplaced, scattered, unconfined, upwards};

/// A crate with one module below, `store`, that holds the source, and some for it to name.
fn library(store: &str) -> Library {
    let sources = [
        (
            "lib.rs",
            "extern crate self as tool_runtime;\npub mod call; pub mod runner; pub mod store; pub use runner::Run;",
        ),
        ("call.rs", "pub struct Event;"),
        ("runner.rs", "pub struct Run; pub mod stages { pub fn bind() {} }"),
        ("store/mod.rs", store),
        ("store/chain.rs", "pub struct Chain;"),
        ("store/unit.rs", "use crate::runner::Run; use std::fs;"),
    ];
    Library::parse("tool_runtime", &BTreeMap::from(sources.map(|(file, text)| (file.to_owned(), text))))
}

#[track_caller]
fn each(sources: &[&str], wrong: impl Fn(&Library) -> Vec<String>, expected: bool) {
    for source in sources {
        let found = wrong(&library(source));
        assert_eq!(!found.is_empty(), expected, "{source}\n{found:?}");
    }
}

#[test]
fn every_way_of_importing_upwards_is_seen() {
    let ways = [
        "use crate::runner::Run;",
        "use crate::runner;",
        "use crate::{call::Event, runner::Run};",
        "use crate::{call::Event, runner::{self, Run}};",
        "use super::runner::Run;",
        "mod inner { use super::super::runner::Run; }",
        "mod inner { mod deeper { use super::super::super::runner::Run; } }",
        "mod inner { use self::super::super::runner::Run; }",
        "use tool_runtime::runner::Run;",
        "use ::tool_runtime::runner::Run;",
        "use tool_runtime::{call, runner};",
        "use crate::Run;",
        "use crate as whole; fn f() { whole::runner::stages::bind() }",
        "use tool_runtime as whole; type R = whole::runner::Run;",
        "use super as up; use up::runner::Run;",
        "extern crate self as me; use me::runner::Run;",
        "use crate::*;",
        "use super::*;",
        "mod inner { use super::super::*; }",
        "pub use crate::runner::Run;",
        "pub(crate) use crate::runner::Run as R;",
        "fn f(run: crate::runner::Run) {}",
        "fn f() { crate::runner::stages::bind() }",
        "fn f() { let g = super::runner::stages::bind; }",
        "fn f() { use crate::runner::Run; }",
        "impl Clone for crate::runner::Run {}",
        "fn f<T: crate::runner::Bound>() {}",
        "fn f() -> Box<dyn Fn(crate::runner::Run)> {}",
        "fn f() { <crate::runner::Run>::new(); }",
        "fn f() { match x { crate::runner::Run => {} } }",
        "const R: Option<crate::runner::Run> = None;",
        "#[derive(crate::runner::Derive)] struct S;",
        "struct S { #[serde(with = \"crate::runner::stages\")] field: u8 }",
        "fn f() { assert_eq!(1, crate::runner::stages::bind()); }",
        "macro_rules! m { () => { $crate::runner::stages::bind() } }",
        "macro_rules! m { () => { use $crate::{call, runner::Run}; } }",
        "#[cfg(test)] mod unit; use crate::runner::Run;",
        "#[cfg(test)] mod tests {} fn f() { crate::runner::stages::bind() }",
        "#[cfg(test)] use crate::runner::stages; use crate::runner::Run;",
        "#[cfg(any(test, feature = \"cli\"))] use crate::runner::Run;",
        "#[cfg(not(test))] use crate::runner::Run;",
        "#[cfg(feature = \"cli\")] mod inner { use crate::runner::Run; }",
        "use crate::call::Event; mod inner { use crate::runner::Run; }",
    ];
    each(&ways, upwards, true);
}

#[test]
fn what_may_be_imported_passes() {
    let ways = [
        "use crate::call::Event;",
        "use crate::{call::Event, store::chain::Chain}; mod chain;",
        "use super::call::Event;",
        "mod chain; use chain::Chain; fn f() { self::chain::Chain::new() }",
        "mod inner { use super::super::call::Event; }",
        "/// `crate::runner::Run`, and in code: `use crate::runner::Run;`\nfn f() { \"crate::runner::Run\"; }",
        "// use crate::runner::Run;",
        "#[cfg(test)] mod unit;",
        "#[cfg(test)] mod tests { use crate::runner::Run; }",
        "#[cfg(test)] use crate::runner::Run;",
        "#[cfg(all(test, feature = \"cli\"))] use crate::runner::Run;",
        "#[test] fn f() { crate::runner::stages::bind() }",
        "#[tokio::test(start_paused = true)] async fn f() { crate::runner::stages::bind() }",
        "impl S { #[cfg(test)] fn f() { crate::runner::stages::bind() } }",
        "mod runner { pub struct Run; } use runner::Run; fn f() { runner::Run::new() }",
        "use other::runner::Run;",
    ];
    each(&ways, upwards, false);
}

#[test]
fn every_way_into_the_world_is_seen() {
    let ways = [
        "use std::fs;",
        "use std::{env, path::Path};",
        "use std::{collections::BTreeMap, fs::{self, File}};",
        "use std::net::TcpStream;",
        "use ::std::fs::read;",
        "use std as s; fn f() { s::fs::read(path); }",
        "use std::{self as s}; fn f() { s::env::var(name); }",
        "use std::fs as disk;",
        "extern crate std as s; fn f() { s::process::exit(1) }",
        "use std::*;",
        "use std::fs::*;",
        "fn f() { std::fs::read(path); }",
        "fn f() { ::std::process::Command::new(name); }",
        "fn f(file: std::fs::File) {}",
        "fn f() { paths.map(std::fs::read); }",
        "use std::io; fn f() { io::stdout().lock(); }",
        "fn f() { path.exists(); }",
        "fn f() { format!(\"{:?}\", path.canonicalize()); }",
        "fn f() { println!(); }",
        "fn f() { std::eprintln!(\"text\"); }",
        "fn f() { matches!(x, y if { println!(); true }); }",
        "use std::time::{Duration, SystemTime};",
        "use std::time; fn f() { time::SystemTime::now(); }",
        "fn f() { <std::time::SystemTime>::now(); }",
        "type Clock = std::time::SystemTime; fn f() { Clock::now(); }",
        "use std::time::Instant;",
        "use jiff::Timestamp; fn f() { Timestamp::now(); }",
        "use jiff::Timestamp as T; fn f() { option.unwrap_or_else(T::now); }",
        "type T = jiff::Timestamp; fn f() { T::now(); }",
        "fn f() { <jiff::Timestamp>::now(); }",
        "fn f() { log!(at = jiff::Timestamp::now()); }",
        "use tokio::{net::TcpStream, time};",
        "use tokio; fn f() { tokio::fs::read(path); }",
        "use tokio::process::Command;",
        "macro_rules! read { ($p:expr) => { ::std::fs::read($p) } }",
        "macro_rules! m { () => { use std::{fs, io}; } }",
        "struct S { #[serde(default = \"std::env::temp_dir\")] folder: u8 }",
        "#[cfg(test)] mod tests {} use std::fs;",
        "mod inner { use std::fs; }",
        "pub(crate) use std::fs as disk; mod inner { fn f() { super::disk::read(path); } }",
        "mod inner { use super::*; fn f() { fs::read(path); } } use std::fs;",
        "include!(\"elsewhere.rs\");",
    ];
    each(&ways, |library| unconfined(library, CONFINED), true);
}

#[test]
fn code_without_side_effects_passes() {
    let ways = [
        "use std::{collections::BTreeMap, io::Write, path::Path, time::Duration};",
        "use jiff::Timestamp; fn f(now: Timestamp) -> Timestamp { now.round(unit) }",
        "use tokio::time::Instant; fn f() { Instant::now(); }",
        "#[cfg(test)] mod unit;",
        "#[cfg(test)] mod tests { use std::fs; fn f() { println!(); } }",
        "mod fs { pub fn read() {} } fn f() { fs::read(); }",
        "use crate::call as env; fn f() { env::Event::new(); }",
        "fn f() { let fs = 1; format!(\"{fs}\", fs = fs); write!(out, \"std::fs\"); }",
        "/// `std::fs::read`.\nfn f() { env!(\"CARGO_PKG_NAME\"); }",
    ];
    each(&ways, |library| unconfined(library, CONFINED), false);
}

#[test]
fn a_file_that_no_module_declares_is_an_orphan() {
    let orphans = |store| library(store).orphans;
    assert_eq!(orphans("mod chain; #[cfg(test)] mod unit;"), [""; 0]);
    assert_eq!(orphans("mod chain;"), ["store/unit.rs"]);
    assert_eq!(orphans("mod chain; #[path = \"unit.rs\"] mod other;"), [""; 0]);
}

#[test]
fn unit_tests_are_recognised_by_their_declaration() {
    let is_test = |store| !library(store).files().contains("store/unit.rs");
    assert!(is_test("#[cfg(test)] mod unit;"));
    assert!(!is_test("mod unit; #[cfg(test)] mod chain;"));
}

#[test]
fn the_surface_is_what_users_can_name() {
    let others = ["tool_runtime::call::Event", "tool_runtime::Run", "tool_runtime::runner::Run"];
    let check = |store: &str, expected: &[&str]| {
        let mut found: Vec<_> = library(store).surface().into_values().flatten().collect();
        found.retain(|path| !others.contains(&path.as_str()) && !path.starts_with("tool_runtime::runner::stages"));
        found.sort();
        assert_eq!(found, expected, "{store}");
    };
    check(
        "pub struct A; struct B; pub(crate) struct C; pub fn d() {}",
        &["tool_runtime::store::A", "tool_runtime::store::d"],
    );
    check("mod chain; pub use chain::Chain;", &["tool_runtime::store::Chain"]);
    check("mod chain; pub use chain::Chain as Links;", &["tool_runtime::store::Links"]);
    check("pub mod chain;", &["tool_runtime::store::chain::Chain"]);
    check("mod chain; pub use chain::*;", &["tool_runtime::store::Chain"]);
    check("mod chain; pub use self::chain as links;", &["tool_runtime::store::links::Chain"]);
    check("pub use other::Thing;", &["tool_runtime::store::Thing"]);
    check("#[doc(hidden)] pub struct A; #[doc(hidden)] pub mod chain;", &[]);
    check("#[cfg(test)] pub struct A; mod inner { pub struct B; }", &[]);
    check("#[macro_export] macro_rules! m { () => {} } macro_rules! n { () => {} }", &["tool_runtime::m!"]);
}

#[test]
fn an_example_is_a_block_of_code_or_a_reference_to_one() {
    let shown = [
        "/// A.\n///\n/// ```\n/// ```\npub struct A;",
        "/// A. [`B`] has an example.\npub struct A; /// ```\n/// ```\npub trait B {}",
        "/// A. The example of [the other](B), [`B`](self::B), shows it.\npub struct A; /// ```\npub trait B {}",
        "/// A. [`B::new`](trait@B#new) has an example.\npub enum A {} /// ```\npub trait B {}",
        "/// A. [`b`] has an example.\npub type A = u8; /// ```\npub fn b() {}",
        "mod inner { /// [`B`](super::B) has an example.\npub struct A; } pub use inner::A; /// ```\npub struct B;",
        "struct A; pub fn b() {} #[doc(hidden)] pub struct C; #[cfg(test)] pub struct D;",
    ];
    let not_shown = [
        "/// A.\npub struct A;",
        "/// A, as in [`B`].\npub struct A; /// ```\npub struct B;",
        "/// A. [`A`] has an example.\npub struct A;",
        "/// A. [`B`] has an example.\npub struct A; /// [`A`] has an example.\npub struct B;",
        "/// A. This is an example.\n///\n/// See [`B`].\npub struct A; /// ```\npub struct B;",
        "/// A. [`inner::B`] has an example.\npub struct A; mod inner { /// ```\nstruct B; }",
    ];
    let without = |store: &str| {
        let own = |path: &String| path.starts_with("tool_runtime::store");
        library(store).without_example().into_iter().filter(own).collect::<Vec<_>>()
    };
    each_without(&shown, without, false);
    each_without(&not_shown, without, true);
}

#[track_caller]
fn each_without(sources: &[&str], without: impl Fn(&str) -> Vec<String>, expected: bool) {
    for source in sources {
        let found = without(source);
        assert_eq!(!found.is_empty(), expected, "{source}\n{found:?}");
    }
}

/// A crate of these files.
fn files(sources: &[(&str, &str)]) -> Library {
    Library::parse("tool_runtime", &sources.iter().map(|(file, text)| ((*file).to_owned(), *text)).collect())
}

/// Four files. Each imports the next one, and the last imports the first in the given way.
fn ring(last: &str) -> Library {
    files(&[
        ("lib.rs", "mod room; mod d;"),
        ("room.rs", "pub(crate) mod a; mod b; mod c; pub(crate) use b::B; pub(crate) use c::C;"),
        ("room/a.rs", "use crate::room::B; pub(crate) struct A(B); #[cfg(test)] mod tests;"),
        ("room/a/tests.rs", "use crate::d::D;"),
        ("room/b.rs", "pub(crate) struct B(super::C);"),
        ("room/c.rs", "pub(crate) struct C; impl C { pub(in crate::room) fn d() { crate::d::made(); } }"),
        ("d.rs", last),
    ])
}

#[test]
fn every_circle_of_imports_is_seen() {
    let ways = [
        "use crate::room::a::A;",
        "use crate::room::a::*;",
        "use crate::room::a;",
        "fn made() -> crate::room::a::A { loop {} }",
        "fn made() { crate::room::a::A::new(); }",
        "fn made() { assert_eq!(1, crate::room::a::A::count()); }",
        "mod inner { use super::super::room::a::A; }",
    ];
    for way in ways {
        let wrong = knotted(&ring(way));
        assert!(wrong.len() == 1 && wrong[0].contains("d.rs, room/a.rs, room/b.rs, room/c.rs"), "{way}: {wrong:?}");
    }
}

#[test]
fn a_door_and_a_test_are_in_no_circle() {
    let ways = [
        "pub(crate) use crate::room::a::A;",
        "pub(in crate::room) fn made() {}",
        "#[cfg(test)] use crate::room::a::A;",
        "/// [`A`](crate::room::a::A).\nfn made() {}",
        "use crate::room::B;",
    ];
    for way in ways {
        assert_eq!(knotted(&ring(way)), [""; 0], "{way}");
    }
}

#[test]
fn methods_are_counted_by_the_type_that_is_meant() {
    let with = |last: &str| {
        files(&[
            ("lib.rs", "mod a; mod b; mod c; mod d; pub(crate) use a::Run; impl Run { fn one() {} }"),
            ("a.rs", "pub(crate) struct Run; impl Run {} impl Run {}"),
            ("b.rs", "use crate::Run as R; impl R { fn two() {} }"),
            ("c.rs", "struct Run; impl Run {} impl Clone for crate::Run {} #[cfg(test)] impl crate::Run {}"),
            ("d.rs", last),
        ])
    };
    for last in ["impl super::a::Run {}", "use crate::a; impl a::Run { fn f() {} }", "type R = crate::Run; impl R {}"] {
        let wrong = scattered(&with(last));
        assert!(
            wrong.len() == 1 && wrong[0].contains("crate::a::Run") && wrong[0].contains("a.rs, b.rs, d.rs, lib.rs")
        );
    }
    for last in ["struct Run; impl Run {}", "impl Clone for crate::Run {}", "struct Two<T>(T); impl Two<crate::Run> {}"]
    {
        assert_eq!(scattered(&with(last)), [""; 0], "{last}");
    }
}

#[test]
fn a_module_is_beside_its_folder() {
    let library = files(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "mod inner;"),
        ("a/inner.rs", ""),
        ("b/mod.rs", "mod b;"),
        ("b/b.rs", ""),
        ("c.rs", "mod tests;"),
        ("c/tests.rs", ""),
    ]);
    let wrong = misplaced(&library);
    assert!(wrong.len() == 2 && wrong[0].starts_with("b/b.rs: ") && wrong[1].starts_with("b/mod.rs: "), "{wrong:?}");
}
