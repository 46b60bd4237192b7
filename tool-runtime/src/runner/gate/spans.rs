//! [`Execution`]: the span of a running tool and its duration as a metric, with the `OpenTelemetry` names for
//! generative AI.

use std::sync::Arc;

use tokio::time::Instant;
use tracing::level_filters::LevelFilter;
use tracing::{Level, Span, field};

use crate::call::{CallId, Cause, Outcome};
use crate::redact::Projected;
use crate::runner::Run;
use crate::runner::gate::draft::Draft;
use crate::runner::gate::ending::Stop;
use crate::tool::{ToolEffect, ToolSpec};

/// The target of the tracing events that are metrics. Their fields `histogram.*` and `gauge.*` are values, all other
/// fields are attributes.
pub(crate) const METRICS: &str = "tool_runtime::metrics";

/// The parent of a call's span.
#[derive(Clone)]
pub(in crate::runner) enum Parent {
    /// The turn of a model that made the call.
    Turn(Span),
    /// The span that is current while the tool runs. If there is none, because the call runs in a separate task, the
    /// parent is the contained span, which was current when the call was made.
    Surroundings(Span),
}

impl Parent {
    /// Returns the current span. Without a subscriber, skips the look-up.
    pub(in crate::runner) fn surroundings() -> Self {
        let is_off = LevelFilter::current() == LevelFilter::OFF;
        Self::Surroundings(if is_off { Span::none() } else { Span::current() })
    }

    #[inline]
    fn span(&self) -> Span {
        match self {
            Self::Turn(span) => span.clone(),
            Self::Surroundings(origin) => {
                let around = Span::current();
                if around.is_none() { origin.clone() } else { around }
            }
        }
    }
}

/// The span of a running tool. If it is dropped before `end`, the execution is recorded as cancelled.
pub(in crate::runner) struct Execution {
    span: Span,
    shows_values: bool,
    failed: Option<Outcome>,
    /// `None` if no subscriber receives metrics.
    measured: Option<Box<Measured>>,
}

struct Measured {
    started: Instant,
    spec: Arc<ToolSpec>,
    agent: Option<Arc<str>>,
}

impl Execution {
    #[inline]
    pub(in crate::runner) fn begin(
        run: &Run,
        parent: &Parent,
        draft: &Draft,
        spec: &Arc<ToolSpec>,
        id: &CallId,
        effect: ToolEffect,
    ) -> Self {
        let options = run.options();
        let (tool, agent) = (spec.name.as_str(), options.agent.as_deref());
        let span = tracing::info_span!(
            parent: &parent.span(),
            "execute_tool",
            otel.name = format_args!("execute_tool {tool}"),
            otel.status_code = field::Empty,
            gen_ai.operation.name = "execute_tool",
            gen_ai.tool.name = tool,
            // Recorded as a string, which subscribers escape, because the model chose the id.
            gen_ai.tool.call.id = id.as_str(),
            gen_ai.tool.r#type = "function",
            gen_ai.tool.call.arguments = field::Empty,
            gen_ai.tool.call.result = field::Empty,
            gen_ai.agent.id = agent,
            gen_ai.agent.name = agent,
            gen_ai.conversation.id = options.conversation.as_deref(),
            error.r#type = field::Empty,
            run = run.id(),
        );
        let shows_values = run.shared().span_values;
        if shows_values && let Some(arguments) = draft.masked() {
            span.record("gen_ai.tool.call.arguments", arguments.get());
        }
        let failed = Some(Cause::Cancelled.outcome(effect));
        let measured = tracing::enabled!(target: METRICS, Level::DEBUG).then(|| {
            let (spec, agent) = (Arc::clone(spec), options.agent.clone());
            Box::new(Measured { started: Instant::now(), spec, agent })
        });
        Self { span, shows_values, failed, measured }
    }

    /// Whether the span is disabled.
    pub(in crate::runner) fn is_disabled(&self) -> bool {
        self.span.is_none()
    }

    pub(in crate::runner) fn span(&self) -> Span {
        self.span.clone()
    }

    /// Records that the tool returned or was stopped. If span values are enabled, also records the part of the result
    /// that everyone may see.
    #[inline]
    pub(in crate::runner) fn end(mut self, ended: Result<Option<&Projected>, &Stop>) {
        self.failed = match ended {
            Ok(projected) => {
                if let Some(projected) = projected.filter(|_| self.shows_values) {
                    self.span.record("gen_ai.tool.call.result", projected.shown.get());
                }
                None
            }
            Err(stop) => Some(stop.outcome),
        };
    }
}

impl Drop for Execution {
    fn drop(&mut self) {
        let error = self.failed.map(Outcome::code);
        if let Some(code) = error {
            self.span.record("otel.status_code", "ERROR").record("error.type", code);
        }
        let Some(measured) = &self.measured else { return };
        tracing::event!(
            target: METRICS,
            Level::DEBUG,
            histogram.gen_ai.execute_tool.duration = measured.started.elapsed().as_secs_f64(),
            gen_ai.tool.name = measured.spec.name.as_str(),
            gen_ai.tool.r#type = "function",
            gen_ai.agent.name = measured.agent.as_deref(),
            error.r#type = error,
        );
    }
}
