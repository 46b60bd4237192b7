//! Runs the service.
//!
//! | variable | means |
//! | --- | --- |
//! | `CHAT_LISTEN` | the address; `127.0.0.1:8787` by default, port 0 takes a free one |
//! | `CHAT_TOKENS` | the accepted tokens: `TOKEN=PRINCIPAL,..`; `token-ada=ada` by default |
//! | `CHAT_MODEL_URL`, `CHAT_MODEL` | an endpoint and its model; without them a demo model answers by rule |
//! | `CHAT_MODEL_FORMAT` | the endpoint's format, `openai-chat` by default |
//! | `CHAT_MODEL_KEY` | the endpoint's key |
//! | `RUST_LOG` | the log on stderr, such as `warn,tool_runtime=debug`; none by default |

use std::collections::HashMap;
use std::env;
use std::io::Write;
use std::sync::Arc;

use chat_service::demo::DemoModel;
use chat_service::warehouse::Warehouse;
use chat_service::{Service, router};
use tokio::net::TcpListener;
use tool_runtime::agent::ModelClient;
use tool_runtime::agent::http::HttpModel;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, fmt};

type Error = Box<dyn std::error::Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    log()?;
    let service = Service::new(model()?, Arc::new(Warehouse::default()), tokens()?)?;
    let listener = TcpListener::bind(variable("CHAT_LISTEN").as_deref().unwrap_or("127.0.0.1:8787")).await?;
    writeln!(std::io::stdout(), "listening on http://{}", listener.local_addr()?)?;
    axum::serve(listener, router(Arc::new(service))).with_graceful_shutdown(interrupted()).await?;
    Ok(())
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// Installs the log of the library's spans and events, which hold ids and codes only. The service itself writes the
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

fn tokens() -> Result<HashMap<String, String>, Error> {
    let text = variable("CHAT_TOKENS").unwrap_or_else(|| "token-ada=ada".to_owned());
    let pair = |pair: &str| {
        let (token, principal) = pair.split_once('=').ok_or("CHAT_TOKENS is TOKEN=PRINCIPAL,..")?;
        Ok((token.to_owned(), principal.to_owned()))
    };
    text.split(',').map(pair).collect()
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
