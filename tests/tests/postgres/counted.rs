//! The round trips of a write: each of the server's answers ends with a message that says it is ready for the next
//! request, and a proxy counts them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tests::postgres::Postgres;
use tests::stored::record;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tool_runtime::store::{Chain, Key, RecordFilter, Store, StoreError, StoredDocument, Transaction};
use tool_runtime::{RunOptions, ToolCall, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};
use tool_runtime_sql::{SqlOptions, SqlStore};

/// The numbers of a server's answers.
#[derive(Default)]
struct Answers {
    /// Its answers to requests, without the empty ones: a pool asks a connection that comes back whether it is whole.
    all: AtomicUsize,
    /// Those to a `COMMIT` that wrote.
    commits: AtomicUsize,
    /// The statements that it parsed for later use.
    prepared: AtomicUsize,
}

impl Answers {
    /// Returns the counts since the last call: answers, commits and prepared statements.
    fn taken(&self) -> (usize, usize, usize) {
        let [all, commits, prepared] =
            [&self.all, &self.commits, &self.prepared].map(|count| count.swap(0, Ordering::SeqCst));
        (all, commits, prepared)
    }

    /// Reads the server's messages, each a letter, a length and its contents, and passes them on.
    async fn count(&self, mut server: impl AsyncReadExt + Unpin, mut client: impl AsyncWriteExt + Unpin) {
        let (mut head, mut is_empty) = ([0; 5], true);
        while server.read_exact(&mut head).await.is_ok() {
            let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
            let mut rest = vec![0; length - 4];
            if server.read_exact(&mut rest).await.is_err() {
                return;
            }
            let was_empty = std::mem::replace(&mut is_empty, head[0] == b'Z');
            match head[0] {
                b'Z' if !was_empty => self.all.fetch_add(1, Ordering::SeqCst),
                b'C' if rest == b"COMMIT\0" => self.commits.fetch_add(1, Ordering::SeqCst),
                b'1' => self.prepared.fetch_add(1, Ordering::SeqCst),
                _ => 0,
            };
            if client.write_all(&[&head[..], &rest].concat()).await.is_err() {
                return;
            }
        }
    }
}

/// Starts a proxy that counts. Returns its port.
async fn counting(socket: PathBuf) -> (u16, Arc<Answers>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let (port, answers) = (listener.local_addr().unwrap().port(), Arc::<Answers>::default());
    let counted = Arc::clone(&answers);
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(serve(client, socket.clone(), Arc::clone(&counted)));
        }
    });
    (port, answers)
}

async fn serve(client: TcpStream, socket: PathBuf, answers: Arc<Answers>) {
    let Ok(server) = UnixStream::connect(socket).await else { return };
    let ((mut from_client, to_client), (from_server, mut to_server)) = (client.into_split(), server.into_split());
    let asked = async { drop(tokio::io::copy(&mut from_client, &mut to_server).await) };
    tokio::join!(asked, answers.count(from_server, to_client));
}

/// Opens a store behind a proxy that counts.
async fn open(server: &Postgres, schema: &str, connections: u32) -> (SqlStore, Arc<Answers>) {
    let (port, answers) = counting(server.socket()).await;
    let url = format!("{}&sslmode=disable", server.tcp_url(port, schema));
    (SqlStore::postgres(&url, SqlOptions::new().connections(connections)).await.unwrap(), answers)
}

/// Counts.
#[tool(name = "counted__count", effect = state_change, redact = ["$"])]
fn count(
    /// A number.
    number: u64,
) -> Result<u64, ToolError> {
    Ok(number + 1)
}

/// A call with an effect takes two transactions, its intent and its record, of four round trips each: the locks and the
/// time, the rows, the changes, and the commit.
#[tokio::test]
async fn a_gated_call_takes_eight_round_trips() {
    let server = Postgres::start();
    let (store, answers) = open(&server, "counted", 1).await;
    let catalog = ToolCatalog::builder().tool::<count>().build().unwrap();
    let runner = ToolRunner::builder(catalog, ToolPolicy::allow(["counted__count"]));
    let runner = runner.store(Arc::new(store.clone())).build().unwrap();
    let run = runner.run(RunOptions::new().principal("ada"));
    let mut counts = Vec::new();
    for number in 0..4 {
        let arguments = format!("{{\"number\":{number}}}");
        let result = run.exec(ToolCall::text(format!("call_{number}").as_str(), "counted__count", &arguments)).await;
        assert!(result.is_ok(), "{}", result.to_model());
        store.flush().await.unwrap();
        counts.push(answers.taken());
    }
    // The first calls prepare the statements.
    assert_eq!(counts[2..], [(8, 2, 0); 2], "{counts:?}");
}

/// Waits for each of these writes.
async fn all(receipts: impl IntoIterator<Item = tool_runtime::store::WriteHandle>) -> Vec<Result<(), &'static str>> {
    let mut results = Vec::new();
    for receipt in receipts {
        results.push(receipt.await.map_err(|error| error.code()));
    }
    results
}

/// Increments a number in the document of a run.
fn counted(run: &str) -> impl FnMut(&mut Transaction) -> Result<(), StoreError> + Send + use<> {
    let run = run.to_owned();
    move |transaction: &mut Transaction| {
        let before = transaction.document(&Key::run(run.as_str())).map_or(0, |document| number(&document));
        transaction.put(StoredDocument::example(&run, &(before + 1).to_string(), None))
    }
}

fn number(document: &StoredDocument) -> u32 {
    tests::stored::json_of(document)["run"]["document"].as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn writes_that_wait_share_a_commit() {
    let server = Postgres::start();
    let (store, answers) = open(&server, "shared", 1).await;
    for call in ["a", "b"] {
        // This test's runtime has one thread, so all of them are queued before any is written.
        answers.taken();
        let appends = (0..8).map(|run| store.append(record(&format!("run {run}"), call)));
        let updates = (8..16).map(|run| {
            let run = format!("run {run}");
            store.update(vec![Key::run(run.as_str())], Box::new(counted(&run)))
        });
        let panics = store.update(vec![Key::run("panics")], Box::new(|_: &mut Transaction| panic!("a change")));
        let receipts: Vec<_> = appends.chain(updates).chain([panics]).collect();
        let results = all(receipts).await;
        assert_eq!((&results[..16], results[16]), (&[Ok(()); 16][..], Err("store_panicked")));
    }
    assert_eq!(answers.taken(), (4, 1, 0), "round trips, commits and prepared statements of the second group");
    let records = store.records(&RecordFilter::default()).await.unwrap();
    assert_eq!((records.len(), Chain::verify(&records)), (16, Ok(())));
    for run in 8..16 {
        let document = store.read(&[Key::run(format!("run {run}"))]).await.unwrap().remove(0).unwrap();
        assert_eq!(number(&document), 2, "the refused change took none with it");
    }
}

/// Another process holds the lock of a run: writes to other runs do not wait for it, and one to that run does.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_held_lock_delays_its_own_run_alone() {
    let server = Postgres::start();
    let url = server.url("held");
    let (one, other) = (crate::open(&url).await, crate::open(&url).await);
    let (begun, begins) = tokio::sync::oneshot::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let mut begun = Some(begun);
    let mut change = counted("held");
    let holds = other.update(
        vec![Key::run("held")],
        Box::new(move |transaction| {
            if let Some(begun) = begun.take() {
                begun.send(()).unwrap();
                released.recv().unwrap();
            }
            change(transaction)
        }),
    );
    begins.await.unwrap();
    let waits = one.update(vec![Key::run("held")], Box::new(counted("held")));
    let others = (0..64).map(|run| one.append(record(&format!("run {run}"), "a"))).collect::<Vec<_>>();
    assert_eq!(all(others).await, [Ok(()); 64]);
    let held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
    while server.sql(held) != "1" {
        tokio::task::yield_now().await;
    }
    release.send(()).unwrap();
    assert_eq!(all([holds, waits]).await, [Ok(()); 2]);
    let document = one.read(&[Key::run("held")]).await.unwrap().remove(0).unwrap();
    assert_eq!(number(&document), 2, "one after the other");
}

/// Documents alone leave no proof of a commit except themselves.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_counts_each_change_once() {
    let mut server = Postgres::start();
    let patience = std::time::Duration::from_hours(1);
    let store = SqlStore::postgres(&server.url("once"), SqlOptions::new().patience(patience)).await.unwrap();
    let (stop, done) = (Arc::<std::sync::atomic::AtomicBool>::default(), Arc::<AtomicUsize>::default());
    let writers: Vec<_> = (0..12)
        .map(|run| {
            let (store, stop, done, run) = (store.clone(), Arc::clone(&stop), Arc::clone(&done), format!("run {run}"));
            tokio::spawn(async move {
                let mut written = 0;
                while !stop.load(Ordering::Relaxed) {
                    let update = store.update(vec![Key::run(run.as_str())], Box::new(counted(&run)));
                    update.await.expect("it outlives the server");
                    done.fetch_add(1, Ordering::Relaxed);
                    written += 1;
                }
                (run, written)
            })
        })
        .collect();
    for _kill in 0..3 {
        let before = done.load(Ordering::Relaxed);
        while done.load(Ordering::Relaxed) < before + 100 {
            tokio::task::yield_now().await;
        }
        tokio::task::block_in_place(|| {
            server.kill();
            server.restart();
        });
    }
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        let (run, written) = writer.await.unwrap();
        let document = store.read(&[Key::run(run.as_str())]).await.unwrap().remove(0).unwrap();
        assert_eq!(number(&document), written, "{run}");
    }
}

/// Two processes write to the same four runs: large documents, changes that fail or panic, and receipts that nobody
/// awaits.
#[tokio::test(flavor = "multi_thread")]
async fn processes_that_contend_lose_no_write() {
    let server = Postgres::start();
    let stores = [3, 2].map(|connections| SqlOptions::new().connections(connections));
    let mut open = Vec::new();
    for options in stores {
        open.push(SqlStore::postgres(&server.url("contend"), options).await.unwrap());
    }
    let rounds = 24;
    let writers =
        open.iter().enumerate().flat_map(|(process, store)| (0..8).map(move |at| (process, at, store.clone())));
    let writers: Vec<_> = writers
        .map(|(process, at, store)| {
            tokio::spawn(async move {
                let run = format!("run {}", at % 4);
                for round in 0..rounds {
                    let key = || vec![Key::run(run.as_str())];
                    drop(store.append(record(&run, &format!("{process}-{at}-{round}"))));
                    let large = "x".repeat(100_000);
                    let name = format!("large {process} {at}");
                    let put = move |transaction: &mut Transaction| {
                        transaction.put(StoredDocument::example(&name, &large, None))
                    };
                    let large = Key::run(format!("large {process} {at}"));
                    let receipts = [
                        store.update(key(), Box::new(counted(&run))),
                        store.update(vec![large], Box::new(put)),
                        store.update(key(), Box::new(|_: &mut Transaction| panic!("a change"))),
                        store.update(key(), Box::new(|_: &mut Transaction| Err(StoreError::Fenced))),
                    ];
                    let expected = [Ok(()), Ok(()), Err("store_panicked"), Err(StoreError::Fenced.code())];
                    assert_eq!(all(receipts).await, expected);
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    for store in &open {
        store.flush().await.unwrap();
    }
    for run in 0..4 {
        let run = format!("run {run}");
        let document = open[0].read(&[Key::run(run.as_str())]).await.unwrap().remove(0).unwrap();
        assert_eq!(number(&document), 4 * rounds, "{run}");
        let records = open[1].records(&RecordFilter::run(run.as_str())).await.unwrap();
        assert_eq!((records.len(), Chain::verify(&records)), (4 * rounds as usize, Ok(())), "{run}");
    }
}
