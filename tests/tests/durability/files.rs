//! The store in a file of SQLite, with real disks, permissions and other processes.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tests::postgres::Disk;
use tests::stored::{json_of, record};
use tool_runtime::store::{Chain, Key, RecordFilter, Store, StoreError, StoredDocument, Transaction};
use tool_runtime_sql::{SqlOptions, SqlStore};

async fn open(path: &Path) -> Result<SqlStore, StoreError> {
    SqlStore::sqlite(path, SqlOptions::new().patience(Duration::from_millis(500))).await
}

/// Writes a document of that length and a record, in one transaction.
async fn keep(store: &SqlStore, call: &str, length: usize) -> Result<(), &'static str> {
    let (key, call) = (Key::run("run"), call.to_owned());
    // A store keeps equal parts of a text once.
    let text = (0..=length / 8).map(|number| format!("{number:08}")).collect::<Vec<_>>().concat();
    let text = text[..length].to_owned();
    let write = move |transaction: &mut Transaction| {
        transaction.append(record("run", &call))?;
        transaction.put(StoredDocument::example("run", &text, None))
    };
    store.update(vec![key], Box::new(write)).await.map_err(|error| error.code())
}

async fn kept(store: &SqlStore) -> Vec<String> {
    let records = store.records(&RecordFilter::run("run")).await.expect("it reads");
    assert_eq!(Chain::verify(&records), Ok(()));
    records.iter().map(|sealed| sealed.record.call_id().to_string()).collect()
}

/// The part of the other process, which is this test's own program, started by [`process`].
#[tokio::test]
async fn another_process() {
    let (Ok(path), Ok(does)) = (std::env::var("FILES_STORE"), std::env::var("FILES_DOES")) else { return };
    let path = Path::new(&path);
    match does.as_str() {
        "hold" => {
            let database = rusqlite::Connection::open(path).expect("it opens");
            database.execute_batch("BEGIN EXCLUSIVE").expect("it locks");
            println!("SAID held");
            std::io::stdin().lines().for_each(drop);
        }
        "write" => match open(path).await {
            Ok(store) => println!("SAID {:?}", keep(&store, "other", 10).await),
            Err(error) => println!("SAID {:?}", Err::<(), _>(error.code())),
        },
        // The process has a limit on the length of files.
        "grow" => {
            let store = open(path).await.expect("it opens");
            let said = [keep(&store, "a", 10).await, keep(&store, "b", 4 << 20).await, keep(&store, "c", 10).await];
            println!("SAID {said:?} {:?}", kept(&store).await);
        }
        other => panic!("{other}"),
    }
}

/// The program that works with the file, started through a command that restricts it.
fn process(before: &[&str], path: &Path, does: &str) -> Command {
    let program = std::env::current_exe().expect("this program");
    let command = match before {
        [] => Command::new(&program),
        [first, others @ ..] => {
            let mut command = Command::new(first);
            command.args(others).arg(&program);
            command
        }
    };
    behind(command, path, does)
}

/// The same for a command that ends with the program.
fn behind(mut command: Command, path: &Path, does: &str) -> Command {
    command.args(["files::another_process", "--exact", "--nocapture", "--test-threads=1"]);
    command.env("FILES_STORE", path).env("FILES_DOES", does);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// The line that a process printed with `SAID`, after its end.
fn said(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.split_once("SAID ")).map(|(_, said)| said.to_owned());
    line.unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)))
}

#[tokio::test]
async fn a_full_disk_is_an_error_and_no_half_state() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(_disk) = Disk::mount(folder.path(), "size=2m") else {
        eprintln!("no disk can be mounted here: a limit to the length of files is another test");
        return;
    };
    let store = open(&folder.path().join("store.db")).await.expect("it opens");
    keep(&store, "a", 10).await.expect("it fits");
    assert_eq!(keep(&store, "b", 4 << 20).await, Err("store_disk_full"));
    let kept_run = store.read(&[Key::run("run")]).await.expect("it reads").pop().flatten().expect("the run");
    let text = json_of(&kept_run)["run"]["document"].as_str().map(str::len);
    assert_eq!(text, Some(10), "the document is as it was");
    assert_eq!(kept(&store).await, ["a"], "and so are the records");
    keep(&store, "c", 10).await.expect("the next call works");
    // Somebody else fills it, and makes room again.
    let ballast = folder.path().join("ballast");
    fs::write(&ballast, vec![0; 4 << 20]).expect_err("the disk is full");
    assert_eq!(keep(&store, "d", 4 << 20).await, Err("store_disk_full"));
    fs::remove_file(&ballast).expect("it is gone");
    keep(&store, "e", 10).await.expect("there is room again");
    assert_eq!(kept(&store).await, ["a", "c", "e"]);
}

#[tokio::test]
async fn a_file_that_may_not_grow_is_an_error_and_no_half_state() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    drop(open(&path).await.expect("it opens"));
    // 512 KiB a file, and no signal when one would be longer.
    let limited = ["sh", "-c", "trap '' XFSZ; ulimit -f 1024; exec \"$0\" \"$@\""];
    let said = said(&mut process(&limited, &path, "grow"));
    assert_eq!(said, r#"[Ok(()), Err("store_unavailable"), Ok(())] ["a", "c"]"#);
    let store = open(&path).await.expect("it opens");
    keep(&store, "d", 4 << 20).await.expect("here it may grow");
    assert_eq!(kept(&store).await, ["a", "c", "d"]);
}

#[tokio::test]
async fn a_file_that_may_only_be_read_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let store = open(&path).await.expect("it opens");
    keep(&store, "a", 10).await.expect("it is kept");
    // Everybody may read, and nobody may write. Root may always write, so another user has to try.
    let set = |mode: u32| {
        for entry in fs::read_dir(folder.path()).expect("the folder") {
            fs::set_permissions(entry.expect("a file").path(), Permissions::from_mode(mode)).expect("its mode");
        }
    };
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("its mode");
    set(0o444);
    let other = tempfile::tempdir().expect("a folder");
    let mut command = process(&[], &path, "write");
    if fs::metadata(folder.path()).expect("the folder").uid() == 0 {
        // This program can be in a folder that other users may not enter, such as root's home.
        let program = other.path().join("program");
        fs::copy(command.get_program(), &program).expect("a copy");
        for path in [other.path(), &program] {
            fs::set_permissions(path, Permissions::from_mode(0o755)).expect("its mode");
        }
        command = behind(Command::new(program), &path, "write");
        command.current_dir(other.path()).uid(65534).gid(65534);
    }
    assert_eq!(said(&mut command), r#"Err("store_read_only")"#);
    set(0o644);
    assert_eq!(said(&mut process(&[], &path, "write")), "Ok(())");
    assert_eq!(kept(&store).await, ["a", "other"]);
}

#[tokio::test]
async fn a_file_that_another_process_holds_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let store = open(&path).await.expect("it opens");
    let mut holder = process(&[], &path, "hold").spawn().expect("it starts");
    let mut lines = BufReader::new(holder.stdout.take().expect("its output")).lines();
    assert!(lines.any(|line| line.expect("a line").ends_with("SAID held")));
    assert_eq!(keep(&store, "a", 10).await, Err("store_locked"));
    assert_eq!(kept(&store).await, Vec::<String>::new(), "it can be read");
    drop(holder.stdin.take());
    lines.for_each(drop);
    assert!(holder.wait().expect("it ends").success());
    assert_eq!(keep(&store, "b", 10).await, Ok(()));
    assert_eq!(kept(&store).await, ["b"]);
}
