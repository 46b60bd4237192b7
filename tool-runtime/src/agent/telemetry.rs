//! The spans of a request to an agent and of its model's turns, with the `OpenTelemetry` names for generative AI, and
//! their metrics. They contain no text of a conversation.

use tokio::time::Instant;
use tracing::{Level, Span, event, field};

use crate::agent::ModelClient;
use crate::call::shown;
use crate::call::usage::Usage;
use crate::contain::attempted;
use crate::runner::{METRICS, Run};
use crate::wire::{Decoded, FinishReason, RequestSettings};

/// The error code of a span whose future was dropped.
const CANCELLED: &str = "cancelled";

/// The name of a model and its provider.
pub(super) struct Answering {
    pub(super) model: String,
    provider: String,
}

impl Answering {
    /// Reads both from the client, whose code may panic. `Err` contains the message of the panic.
    pub(super) fn of(client: &dyn ModelClient) -> Result<Self, String> {
        attempted(|| Self { model: client.name().to_owned(), provider: client.provider().to_owned() })
    }
}

/// The span `invoke_agent` of one request, or of one call of [`Conversation::step`](crate::agent::Conversation::step).
/// If it is dropped before its end, it records the error `cancelled`.
pub(super) struct Invocation {
    span: Span,
    run: Run,
    model: Option<String>,
    started: Instant,
    error: Option<&'static str>,
}

impl Invocation {
    pub(super) fn begin(run: &Run, model: &dyn ModelClient) -> Self {
        let run = run.clone();
        let answering = Answering::of(model).ok();
        let (model, provider) = answering.map(|one| (one.model, one.provider)).unzip();
        let agent = run.agent_id();
        let span = tracing::info_span!(
            "invoke_agent",
            otel.name = agent.map_or_else(|| "invoke_agent".to_owned(), |name| format!("invoke_agent {name}")),
            otel.status_code = field::Empty,
            gen_ai.operation.name = "invoke_agent",
            gen_ai.provider.name = provider,
            gen_ai.request.model = model,
            gen_ai.agent.id = agent,
            gen_ai.agent.name = agent,
            gen_ai.conversation.id = run.conversation_id(),
            gen_ai.usage.input_tokens = field::Empty,
            gen_ai.usage.output_tokens = field::Empty,
            gen_ai.usage.cache_read.input_tokens = field::Empty,
            gen_ai.usage.cache_creation.input_tokens = field::Empty,
            gen_ai.usage.reasoning.output_tokens = field::Empty,
            error.r#type = field::Empty,
            run = run.id(),
        );
        Self { span, run, model, started: Instant::now(), error: Some(CANCELLED) }
    }

    pub(super) fn span(&self) -> Span {
        self.span.clone()
    }

    /// Sets the end: success, or the code of an error.
    pub(super) fn ended(&mut self, error: Option<&'static str>) {
        self.error = error;
    }
}

impl Drop for Invocation {
    fn drop(&mut self) {
        failed(&self.span, self.error);
        event!(
            target: METRICS,
            Level::DEBUG,
            histogram.gen_ai.invoke_agent.duration = self.started.elapsed().as_secs_f64(),
            gen_ai.agent.name = self.run.agent_id(),
            gen_ai.request.model = self.model,
            error.r#type = self.error,
        );
    }
}

/// The span `chat` of one turn of a model. If it is dropped before its end, it records the error `cancelled`.
pub(super) struct Chat<'a> {
    span: Span,
    answering: &'a Answering,
    answered_by: Option<String>,
    started: Instant,
    error: Option<&'static str>,
}

impl<'a> Chat<'a> {
    pub(super) fn begin(run: &Run, answering: &'a Answering, settings: &RequestSettings, typed: bool) -> Self {
        let Answering { model, provider } = answering;
        let span = tracing::info_span!(
            "chat",
            otel.name = format_args!("chat {model}"),
            otel.kind = "client",
            otel.status_code = field::Empty,
            gen_ai.operation.name = "chat",
            gen_ai.provider.name = provider,
            gen_ai.request.model = model,
            gen_ai.request.max_tokens = settings.max_output_tokens.map(i64::from),
            gen_ai.request.seed = settings.seed,
            gen_ai.request.temperature = settings.temperature,
            gen_ai.request.top_p = settings.top_p,
            gen_ai.output.r#type = typed.then_some("json"),
            gen_ai.conversation.id = run.conversation_id(),
            gen_ai.response.id = field::Empty,
            gen_ai.response.model = field::Empty,
            gen_ai.response.finish_reasons = field::Empty,
            gen_ai.usage.input_tokens = field::Empty,
            gen_ai.usage.output_tokens = field::Empty,
            gen_ai.usage.cache_read.input_tokens = field::Empty,
            gen_ai.usage.cache_creation.input_tokens = field::Empty,
            gen_ai.usage.reasoning.output_tokens = field::Empty,
            error.r#type = field::Empty,
            run = run.id(),
        );
        Self { span, answering, answered_by: None, started: Instant::now(), error: Some(CANCELLED) }
    }

    pub(super) fn span(&self) -> Span {
        self.span.clone()
    }

    /// Records that the model gave no answer.
    pub(super) fn failed(mut self, code: &'static str) {
        self.error = Some(code);
    }

    /// Records the model's answer. Returns the span, which is the parent of the calls of the turn.
    pub(super) fn answered(mut self, decoded: &Decoded) -> Span {
        let failed = !decoded.ended_well() && decoded.finish != FinishReason::Pause;
        self.error = failed.then_some(word(decoded.finish));
        self.answered_by = decoded.model.as_deref().map(shown);
        let span = self.span();
        if let Some(id) = &decoded.response_id {
            span.record("gen_ai.response.id", &*shown(id));
        }
        if let Some(model) = &self.answered_by {
            span.record("gen_ai.response.model", &**model);
        }
        // A JSON list with one item, because a field of a span cannot be a list.
        span.record("gen_ai.response.finish_reasons", &*format!("[\"{}\"]", word(decoded.finish)));
        if let Some(usage) = &decoded.usage {
            record_usage(&span, usage);
            self.count("input", usage.total_input());
            self.count("output", usage.total_output());
        }
        span
    }

    fn count(&self, kind: &'static str, tokens: u64) {
        event!(
            target: METRICS,
            Level::DEBUG,
            histogram.gen_ai.client.token.usage = tokens,
            gen_ai.token.r#type = kind,
            gen_ai.operation.name = "chat",
            gen_ai.provider.name = self.answering.provider,
            gen_ai.request.model = self.answering.model,
            gen_ai.response.model = self.answered_by,
        );
    }
}

impl Drop for Chat<'_> {
    fn drop(&mut self) {
        failed(&self.span, self.error);
        event!(
            target: METRICS,
            Level::DEBUG,
            histogram.gen_ai.client.operation.duration = self.started.elapsed().as_secs_f64(),
            gen_ai.operation.name = "chat",
            gen_ai.provider.name = self.answering.provider,
            gen_ai.request.model = self.answering.model,
            gen_ai.response.model = self.answered_by,
            error.r#type = self.error,
        );
    }
}

const fn word(finish: FinishReason) -> &'static str {
    match finish {
        FinishReason::ToolCalls => "tool_calls",
        FinishReason::Stop => "stop",
        FinishReason::Length => "length",
        FinishReason::ContentFilter => "content_filter",
        FinishReason::Refusal => "refusal",
        FinishReason::Pause => "pause",
        FinishReason::Error => "error",
        FinishReason::Truncated => "truncated",
    }
}

fn failed(span: &Span, error: Option<&'static str>) {
    if let Some(code) = error {
        span.record("otel.status_code", "ERROR").record("error.type", code);
    }
}

/// The tokens of a request. They are recorded on the span of the request at its end, even if its future is dropped.
#[derive(Default)]
pub(super) struct Used(Option<(Span, Usage)>);

impl Used {
    /// Adds the tokens of a turn. Call it inside the span of the request.
    pub(super) fn add(&mut self, turn: Option<Usage>) {
        if let Some(turn) = turn {
            let (span, before) = self.0.take().unwrap_or_else(|| (Span::current(), Usage::default()));
            self.0 = Some((span, before.plus(turn)));
        }
    }
}

impl Drop for Used {
    fn drop(&mut self) {
        if let Some((span, usage)) = &self.0 {
            record_usage(span, usage);
        }
    }
}

/// Records tokens on a span. The input tokens include the cached tokens.
fn record_usage(span: &Span, usage: &Usage) {
    // Signed, because `tracing-opentelemetry` writes unsigned fields of a span as text.
    let count = |tokens| i64::try_from(tokens).unwrap_or(i64::MAX);
    span.record("gen_ai.usage.input_tokens", count(usage.total_input()));
    span.record("gen_ai.usage.output_tokens", count(usage.total_output()));
    for (field, tokens) in [
        ("gen_ai.usage.cache_read.input_tokens", usage.cache_read_tokens),
        ("gen_ai.usage.cache_creation.input_tokens", usage.cache_write_tokens),
        ("gen_ai.usage.reasoning.output_tokens", usage.reasoning_tokens),
    ] {
        if tokens > 0 {
            span.record(field, count(tokens));
        }
    }
}
