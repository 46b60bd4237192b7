//! Runs the service, or a command on its store.
//!
//! Without arguments it serves:
//!
//! | variable | means |
//! | --- | --- |
//! | `CHAT_LISTEN` | the address; `127.0.0.1:8787` by default, port 0 takes a free one |
//! | `CHAT_STORE` | the store of the chats: `sqlite:FILE` or `postgres://..`; `sqlite:chat-service.db` by default |
//! | `CHAT_ORDERS` | the file of the placed orders; without it they are in memory |
//! | `CHAT_TOKENS` | the accepted tokens: `TOKEN=NAME@TENANT,..`; `token-ada=ada@acme` by default |
//! | `CHAT_MODEL_URL`, `CHAT_MODEL` | an endpoint and its model; without them a demo model answers by rule |
//! | `CHAT_MODEL_FORMAT` | the endpoint's format, `openai-chat` by default |
//! | `CHAT_MODEL_KEY` | the endpoint's key |
//! | `RUST_LOG` | the log on stderr, such as `warn,tool_runtime=debug`; none by default |
//!
//! With arguments it is a command line with the same tools and policy, such as
//! `chat-service --store sqlite:chat-service.db approvals list`.

use std::env;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use chat_service::demo::DemoModel;
use chat_service::people::{TENANT, people};
use chat_service::warehouse::Warehouse;
use chat_service::{POLICY, Service, capabilities, router, store};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tool_runtime::agent::ModelClient;
use tool_runtime::agent::http::HttpModel;
use tool_runtime_cli::{Adapters, App};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, fmt};

type Error = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    if env::args_os().len() > 1 {
        let about = "Serves a chat with approvals; with a command, works on its store";
        let app = App::new("chat-service", env!("CARGO_PKG_VERSION"), about).policy(POLICY).tenant(TENANT);
        return tool_runtime_cli::main(&app.adapters(|_| Ok(Adapters::new(capabilities(Arc::new(warehouse()))))));
    }
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A closed stderr leaves no place to report the error.
            let _ = writeln!(std::io::stderr(), "chat-service: {error}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn serve() -> Result<(), Error> {
    log()?;
    let people = people(variable("CHAT_TOKENS").as_deref().unwrap_or("token-ada=ada@acme"))?;
    let store = store::open(variable("CHAT_STORE").as_deref().unwrap_or(store::DEFAULT)).await?;
    let service = Service::new(model()?, Arc::new(warehouse()), people, store)?;
    let listener = TcpListener::bind(variable("CHAT_LISTEN").as_deref().unwrap_or("127.0.0.1:8787")).await?;
    writeln!(std::io::stdout(), "listening on http://{}", listener.local_addr()?)?;

    let (stop, stopped) = watch::channel(());
    let ended = |mut stopped: watch::Receiver<()>| async move { drop(stopped.changed().await) };
    let worker = tokio::spawn(service.worker().run(ended(stopped.clone())));
    tokio::spawn(async move {
        interrupted().await;
        drop(stop);
    });
    axum::serve(listener, router(Arc::new(service))).with_graceful_shutdown(ended(stopped)).await?;
    worker.await??;
    Ok(())
}

fn warehouse() -> Warehouse {
    variable("CHAT_ORDERS").map_or_else(Warehouse::default, Warehouse::open)
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// Installs the log of the library's spans and events, which contain only ids and codes. The service itself writes the
/// reasons of failures.
fn log() -> Result<(), Error> {
    if let Some(filter) = variable("RUST_LOG") {
        let filter: Targets = filter.parse().map_err(|_| "RUST_LOG is LEVEL or TARGET=LEVEL,..")?;
        let lines = fmt::layer().with_writer(std::io::stderr).with_filter(filter);
        tracing_subscriber::registry().with(lines).init();
    }
    Ok(())
}

fn model() -> Result<Arc<dyn ModelClient>, Error> {
    let (Some(url), Some(name)) = (variable("CHAT_MODEL_URL"), variable("CHAT_MODEL")) else {
        return Ok(Arc::new(DemoModel));
    };
    let format = variable("CHAT_MODEL_FORMAT").as_deref().unwrap_or("openai-chat").parse()?;
    let mut model = HttpModel::builder(format, url, name);
    if let Some(key) = variable("CHAT_MODEL_KEY") {
        model = model.key(key);
    }
    Ok(Arc::new(model.build()?))
}

/// Resolves on Ctrl-C, and on SIGTERM, which stops a container.
async fn interrupted() {
    #[cfg(unix)]
    if let Ok(mut terminated) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        tokio::select! {
            _ = terminated.recv() => return,
            Ok(()) = tokio::signal::ctrl_c() => return,
        }
    }
    // Without a signal handler the service runs until it is killed.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
