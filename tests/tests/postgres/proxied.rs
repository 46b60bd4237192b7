//! A server behind a proxy, which accepts connections while the server is down: the store waits for a restart, as
//! without a proxy.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tests::postgres::Postgres;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tool_runtime::store::{Chain, RecordFilter, Store};
use tool_runtime_sql::{SqlOptions, SqlStore};

use crate::put;

/// How many connections a proxy took, and how many of them found no server.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) taken: AtomicUsize,
    refused: AtomicUsize,
}

impl Counts {
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    fn refused(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }
}

/// Starts a proxy in front of a server. Returns its port.
pub(crate) async fn proxy(server: &Postgres) -> (u16, Arc<Counts>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let (port, counts) = (listener.local_addr().unwrap().port(), Arc::<Counts>::default());
    let (socket, counted) = (server.socket(), Arc::clone(&counts));
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            counted.taken.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(serve(client, socket.clone(), Arc::clone(&counted)));
        }
    });
    (port, counts)
}

/// Passes bytes on. Without a server it closes, or sends an answer that no server sends.
async fn serve(mut client: TcpStream, socket: PathBuf, counts: Arc<Counts>) {
    if let Ok(mut server) = UnixStream::connect(socket).await {
        let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
        return;
    }
    let answers: [&[u8]; 4] = [b"", b"N", b"HTTP/1.0 503 Service Unavailable\r\n\r\n", b"NHTTP/1.0 503\r\n\r\n"];
    let answer = answers[counts.refused.fetch_add(1, Ordering::Relaxed) % answers.len()];
    if !answer.is_empty() {
        let _ = client.read(&mut [0; 8]).await;
        let _ = client.write_all(answer).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_behind_a_proxy_fails_no_call() {
    let mut server = Postgres::start();
    let (port, counts) = proxy(&server).await;
    let url = server.tcp_url(port, "proxied");
    let options = SqlOptions::new().patience(Duration::from_hours(1));
    let store = SqlStore::postgres(&url, options.clone()).await.unwrap();
    let (stop, failed) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
    let writers: Vec<_> = (0..4)
        .map(|writer: u32| {
            let (store, stop, failed) = (store.clone(), Arc::clone(&stop), Arc::clone(&failed));
            tokio::spawn(async move {
                let mut written = 0;
                while !stop.load(Ordering::Relaxed) {
                    let run = format!("run {writer}");
                    let kept = put(&store, &run, &format!("{writer}-{written}")).await;
                    let read = store.records(&RecordFilter { limit: Some(1), ..RecordFilter::run(run) }).await;
                    failed.fetch_add(usize::from(kept.is_err()) + usize::from(read.is_err()), Ordering::Relaxed);
                    written += usize::from(kept.is_ok());
                }
                written
            })
        })
        .collect();
    for _restart in 0..2 {
        let before = store.records(&RecordFilter::default()).await.unwrap().len();
        while store.records(&RecordFilter::default()).await.unwrap().len() < before + 20 {}
        let opened = tokio::task::block_in_place(|| {
            server.kill();
            // A process that starts meanwhile waits as well.
            let (url, options) = (url.clone(), options.clone());
            let opened = tokio::spawn(async move { SqlStore::postgres(&url, options).await.map(drop) });
            let before = counts.refused();
            while counts.refused() < before + 40 {
                std::thread::sleep(Duration::from_millis(5));
            }
            server.restart();
            opened
        });
        opened.await.unwrap().expect("it opens once the server is there");
    }
    stop.store(true, Ordering::Relaxed);
    let mut expected = 0;
    for writer in writers {
        expected += writer.await.unwrap();
    }
    assert_eq!(failed.load(Ordering::Relaxed), 0, "failed calls of {expected}");
    let records = store.records(&RecordFilter::default()).await.unwrap();
    assert_eq!((records.len(), Chain::verify(&records)), (expected, Ok(())));
}
