//! An agent whose steps are in Restate's journal, with the ledger of calls in SQLite.
//!
//! `fleet` serves the endpoint that Restate calls; `fleet records` writes the records of its store, one JSON object per
//! line, after checking their chains.

mod crossing;
mod model;
mod service;
mod tools;

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use restate_sdk::prelude::{Endpoint, HttpServer};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tool_runtime::agent::Agent;
use tool_runtime::store::{Chain, MemoryStore, RecordFilter, Store};
use tool_runtime::{Capabilities, ToolCatalog, ToolPolicy, ToolRunner};
use tool_runtime_sql::{SqlOptions, SqlStore};

use crate::crossing::{Crossings, WatchedStore};
use crate::model::Script;
use crate::service::{Fleet, FleetService};
use crate::tools::{Outbox, Outgoing, Stock};

const POLICY: &str = r#"
    allowed_tools = [
        "parts__list", "parts__order", "parts__pay", "parts__scan", "parts__reserve", "parts__confirm",
    ]
    require_approval_for_tools = ["parts__pay"]
"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let data = PathBuf::from(std::env::var("FLEET_DATA").unwrap_or_else(|_| "fleet-data".to_owned()));
    std::fs::create_dir_all(&data)?;
    // With `memory`, each process has its own ledger, so a repeated step cannot find the effect of the previous
    // attempt.
    let store: Arc<dyn Store> = match std::env::var("FLEET_STORE").as_deref() {
        Ok("memory") => Arc::new(MemoryStore::new()),
        _ => Arc::new(SqlStore::sqlite(data.join("store.db"), SqlOptions::new()).await?),
    };
    match std::env::args().nth(1).as_deref() {
        None => serve(&data, store).await,
        Some("records") => records(&*store).await,
        Some(_) => Err("write `fleet` or `fleet records`".into()),
    }
}

async fn serve(data: &std::path::Path, store: Arc<dyn Store>) -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_env_filter(tracing_subscriber::EnvFilter::from_default_env()).init();
    let crossings = Arc::new(Crossings::from_env(data)?);
    let outbox = Arc::new(Outbox::open(&data.join("effects"), Arc::clone(&crossings))?);
    let catalog = ToolCatalog::builder().tool::<tools::list>().tool::<tools::order>();
    let catalog = catalog.tool::<tools::pay>().tool::<tools::scan>();
    let catalog = catalog.tool::<tools::Reserve>().tool::<tools::confirm>().build()?;
    // After a crash, a new process waits this long for a call that the previous process may still execute.
    let lease = seconds("FLEET_LEASE_SECONDS", 30)?;
    let runner = ToolRunner::builder(catalog, ToolPolicy::from_toml(POLICY)?)
        .capabilities(Capabilities::new().with(Arc::clone(&outbox) as Arc<dyn Stock>).with(outbox as Arc<dyn Outgoing>))
        .store(WatchedStore::new(store, Arc::clone(&crossings)))
        .lease(lease)
        .approval_ttl(seconds("FLEET_APPROVAL_SECONDS", 24 * 60 * 60)?)
        .approvals(true)
        .build()?;
    let fleet = Fleet { agent: Agent::new(Script::new(crossings)), runner };
    let address = std::env::var("FLEET_LISTEN").unwrap_or_else(|_| "127.0.0.1:9080".to_owned());
    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    let mut terminate = signal(SignalKind::terminate())?;
    let endpoint = Endpoint::builder().bind(FleetService(fleet)).build();
    HttpServer::new(endpoint).serve_with_cancel(listener, terminate.recv()).await;
    Ok(())
}

fn seconds(variable: &str, default: u64) -> Result<Duration, Box<dyn Error>> {
    Ok(Duration::from_secs(std::env::var(variable).ok().map_or(Ok(default), |seconds| seconds.parse())?))
}

async fn records(store: &dyn Store) -> Result<(), Box<dyn Error>> {
    let records = store.records(&RecordFilter::default()).await?;
    Chain::verify(&records)?;
    for sealed in records {
        println!("{}", serde_json::to_string(&sealed.record)?);
    }
    Ok(())
}
