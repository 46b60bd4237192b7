//! Tests that the password in a store's URL is in no output and in no file.

use std::path::Path;

use crate::rig::{Ended, Rig};

const PASSWORD: &str = "Pa55-canary";

/// URLs with a password that cannot be used, each for another reason. No server listens on port 1.
fn urls() -> Vec<String> {
    let mut urls = vec![
        format!("postgre://app:{PASSWORD}@127.0.0.1/app"),
        format!("app:{PASSWORD}@127.0.0.1/app"),
        format!("mysql://app:{PASSWORD}@127.0.0.1/app"),
        format!("postgres://app:{PASSWORD}@127.0.0.1:port/app"),
        format!("postgres://app:{PASSWORD}@[::1/app"),
        format!("postgres://app:{PASSWORD}@127.0.0.1/app?sslmode={PASSWORD}"),
    ];
    if cfg!(feature = "postgres") {
        urls.push(format!("postgres://app:{PASSWORD}@127.0.0.1:1/app?pasword={PASSWORD}&connect_timeout=1"));
    }
    urls
}

#[track_caller]
fn silent(rig: &Rig, ended: &Ended, url: &str) {
    assert!(!format!("{}{}", ended.stdout, ended.stderr).contains(PASSWORD), "{url}: {ended:?}");
    assert!(!ended.stderr.contains("panicked"), "{url}: {ended:?}");
    assert_eq!(found(rig.folder()), Vec::<String>::new(), "{url}");
}

/// Returns the files that contain the password, except the configuration.
fn found(folder: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(found(&path));
        } else if path.file_name().is_none_or(|name| name != "config.toml") {
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            all.extend(text.contains(PASSWORD).then(|| path.display().to_string()));
        }
    }
    all
}

#[test]
fn a_store_that_cannot_be_opened_is_named_without_its_password() {
    for url in urls() {
        let rig = Rig::new();
        let loud = ["-vvv", "--log", "trace.log", "--log", "trace,sqlx_postgres=trace"];
        let ended = rig.run(&[&["--store", &url], &loud[..], &["audit", "show"]].concat()).code(2);
        silent(&rig, &ended, &url);
        assert!(!ended.stderr.is_empty(), "{url}");
    }
}

#[test]
fn every_command_with_a_store_says_what_to_write() {
    let url = format!("postgre://app:{PASSWORD}@127.0.0.1/app");
    let commands: [&[&str]; 9] = [
        &["call", "core__get_current_time"],
        &["approvals", "list"],
        &["approvals", "approve", "c1", "--as", "grace"],
        &["grants", "list"],
        &["audit", "verify"],
        &["worker", "--model-url", "http://127.0.0.1:1", "--model", "m"],
        &["worker", "put", "Hello"],
        &["worker", "show", "run-1"],
        &["chat", "--model-url", "http://127.0.0.1:1", "--model", "m", "Hello"],
    ];
    let mut rig = Rig::new();
    rig.set("TOOLBOX_STORE", &url);
    for words in commands {
        let ended = rig.run(words).code(2);
        assert!(ended.stderr.contains("sqlite:FILE or postgres://USER@HOST/DATABASE"), "{words:?}: {ended:?}");
        silent(&rig, &ended, &url);
    }
}

#[test]
fn a_configuration_file_is_not_quoted() {
    let url = format!("postgres://app:{PASSWORD}@127.0.0.1/app");
    for text in [
        format!("store = {url}"),
        format!("policy = \"p.toml\"\nstore = \"{url}\nlog = \"info\""),
        format!("stroe = \"{url}\""),
        format!("store = \"{url}\" # {PASSWORD}\nstore = \"{url}\""),
        format!("store = [\"{url}\"]"),
        format!("roles = \"{url}\""),
        format!("store = \"{url}\" \"{PASSWORD}\""),
    ] {
        let rig = Rig::new();
        rig.write("config/toolbox/config.toml", &text);
        let ended = rig.run(&["list"]).code(2);
        assert!(ended.stderr.contains("config.toml cannot be used: line "), "{ended:?}");
        silent(&rig, &ended, &text);
    }
}

/// A server that asks for a password and refuses it.
#[cfg(feature = "postgres")]
#[test]
fn a_wrong_password_is_refused_without_being_named() {
    use std::io::{Read as _, Write as _};

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut read = || {
                let mut buffer = [0; 1024];
                stream.read(&mut buffer).map(|length| buffer[..length].to_vec())
            };
            // The server refuses TLS, and then requests the password in clear text.
            if read().is_ok_and(|first| first.get(4..8) == Some(&[4, 210, 22, 47])) {
                let _ = stream.write_all(b"N");
                let _ = stream.read(&mut [0; 1024]);
            }
            let _ = stream.write_all(&[b'R', 0, 0, 0, 8, 0, 0, 0, 3]);
            let mut password = [0; 1024];
            let length = stream.read(&mut password).unwrap_or(0);
            assert!(password[..length].windows(PASSWORD.len()).any(|window| window == PASSWORD.as_bytes()));
            let fields = b"SFATAL\0VFATAL\0C28P01\0Mpassword authentication failed for user \"app\"\0\0";
            let size = u32::try_from(fields.len() + 4).unwrap().to_be_bytes();
            let _ = stream.write_all(&[&b"E"[..], &size, fields].concat());
        }
    });
    let rig = Rig::new();
    let url = format!("postgres://app:{PASSWORD}@{address}/app");
    let ended = rig.run(&["-vvv", "--log", "trace.log", "--store", &url, "worker", "put", "Hello"]).code(2);
    silent(&rig, &ended, &url);
    assert!(ended.stderr.contains("password authentication failed"), "the log says why: {ended:?}");
}
