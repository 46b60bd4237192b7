//! The interpreter runs a script on a separate thread. The script can reach nothing except through tool calls.
//!
//! The interpreter is not shared between threads, so it works with and without the `sync` feature of `rhai`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc as reply;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rhai::{Dynamic, EvalAltResult, ImmutableString, Map, Position};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use crate::agent::code::engine::engine;
use crate::agent::code::script_error::ScriptError;
use crate::agent::code::value;
use crate::contain::caught;
use crate::text::cut;

/// The stack of a script's thread, in bytes: several times the need of the deepest script, in a build without
/// optimisation.
const STACK: usize = 32 << 20;
/// The maximum length of the printed text, in bytes.
const PRINTED: usize = 16 << 10;

const FAILED: ScriptError = ScriptError::new("script_error", "The interpreter failed");

/// A call that a script requests.
pub(super) struct ScriptCall {
    pub(super) tool: String,
    pub(super) arguments: String,
    pub(super) reply: reply::SyncSender<Reply>,
}

/// The answer to a call, as JSON.
#[derive(Clone, Serialize, Deserialize)]
pub(super) enum Reply {
    Returned(String),
    /// The call failed. The script can catch the error.
    Threw(String),
}

/// The output of a script.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) value: Value,
    pub(super) printed: String,
}

/// A script to run.
pub(super) struct ScriptInput {
    pub(super) text: String,
    pub(super) tools: Vec<String>,
    pub(super) operations: u64,
}

/// A running script. On drop, the script stops at its next operation.
pub(super) struct Interpreter {
    pub(super) asked: mpsc::Receiver<ScriptCall>,
    ended: oneshot::Receiver<Result<Left, ScriptError>>,
    stop: Arc<AtomicBool>,
}

impl Drop for Interpreter {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Interpreter {
    /// Starts a script. It holds the permit until its thread ends.
    pub(super) fn start(source: ScriptInput, permit: OwnedSemaphorePermit) -> std::io::Result<Self> {
        Self::running(permit, move |ask, stop| run(&source, ask, stop))
    }

    /// Runs the script on its thread. A panic ends only the script.
    fn running(
        permit: OwnedSemaphorePermit,
        work: impl FnOnce(mpsc::Sender<ScriptCall>, Arc<AtomicBool>) -> Result<Left, ScriptError> + Send + 'static,
    ) -> std::io::Result<Self> {
        let (ask, asked) = mpsc::channel(1);
        let (end, ended) = oneshot::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        thread::Builder::new().name("script".into()).stack_size(STACK).spawn(move || {
            let _ = end.send(caught(|| work(ask, stopped)).unwrap_or(Err(FAILED)));
            drop(permit);
        })?;
        Ok(Self { asked, ended, stop })
    }

    /// Waits for the end of the script.
    pub(super) async fn end(mut self) -> Result<Left, ScriptError> {
        (&mut self.ended).await.unwrap_or(Err(FAILED))
    }
}

fn run(source: &ScriptInput, ask: mpsc::Sender<ScriptCall>, stop: Arc<AtomicBool>) -> Result<Left, ScriptError> {
    let failed: Arc<Mutex<Option<ScriptError>>> = Arc::default();
    let printed: Arc<Mutex<String>> = Arc::default();
    let mut engine = engine(source.operations, source.text.len());
    engine.on_progress(move |_| stop.load(Ordering::Relaxed).then_some(Dynamic::UNIT));
    let text = Arc::clone(&printed);
    engine.on_print(move |line| print(&mut text.lock().unwrap_or_else(PoisonError::into_inner), line));
    let port = Port { ask, failed: Arc::clone(&failed) };
    for tool in &source.tools {
        let (named, without, name) = (port.clone(), port.clone(), tool.clone());
        let tool = tool.clone();
        engine.register_fn(&name, move |arguments: Map| named.call(&tool, arguments));
        let tool = name.clone();
        engine.register_fn(&name, move || without.call(&tool, Map::new()));
    }
    engine.register_fn("call_tool", move |name: ImmutableString, arguments: Map| port.call(&name, arguments));
    let script = engine.compile(&source.text).map_err(|error| ScriptError::syntax(error.position()))?;
    let ended = engine.eval_ast::<Dynamic>(&script);
    if let Some(failure) = failed.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(failure);
    }
    let value = value::write(&ended.map_err(|error| ScriptError::of(&error))?)?;
    let printed = std::mem::take(&mut *printed.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Left { value, printed })
}

/// Keeps the part of a line that fits.
fn print(printed: &mut String, line: &str) {
    let room = PRINTED.saturating_sub(printed.len() + 1);
    if room > 0 {
        printed.push_str(cut(line, room));
        printed.push('\n');
    }
}

/// The script's side of the channel for tool calls.
#[derive(Clone)]
struct Port {
    ask: mpsc::Sender<ScriptCall>,
    failed: Arc<Mutex<Option<ScriptError>>>,
}

impl Port {
    fn call(&self, tool: &str, arguments: Map) -> Result<Dynamic, Box<EvalAltResult>> {
        let arguments = value::write(&Dynamic::from_map(arguments)).map_err(|failure| self.stop(failure))?.to_string();
        let (reply, replied) = reply::sync_channel(1);
        let asked = ScriptCall { tool: tool.to_owned(), arguments, reply };
        let stopped = || self.stop(ScriptError::new("script_stopped", "The script was stopped"));
        self.ask.blocking_send(asked).map_err(|_| stopped())?;
        match replied.recv().map_err(|_| stopped())? {
            Reply::Returned(text) => value::read(&text).map_err(|failure| self.stop(failure).into()),
            Reply::Threw(text) => {
                let thrown = value::read(&text).map_err(|failure| self.stop(failure))?;
                Err(EvalAltResult::ErrorRuntime(thrown, Position::NONE).into())
            }
        }
    }

    /// Records the failure, and ends the script with an error that it cannot catch.
    fn stop(&self, failure: ScriptError) -> EvalAltResult {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
        EvalAltResult::ErrorTerminated(Dynamic::UNIT, Position::NONE)
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Semaphore;

    use super::*;

    /// A defect of the interpreter ends only its own script. The failure has no details, and the script's permit is
    /// free again.
    #[tokio::test]
    async fn a_panic_of_the_interpreter_ends_its_script_alone() {
        let slots = Arc::new(Semaphore::new(1));
        for _ in 0..3 {
            let permit = Arc::clone(&slots).acquire_owned().await.unwrap();
            let mut broken = Interpreter::running(permit, |ask, _| {
                let (reply, _) = reply::sync_channel(1);
                let asked = ScriptCall { tool: "lab__read".to_owned(), arguments: "{}".to_owned(), reply };
                ask.blocking_send(asked).unwrap_or_default();
                panic!("a value of the script");
            })
            .unwrap();
            assert!(broken.asked.recv().await.is_some());
            assert!(broken.asked.recv().await.is_none(), "it asks nothing more");
            let failure = broken.end().await.unwrap_err();
            assert_eq!(failure.code, "script_error");
            assert!(!format!("{failure:?}").contains("value"), "{failure:?}");
        }
        let permit = Arc::clone(&slots).acquire_owned().await.unwrap();
        let source = ScriptInput { text: "6 * 7".to_owned(), tools: Vec::new(), operations: 1000 };
        let left = Interpreter::start(source, permit).unwrap().end().await.unwrap();
        assert_eq!(left.value, 42);
    }
}
