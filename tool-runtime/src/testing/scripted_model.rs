//! [`ScriptedModel`]: a model for tests that follows a script.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use crate::agent::{DisplayFn, ModelClient, ModelError, ModelErrorKind, ModelRequest};
use crate::wire::history::{CallMessage, Part};
use crate::wire::{Decoded, DisplayEvent, FinishReason, Message, RequestSettings, ToolChoice, Usage};

/// One turn of a [`ScriptedModel`].
///
/// [`ScriptedModel`] has an example.
#[derive(Debug)]
#[must_use]
pub struct ScriptedTurn {
    parts: Vec<Part>,
    /// The argument texts of the calls. They are texts because a model can write invalid JSON.
    arguments: Vec<String>,
    finish: FinishReason,
    usage: Option<Usage>,
    error: Option<ModelError>,
    never: bool,
}

impl ScriptedTurn {
    fn new(finish: FinishReason) -> Self {
        Self { parts: Vec::new(), arguments: Vec::new(), finish, usage: None, error: None, never: false }
    }

    /// Creates a turn in which the model answers with this text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(FinishReason::Stop).and_part(Part::text(text))
    }

    /// Creates a turn in which the model refuses with this text.
    pub fn refuses(text: impl Into<String>) -> Self {
        Self::new(FinishReason::Refusal).and_part(Part::Refusal(text.into()))
    }

    /// Creates a turn with one call; the arguments are JSON text.
    pub fn call(id: impl Into<String>, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self::new(FinishReason::ToolCalls).and_call(id, name, arguments)
    }

    /// Sets the finish reason of the turn.
    pub fn ending(mut self, finish: FinishReason) -> Self {
        self.finish = finish;
        self
    }

    /// Adds a call to the same turn.
    pub fn and_call(mut self, id: impl Into<String>, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        let arguments = arguments.into();
        self.parts.push(Part::Call(CallMessage::new(id.into(), name, &arguments)));
        self.arguments.push(arguments);
        self
    }

    /// Adds a part to the same turn, such as reasoning. Add a call with [`and_call`](Self::and_call).
    pub fn and_part(mut self, part: Part) -> Self {
        if let Part::Call(call) = &part {
            self.arguments.push(call.arguments().to_owned());
        }
        self.parts.push(part);
        self
    }

    /// Sets the numbers of tokens that the turn reports as used.
    pub fn using(mut self, input_tokens: u64, output_tokens: u64) -> Self {
        self.usage = Some(Usage::new(input_tokens, output_tokens));
        self
    }

    /// Creates a turn that fails with this error.
    pub fn fails(error: ModelError) -> Self {
        Self { error: Some(error), ..Self::new(FinishReason::Error) }
    }

    /// Creates a turn that never ends.
    pub fn hangs() -> Self {
        Self { never: true, ..Self::new(FinishReason::Truncated) }
    }

    fn decoded(self, choice: Option<&ToolChoice>) -> Decoded {
        let mut decoded = Decoded::new(&self.parts, self.finish);
        decoded.usage = self.usage;
        for (decoded, arguments) in decoded.calls.iter_mut().zip(self.arguments) {
            decoded.set_arguments(arguments);
            decoded.call.outside_choice = choice.is_some_and(|choice| !choice.allows(&decoded.call.name));
        }
        decoded
    }
}

/// A model for tests that answers each request with the next turn of its script. A request fails if no turn is left.
///
/// ```
/// use std::sync::Arc;
/// use tool_runtime::agent::{Agent, TurnOutcome};
/// use tool_runtime::testing::{ScriptedModel, ScriptedTurn};
/// use tool_runtime::{RunOptions, ToolCatalog, ToolPolicy, ToolRunner};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let model = Arc::new(ScriptedModel::new([ScriptedTurn::text("Hello.")]));
/// let runner = ToolRunner::builder(ToolCatalog::builder().build()?, ToolPolicy::deny_all()).build()?;
/// let mut conversation = Agent::new(Arc::clone(&model)).converse(runner.run(RunOptions::new()));
/// assert!(matches!(conversation.send("Hi!").await, TurnOutcome::Answered { text } if text == "Hello."));
/// assert_eq!(model.asked().len(), 1);
/// # Ok(()) })
/// # }
/// ```
///
/// # Panics
/// Panics on drop if the script has turns that were never requested, unless the thread is already panicking.
pub struct ScriptedModel {
    turns: Mutex<VecDeque<ScriptedTurn>>,
    asked: Mutex<Vec<RecordedRequest>>,
}

/// The messages and settings of one request.
struct RecordedRequest {
    messages: Vec<Message>,
    settings: RequestSettings,
}

impl ScriptedModel {
    /// Creates a model with these turns.
    #[must_use]
    pub fn new(turns: impl IntoIterator<Item = ScriptedTurn>) -> Self {
        Self { turns: Mutex::new(turns.into_iter().collect()), asked: Mutex::default() }
    }

    /// Returns the messages of every request, in order.
    #[must_use]
    pub fn asked(&self) -> Vec<Vec<Message>> {
        lock(&self.asked).iter().map(|asked| asked.messages.clone()).collect()
    }

    /// Returns the settings of every request, in order.
    #[must_use]
    pub fn settings(&self) -> Vec<RequestSettings> {
        lock(&self.asked).iter().map(|asked| asked.settings.clone()).collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl ModelClient for ScriptedModel {
    fn name(&self) -> &'static str {
        "scripted"
    }

    async fn complete(&self, request: ModelRequest<'_>, show: &mut DisplayFn<'_>) -> Result<Decoded, ModelError> {
        lock(&self.asked)
            .push(RecordedRequest { messages: request.messages.to_vec(), settings: request.settings.clone() });
        let turn = lock(&self.turns).pop_front();
        let turn = turn.ok_or_else(|| ModelError::new(ModelErrorKind::Script, "no turn is left"))?;
        if turn.never {
            std::future::pending::<()>().await;
        }
        if let Some(error) = turn.error {
            return Err(error);
        }
        let decoded = turn.decoded(request.settings.tool_choice.as_ref());
        for part in decoded.parts() {
            if let Part::Reasoning { text, .. } = part {
                show(DisplayEvent::Reasoning(text.into()));
            }
        }
        if !decoded.text.is_empty() {
            show(DisplayEvent::Text(decoded.text.as_str().into()));
        }
        for call in decoded.calls.iter().map(|decoded| &decoded.call) {
            show(DisplayEvent::CallStarted { id: call.id.clone(), name: call.name.as_str().into() });
            show(DisplayEvent::ArgumentsDelta { id: call.id.clone(), text: call.arguments().into() });
        }
        Ok(decoded)
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        let left = lock(&self.turns).len();
        // A second panic while a test fails would hide the first.
        assert!(left == 0 || std::thread::panicking(), "{left} turns of the script were never requested");
    }
}

impl fmt::Debug for ScriptedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedModel").field("left", &lock(&self.turns).len()).finish_non_exhaustive()
    }
}
