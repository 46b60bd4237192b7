//! Exports spans and metrics to a collector over OTLP/HTTP (feature `otlp`). `OTEL_EXPORTER_OTLP_ENDPOINT` holds the
//! collector's address, for example `http://127.0.0.1:4318`.

use std::io::Write as _;
use std::sync::mpsc;
use std::time::Duration;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry::{Array, StringValue, Value};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{MetricExporter, SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::{Aggregation, Instrument, PeriodicReader, SdkMeterProvider, Stream};
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData};
use tool_runtime_cli::App;
use tracing::Level;
use tracing_opentelemetry::{MetricsLayer, OpenTelemetryLayer};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::{Layer, Registry};

/// The variables with the address of the collector. The first two are for one kind each, and override the last.
const ENDPOINTS: [&str; 3] =
    ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/// The time limit of one export.
const EXPORT: Duration = Duration::from_secs(3);

/// The time that the process waits at its end for pending exports.
const FLUSH: Duration = Duration::from_secs(5);

/// The boundaries of the histograms that OpenTelemetry's conventions recommend.
const SECONDS: [f64; 14] = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const INVOCATION_SECONDS: [f64; 13] = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6];

/// Adds OpenTelemetry's standard variables to the help. The program has no options for them.
pub(crate) fn variables(app: App) -> App {
    app.variable("OTEL_EXPORTER_OTLP_ENDPOINT", "where spans and metrics go, such as http://127.0.0.1:4318")
        .variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, ..METRICS_ENDPOINT", "the same for one kind, as the whole URL")
        .variable("OTEL_EXPORTER_OTLP_HEADERS", "headers of each export, such as a key: name=value,name=value")
        .variable("OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES", "how the process is named")
}

/// The pipelines of this process.
pub(crate) struct Exporting {
    spans: SdkTracerProvider,
    metrics: SdkMeterProvider,
}

impl Exporting {
    /// Starts to export; `None` if the environment names no collector.
    pub(crate) fn start() -> Result<Option<Self>, Box<dyn std::error::Error>> {
        if ENDPOINTS.iter().all(|name| std::env::var_os(name).is_none_or(|value| value.is_empty())) {
            return Ok(None);
        }
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(EXPORT))
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .build();
        let client = Client(config.new_agent());
        let resource = Resource::builder();
        let resource = match std::env::var_os("OTEL_SERVICE_NAME") {
            Some(_) => resource,
            None => resource.with_service_name(env!("CARGO_PKG_NAME")),
        };
        let resource = resource.build();
        let spans = SpanExporter::builder().with_http().with_http_client(client.clone()).build()?;
        let metrics = MetricExporter::builder().with_http().with_http_client(client).build()?;
        Ok(Some(Self {
            spans: SdkTracerProvider::builder()
                .with_batch_exporter(Spans(spans))
                .with_resource(resource.clone())
                .build(),
            metrics: SdkMeterProvider::builder()
                .with_reader(PeriodicReader::builder(metrics).build())
                .with_view(histogram)
                .with_resource(resource)
                .build(),
        }))
    }

    /// Returns the layer that exports spans and metrics of `tracing`. Log events are excluded: an `ERROR` event would
    /// mark its span as failed, although the model may have read the error and continued. Source locations are
    /// excluded, too, because they are paths of the machine that built the program.
    pub(crate) fn layer(&self) -> impl Layer<Registry> + Send + Sync + use<> {
        let tracer = self.spans.tracer(env!("CARGO_PKG_NAME"));
        let spans = OpenTelemetryLayer::new(tracer)
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_tracked_inactivity(false)
            .with_filter(filter_fn(|metadata| metadata.is_span() && *metadata.level() <= Level::INFO));
        spans.and_then(MetricsLayer::new(self.metrics.clone()))
    }

    /// Exports the pending spans and metrics, within five seconds.
    pub(crate) fn finish(self) {
        let (ended, wait) = mpsc::channel();
        std::thread::spawn(move || {
            let (spans, metrics) = (self.spans.shutdown(), self.metrics.shutdown());
            // This fails if the time is over, because the receiver is then gone.
            let _ = ended.send(spans.is_ok() && metrics.is_ok());
        });
        if !wait.recv_timeout(FLUSH).unwrap_or_default() {
            // A closed stderr leaves no place to report the error.
            let _ = writeln!(std::io::stderr(), "spans and metrics could not be exported: is the collector reachable?");
        }
    }
}

/// Returns the unit and the boundaries of an instrument, which an event of `tracing` cannot contain.
fn histogram(instrument: &Instrument) -> Option<Stream> {
    let (unit, boundaries) = match instrument.name() {
        "gen_ai.execute_tool.duration" | "gen_ai.client.operation.duration" => ("s", SECONDS.to_vec()),
        "gen_ai.invoke_agent.duration" => ("s", INVOCATION_SECONDS.to_vec()),
        "gen_ai.client.token.usage" => ("{token}", (0..14).map(|power| 4_f64.powi(power)).collect()),
        _ => return None,
    };
    let aggregation = Aggregation::ExplicitBucketHistogram { boundaries, record_min_max: true };
    Stream::builder().with_unit(unit).with_aggregation(aggregation).build().ok()
}

/// Converts lists back: a field of a `tracing` span contains the JSON of a list, and the export has the list itself.
#[derive(Debug)]
struct Spans(SpanExporter);

impl opentelemetry_sdk::trace::SpanExporter for Spans {
    async fn export(&self, mut batch: Vec<SpanData>) -> OTelSdkResult {
        let attributes = batch.iter_mut().flat_map(|span| &mut span.attributes);
        for one in attributes.filter(|one| one.key.as_str() == "gen_ai.response.finish_reasons") {
            let text = one.value.as_str().into_owned();
            let words = text.split('"').skip(1).step_by(2).map(|word| StringValue::from(word.to_owned()));
            one.value = Value::Array(Array::String(words.collect()));
        }
        self.0.export(batch).await
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.0.set_resource(resource);
    }
}

/// Sends exports with the HTTP library that also fetches pages. Exporters run on their own threads, so it may block.
#[derive(Debug, Clone)]
struct Client(ureq::Agent);

#[async_trait::async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (parts, body) = request.into_parts();
        let response = self.0.run(Request::from_parts(parts, body.to_vec()))?;
        let (parts, mut body) = response.into_parts();
        Ok(Response::from_parts(parts, body.read_to_vec()?.into()))
    }
}
