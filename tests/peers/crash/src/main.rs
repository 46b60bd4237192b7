//! This library in the comparison of crashes: a conversation that a worker continues, with its store in a file.
//!
//! `crash ask RUN TIMES`, `crash recover RUN`, `crash wait RUN`, `crash decide RUN`; the variables `WORLD` and `DATA`
//! name the server of refunds and the folder. Each line of the output is JSON for the harness.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tool_runtime::agent::{Agent, DisplayFn, Input, ModelClient, ModelError, ModelRequest, RunQueue, Worker};
use tool_runtime::call::{Decider, Question};
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::{RecordFilter, Store};
use tool_runtime::wire::history::{CallMessage, Part, ResultMessage};
use tool_runtime::wire::{Decoded, FinishReason, Message};
use tool_runtime::{RunOptions, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};
use tool_runtime_sql::{SqlOptions, SqlStore};

type Failure = Box<dyn Error>;

/// A worker takes a run over when the lease of another one ends. The default is 30 seconds.
const LEASE: Duration = Duration::from_secs(2);

/// A refund that was made.
#[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
struct Refund {
    /// The amount.
    refunded: u64,
}

/// Refunds a payment.
#[cfg_attr(
    not(feature = "effect-keys"),
    tool(name = "pay__refund", effect = external_side_effect, redact = ["refunded"])
)]
#[cfg_attr(
    feature = "effect-keys",
    tool(name = "pay__refund", effect = external_side_effect, redact = ["refunded"], once = "refund:{payment_id}")
)]
async fn refund(
    /// The payment.
    payment_id: String,
    /// The amount.
    cents: u64,
) -> Result<Refund, ToolError> {
    let body = json!({"payment_id": payment_id, "cents": cents}).to_string();
    post(&body).await.map_err(ToolError::unknown)
}

/// Sends one request, and never repeats it.
async fn post(body: &str) -> Result<Refund, Box<dyn Error + Send + Sync>> {
    let world = std::env::var("WORLD")?;
    let address = world.strip_prefix("http://").ok_or("no address")?;
    let mut stream = TcpStream::connect(address).await?;
    let head = format!("POST /refund HTTP/1.0\r\nhost: {address}\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;
    let (_, body) = response.split_once("\r\n\r\n").ok_or("no response")?;
    Ok(serde_json::from_str(body)?)
}

fn say(line: &Value) {
    println!("{line}");
}

fn report(kind: &str, text: &str) {
    say(&json!({"report": kind, "text": text}));
}

/// The model: it asks for the refund again, with a new call id, until it has read enough results.
struct Script {
    times: usize,
    /// The number of results that were reported.
    read: AtomicUsize,
}

#[async_trait]
impl ModelClient for Script {
    fn name(&self) -> &'static str {
        "script"
    }

    async fn complete(&self, request: ModelRequest<'_>, _: &mut DisplayFn<'_>) -> Result<Decoded, ModelError> {
        let results: Vec<_> = request
            .messages
            .iter()
            .filter_map(|message| match message {
                Message::Result(result) => Some(result),
                _ => None,
            })
            .collect();
        for result in results.iter().skip(self.read.fetch_max(results.len(), Ordering::AcqRel)) {
            report(kind_of(result), &result.content);
        }
        if results.len() >= self.times {
            return Ok(Decoded::new(&[Part::text("Done.")], FinishReason::Stop));
        }
        let id = format!("call_{}_{}", std::process::id(), results.len() + 1);
        let call = CallMessage::new(id, "pay__refund", r#"{"payment_id":"pay_1","cents":4200}"#);
        Ok(Decoded::new(&[Part::Call(call)], FinishReason::ToolCalls))
    }
}

/// Classifies a result of the model, in the terms of the comparison.
fn kind_of(result: &ResultMessage) -> &'static str {
    let read: Value = serde_json::from_str(&result.content).unwrap_or_default();
    match read["errorCode"].as_str() {
        None => "ok",
        Some("execution_error") => "error",
        Some("outcome_unknown") => "unknown",
        Some(_) => "refused",
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let (verb, run, times) = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [verb, run] => (verb, run, 1),
        [verb, run, times] => (verb, run, times.parse()?),
        _ => return Err("crash ask RUN TIMES | recover RUN | wait RUN | decide RUN".into()),
    };
    let data = PathBuf::from(std::env::var("DATA")?);
    let store: Arc<dyn Store> = Arc::new(SqlStore::sqlite(data.join("store.db"), SqlOptions::new()).await?);
    let asks = matches!(verb, "wait" | "decide");
    let policy = if asks {
        "allowed_tools = [\"pay__refund\"]\nrequire_approval_for_effects = [\"external_side_effect\"]"
    } else {
        "allowed_tools = [\"pay__refund\"]"
    };
    let catalog = ToolCatalog::builder().tool::<refund>().build()?;
    let runner = ToolRunner::builder(catalog, ToolPolicy::from_toml(policy)?).approvals(asks).lease(LEASE);
    let runner = runner.store(Arc::clone(&store)).build()?;
    let queue = RunQueue::new(&runner);
    let asked = data.join("question.json");
    if verb == "decide" {
        let question: Question = serde_json::from_str(&std::fs::read_to_string(asked)?)?;
        match queue.decide(run, &question, ApprovalDecision::Approve, &Decider::new("grace").tenant("acme")).await {
            Ok(_) => report("ok", "posted to the run"),
            Err(error) => report("refused", &format!("{}: {error}", error.code())),
        }
        return Ok(());
    }

    let agent = Agent::new(Script { times, read: AtomicUsize::new(0) });
    if verb != "recover" {
        let options = RunOptions::new().run_id(run).principal("ada").tenant("acme");
        let mut conversation = agent.converse(runner.run(options));
        conversation.accept(Input::from("Refund 4200 cents of pay_1.")).await?;
        queue.enqueue(&conversation.save().await?).await?;
    }
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let worker = Worker::new(agent, runner.clone()).lease(LEASE);
    let working = tokio::spawn(worker.run(async move { drop(stopped.await) }));
    if asks {
        reaches(&queue, run, "approval_required").await?;
        let calls = store.pending_calls(&RecordFilter::run(run)).await?;
        let question = calls.into_iter().next().ok_or("no call waits")??.question();
        std::fs::write(asked, serde_json::to_string(&question)?)?;
        report("waits", "approval_required");
    }
    reaches(&queue, run, "answered").await?;
    if asks {
        // Another decision may come; the process ends with its input.
        say(&json!({"ended": true}));
        tokio::io::stdin().read_to_end(&mut Vec::new()).await?;
    }
    drop(stop);
    working.await??;
    Ok(())
}

/// Waits until the run is in a state.
async fn reaches(queue: &RunQueue, run: &str, state: &str) -> Result<(), Failure> {
    while &*queue.find(run, Some("acme")).await?.0.state != state {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}
