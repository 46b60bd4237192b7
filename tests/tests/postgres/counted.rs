//! The round trips of a write: each of the server's answers ends with a message that says it is ready for the next
//! request, and a proxy counts them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tests::postgres::Postgres;
use tests::stored::record;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tool_runtime::store::{Chain, Key, RecordFilter, Store, StoredDocument, Transaction};
use tool_runtime::{RunOptions, ToolCall, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};
use tool_runtime_sql::{SqlOptions, SqlStore};

/// What a server answered.
#[derive(Default)]
struct Answers {
    /// Its answers to requests.
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
        let mut head = [0; 5];
        while server.read_exact(&mut head).await.is_ok() {
            let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
            let mut rest = vec![0; length - 4];
            if server.read_exact(&mut rest).await.is_err() {
                return;
            }
            match head[0] {
                b'Z' => self.all.fetch_add(1, Ordering::SeqCst),
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
