//! The process of a notifier is killed between a delivery and its record: no notice is lost, and each delivery has the
//! `webhook-id` of its notice.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rusqlite::Connection;
use tests::server::Asked;
use tool_runtime_sql::{SqlOptions, SqlStore};

use super::*;

const CALLS: usize = 4;

/// The end of every wait. It is far longer than any of them.
const PATIENCE: Duration = Duration::from_hours(1);

/// A process that sends notices. It is killed when it is dropped.
struct Process(Child);

impl Process {
    fn start(store: &Path, url: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_shared-notifier"));
        Self(command.arg(store).arg(url).stdin(Stdio::null()).spawn().expect("the program starts"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().expect("it is ours");
        self.0.wait().expect("it is gone");
    }
}

/// Waits for the next request, and reads it.
async fn next(listener: &TcpListener, received: &mut Vec<Asked>) -> TcpStream {
    let accepted = async {
        loop {
            match listener.accept() {
                Ok((stream, _)) => return stream,
                Err(_) => tokio::time::sleep(Duration::from_millis(2)).await,
            }
        }
    };
    let stream = tokio::time::timeout(PATIENCE, accepted).await.expect("a request");
    stream.set_nonblocking(false).expect("a stream");
    received.push(Asked::read(&mut BufReader::new(&stream)).expect("a request"));
    stream
}

/// Answers that the notice was received, and waits until the sender has read it.
fn answer(mut stream: TcpStream) {
    stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").expect("it is sent");
    // The sender hangs up, or it is an error.
    drop(stream.read_to_end(&mut Vec::new()));
}

/// Reads the unanswered requests of the dead process.
fn read_rest(listener: &TcpListener, received: &mut Vec<Asked>) {
    while let Ok((stream, _)) = listener.accept() {
        stream.set_nonblocking(false).expect("a stream");
        received.extend(Asked::read(&mut BufReader::new(&stream)).ok().filter(|asked| !asked.body.is_empty()));
    }
}

async fn pending(store: &dyn Store) -> usize {
    notices(store).await.iter().filter(|notice| notice.state() == "pending").count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notifier_that_is_killed_loses_no_notice() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("notices.db");
    let store: Arc<dyn Store> = Arc::new(SqlStore::sqlite(&path, SqlOptions::new()).await.expect("a store"));
    wait_in(&store, CALLS).await;
    let file = Connection::open(&path).expect("a database");
    file.busy_timeout(PATIENCE).expect("a timeout");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.set_nonblocking(true).expect("a listener");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));

    let (mut received, mut killed) = (Vec::new(), 0);
    loop {
        let (process, before) = (Process::start(&path, &url), pending(&*store).await);
        // Each process but the first records one delivery.
        if killed > 0 {
            answer(next(&listener, &mut received).await);
            let recorded = async {
                while pending(&*store).await == before {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            };
            tokio::time::timeout(PATIENCE, recorded).await.expect("it is recorded");
            if before == 1 {
                break;
            }
        }
        let stream = next(&listener, &mut received).await;
        // From here on no process writes to the database. Every second process dies before it has an answer.
        file.execute_batch("BEGIN IMMEDIATE").expect("the lock");
        if killed % 2 == 0 {
            answer(stream);
        }
        drop(process);
        killed += 1;
        file.execute_batch("ROLLBACK").expect("the lock");
        read_rest(&listener, &mut received);
        assert_eq!(pending(&*store).await, before - usize::from(killed > 1), "the last delivery is not recorded");
        // Moves the leases of the dead process into the past, instead of a wait for their ends.
        let ends = "UPDATE tool_runtime_documents SET due = 0, body = json_replace(body, \
                    '$.notice.next', '1970-01-01T00:00:00Z', '$.notice.holder.until', '1970-01-01T00:00:00Z') \
                    WHERE space = 'notice' AND json_extract(body, '$.notice.next') IS NOT NULL";
        assert_eq!(file.execute(ends, []).expect("it is written"), pending(&*store).await);
    }
    assert_eq!(killed, CALLS);

    let mut ids_by_body: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for asked in &received {
        ids_by_body.entry(&asked.body).or_default().insert(asked.header("webhook-id"));
    }
    let mut times = Vec::new();
    for notice in notices(&*store).await {
        assert_eq!(ids_by_body.remove(notice.payload()), Some(BTreeSet::from([&*notice.id])), "it has its own id");
        let sent = received.iter().filter(|asked| asked.header("webhook-id") == &*notice.id).count();
        let attempts: Vec<_> = notice.attempts().map(|(_, status, code)| (status, code)).collect();
        let (last, before) = attempts.split_last().expect("it was sent");
        assert_eq!((notice.state(), *last), ("delivered", (Some(204), None)));
        assert!(before.iter().all(|attempt| *attempt == (None, Some("interrupted"))), "{attempts:?}");
        assert!(sent >= 1 && sent <= attempts.len(), "{sent} deliveries have {} attempts", attempts.len());
        times.push(sent);
    }
    assert!(ids_by_body.is_empty(), "nothing else was sent");
    assert!(times.iter().sum::<usize>() >= CALLS + killed, "each killed process had sent a notice: {times:?}");
}
