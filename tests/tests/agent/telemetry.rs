//! Telemetry of a run: spans and metrics with the `OpenTelemetry` names for generative AI, and each failure once.

mod failures;

use std::sync::Arc;
use std::time::Duration;
use tests::DecideShown as _;

use async_trait::async_trait;
use serde_json::{Value, json};
use tests::grace;
use tests::tree::{Fields, Seen, Tree};
use tool_runtime::agent::{Agent, Conversation, DisplayFn, Graph, ModelClient, ModelError, ModelRequest};
use tool_runtime::runner::{ApprovalDecision, RunnerBuilder};
use tool_runtime::testing::{ScriptedModel, ScriptedTurn};
use tool_runtime::wire::{Decoded, Format, RequestSettings};
use tool_runtime::{Outcome, RunOptions, ToolCall, ToolCatalog, ToolContext, ToolError, ToolPolicy, ToolRunner, tool};
use tracing::Instrument;

const CANARY: &str = "CANARY-7c31";

/// Waits.
#[tool(name = "telemetry__wait", effect = read_only, redact = ["$"])]
async fn wait(
    context: &ToolContext,
    /// Milliseconds.
    ms: u64,
) -> Result<u64, ToolError> {
    tokio::time::sleep(Duration::from_millis(ms)).await;
    context.event(tracing::Level::INFO, "waited", &[]);
    Ok(ms)
}

/// Waits on a separate thread.
#[tool(name = "telemetry__block", effect = read_only, redact = ["$"], blocking)]
fn block() -> Result<bool, ToolError> {
    tracing::info!(blocked = true, "on another thread");
    Ok(true)
}

/// Fails with a cause.
#[tool(name = "telemetry__fail", effect = read_only, redact = ["$"])]
fn fail() -> Result<bool, ToolError> {
    Err(ToolError::code("gone").with_source(std::io::Error::other(format!("{CANARY}-cause"))))
}

/// Changes something, slowly.
#[tool(name = "telemetry__change", effect = state_change, redact = ["$"])]
async fn change() -> Result<bool, ToolError> {
    tokio::time::sleep(Duration::from_hours(1)).await;
    Ok(true)
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Two {
    shown: String,
    secret: String,
}

/// Signs in.
#[tool(name = "telemetry__sign_in", effect = read_only, redact = ["shown"])]
fn sign_in(
    /// Who.
    login: String,
    /// How.
    #[arg(sensitive)]
    password: String,
) -> Result<Two, ToolError> {
    Ok(Two { shown: format!("hello {login}"), secret: format!("{password}-secret") })
}

const TOOLS: [&str; 5] =
    ["telemetry__wait", "telemetry__block", "telemetry__fail", "telemetry__change", "telemetry__sign_in"];

fn builder() -> RunnerBuilder {
    let list: Vec<_> = TOOLS.iter().map(|name| format!("'{name}'")).collect();
    let policy = format!("parallel = 4\nallowed_tools = [{}]", list.join(","));
    let catalog = ToolCatalog::builder().tool::<wait>().tool::<block>().tool::<fail>().tool::<change>();
    let catalog = catalog.tool::<sign_in>().build().expect("a catalog");
    ToolRunner::builder(catalog, ToolPolicy::from_toml(&policy).expect("a policy"))
}

fn options() -> RunOptions {
    RunOptions::new().run_id("r-1").agent("helper").conversation("c-1").session("s-1")
}

/// Answers with recorded bytes, as a provider would.
struct Wire;

fn chunk(delta: &Value, finish: &Value) -> String {
    let choice = json!([{ "index": 0, "delta": delta, "finish_reason": finish }]);
    let frame = json!({ "id": "resp-1", "model": "gpt-x-2026", "choices": choice, "usage": null });
    format!("data: {frame}\n\n")
}

#[async_trait]
impl ModelClient for Wire {
    fn name(&self) -> &'static str {
        "gpt-x"
    }

    fn provider(&self) -> &'static str {
        "openai"
    }

    async fn complete(&self, request: ModelRequest<'_>, show: &mut DisplayFn<'_>) -> Result<Decoded, ModelError> {
        let mut decoder = Format::OpenAiChat.decoder();
        let asked = request.messages.iter().any(|message| message.text().contains("twice"));
        let answered = request.messages.iter().any(|message| matches!(message, tool_runtime::wire::Message::Result(_)));
        let body = if asked && !answered {
            let call = |at: u8, ms: u64| {
                json!({ "index": at, "id": format!("call_{at}"), "type": "function", "function":
                    { "name": "telemetry__wait", "arguments": json!({ "ms": ms }).to_string() } })
            };
            let calls = json!({ "role": "assistant", "tool_calls": [call(0, 20), call(1, 5)] });
            chunk(&calls, &Value::Null) + chunk(&json!({}), &json!("tool_calls")).as_str()
        } else {
            chunk(&json!({ "role": "assistant", "content": "Done." }), &Value::Null)
                + chunk(&json!({}), &json!("stop")).as_str()
        };
        let usage = json!({ "prompt_tokens": 11, "completion_tokens": 5,
            "prompt_tokens_details": { "cached_tokens": 4 }, "completion_tokens_details": { "reasoning_tokens": 2 } });
        let last = json!({ "id": "resp-1", "model": "gpt-x-2026", "choices": [], "usage": usage });
        decoder.push_with(format!("{body}data: {last}\n\ndata: [DONE]\n\n").as_bytes(), show);
        Ok(decoder.finish())
    }
}

fn converse(model: impl ModelClient + 'static) -> Conversation {
    Agent::new(model).converse(builder().build().expect("a runner").run(options()))
}

#[track_caller]
fn has(fields: &Fields, expected: &[(&str, &str)]) {
    for (name, value) in expected {
        assert_eq!(fields.get(*name).map(String::as_str), Some(*value), "{name} of {fields:#?}");
    }
}

fn parents(seen: &Seen) -> Vec<&str> {
    seen.parents.iter().map(String::as_str).collect()
}

#[tokio::test]
async fn the_spans_of_a_request_are_nested() {
    let tree = Tree::default();
    let guard = tree.listen();
    let mut conversation = {
        let settings = RequestSettings::new().temperature(0.5).max_output_tokens(100);
        let agent = Agent::new(Wire).settings(settings);
        agent.converse(builder().build().expect("a runner").run(options()))
    };
    let around = tracing::info_span!("a request of the application");
    conversation.send("Wait twice.").instrument(around).await;
    drop((conversation, guard));

    let invoked = tree.spans("invoke_agent");
    let [invoked] = &invoked[..] else { panic!("{invoked:#?}") };
    assert_eq!(
        (invoked.name.as_str(), parents(invoked)),
        ("invoke_agent helper", vec!["a request of the application"])
    );
    has(
        &invoked.fields,
        &[
            ("gen_ai.provider.name", "openai"),
            ("gen_ai.request.model", "gpt-x"),
            ("gen_ai.agent.name", "helper"),
            ("gen_ai.agent.id", "helper"),
            ("gen_ai.conversation.id", "c-1"),
            ("gen_ai.usage.input_tokens", "22"),
            ("gen_ai.usage.output_tokens", "10"),
            ("gen_ai.usage.cache_read.input_tokens", "8"),
            ("gen_ai.usage.reasoning.output_tokens", "4"),
        ],
    );
    assert!(!invoked.fields.contains_key("error.type"));

    let chats = tree.spans("chat");
    assert_eq!(chats.len(), 2);
    for (chat, finish) in chats.iter().zip([r#"["tool_calls"]"#, r#"["stop"]"#]) {
        assert_eq!(chat.name, "chat gpt-x");
        assert_eq!(parents(chat)[0], "invoke_agent helper");
        has(
            &chat.fields,
            &[
                ("otel.kind", "client"),
                ("gen_ai.provider.name", "openai"),
                ("gen_ai.request.model", "gpt-x"),
                ("gen_ai.request.temperature", "0.5"),
                ("gen_ai.request.max_tokens", "100"),
                ("gen_ai.conversation.id", "c-1"),
                ("gen_ai.response.id", "resp-1"),
                ("gen_ai.response.model", "gpt-x-2026"),
                ("gen_ai.response.finish_reasons", finish),
                ("gen_ai.usage.input_tokens", "11"),
                ("gen_ai.usage.output_tokens", "5"),
                ("gen_ai.usage.cache_read.input_tokens", "4"),
                ("gen_ai.usage.reasoning.output_tokens", "2"),
            ],
        );
    }

    let tools = tree.spans("execute_tool");
    assert_eq!(tools.len(), 2);
    for (at, tool) in tools.iter().enumerate() {
        assert_eq!(tool.name, "execute_tool telemetry__wait");
        assert_eq!(parents(tool)[..2], ["chat gpt-x", "invoke_agent helper"]);
        has(
            &tool.fields,
            &[
                ("gen_ai.tool.name", "telemetry__wait"),
                ("gen_ai.tool.type", "function"),
                ("gen_ai.tool.call.id", &format!("call_{at}")),
                ("gen_ai.agent.name", "helper"),
                ("gen_ai.conversation.id", "c-1"),
            ],
        );
        for absent in ["error.type", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"] {
            assert!(!tool.fields.contains_key(absent), "{absent}");
        }
    }
    // A tool's log events belong to its own span, also while another tool runs.
    let waited = tree.events("event");
    assert!(waited.iter().all(|event| event.spans[0] == "execute_tool telemetry__wait"), "{waited:#?}");
    // While its calls ran, the turn itself was over: nothing entered its span any more.
    assert_eq!(chats[0].entered, chats[1].entered, "{chats:#?}");
    assert!(invoked.closed && chats.iter().chain(&tools).all(|span| span.closed));
}

#[tokio::test]
async fn a_call_on_a_task_of_its_own_stays_in_its_span() {
    let tree = Tree::default();
    let _guard = tree.listen();
    let run = builder().build().expect("a runner").run(options());
    let call = |id: &str| ToolCall::text(id, "telemetry__wait", json!({ "ms": id.len() }).to_string());

    let here = tracing::info_span!("here");
    let spawned = here.in_scope(|| tokio::spawn(run.exec(call("spawned"))));
    assert!(spawned.await.expect("a result").is_ok());
    // The parent is the span around the call while it runs, not the span in which the call was made.
    let there = tracing::info_span!("there");
    let made = here.in_scope(|| run.exec(call("made")));
    assert!(made.instrument(there).await.is_ok());
    assert!(run.exec(call("alone")).await.is_ok());
    let tools = tree.spans("execute_tool");
    let of = |id: &str| {
        let found = tools.iter().find(|tool| tool.fields["gen_ai.tool.call.id"] == id);
        parents(found.unwrap_or_else(|| panic!("no {id}"))).join(",")
    };
    assert_eq!((of("spawned"), of("made"), of("alone")), ("here".into(), "there".into(), String::new()));
}

#[test]
fn a_blocking_tool_logs_in_its_span() {
    let tree = Tree::default();
    let dispatch = tree.dispatch();
    let everywhere = dispatch.clone();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .on_thread_start(move || std::mem::forget(tracing::dispatcher::set_default(&everywhere)))
        .build()
        .expect("a runtime");
    let guard = tracing::dispatcher::set_default(&dispatch);
    runtime.block_on(async {
        let run = builder().build().expect("a runner").run(options());
        assert!(run.exec(ToolCall::text("c", "telemetry__block", "{}")).await.is_ok());
    });
    drop((guard, runtime));
    assert_eq!(tree.events("blocked")[0].spans, ["execute_tool telemetry__block"], "{}", tree.text());
}

#[tokio::test(start_paused = true)]
async fn failures_have_their_code() {
    let tree = Tree::default();
    let _guard = tree.listen();
    let run = builder().build().expect("a runner").run(options());
    run.exec(ToolCall::text("failed", "telemetry__fail", "{}")).await;
    let dropped = run.exec(ToolCall::text("dropped", "telemetry__change", "{}"));
    assert!(tokio::time::timeout(Duration::from_millis(20), dropped).await.is_err());
    let waiting = run.exec(ToolCall::text("dropped too", "telemetry__wait", r#"{"ms":60000}"#));
    assert!(tokio::time::timeout(Duration::from_millis(20), waiting).await.is_err());
    // A call that never reached a tool has no span: the log states the cause.
    run.exec(ToolCall::text("refused", "telemetry__wait", "{}")).await;
    let errors: Vec<_> = tree
        .spans("execute_tool")
        .iter()
        .map(|tool| (tool.fields["gen_ai.tool.call.id"].clone(), tool.fields["error.type"].clone()))
        .collect();
    let expected = [("failed", "execution_error"), ("dropped", "outcome_unknown"), ("dropped too", "cancelled")];
    assert_eq!(errors, expected.map(|(id, code)| (id.to_owned(), code.to_owned())));
    for tool in tree.spans("execute_tool") {
        has(&tool.fields, &[("otel.status_code", "ERROR")]);
    }

    let script = [ScriptedTurn::fails(ModelError::refused(429, "scripted"))];
    converse(ScriptedModel::new(script)).send("Hello.").await;
    for operation in ["chat", "invoke_agent"] {
        has(&tree.spans(operation)[0].fields, &[("error.type", "model_overloaded"), ("otel.status_code", "ERROR")]);
    }
    // A request that is dropped while the model thinks.
    let model = Arc::new(ScriptedModel::new([ScriptedTurn::hangs()]));
    let mut conversation = converse(Arc::clone(&model));
    assert!(tokio::time::timeout(Duration::from_millis(20), conversation.send("Hello.")).await.is_err());
    for operation in ["chat", "invoke_agent"] {
        has(&tree.spans(operation)[1].fields, &[("error.type", "cancelled"), ("otel.status_code", "ERROR")]);
    }
    assert!(!tree.text().contains(CANARY));
}

#[tokio::test(start_paused = true)]
async fn durations_and_tokens_are_measured() {
    let tree = Tree::default();
    let _guard = tree.listen();
    converse(Wire).send("Wait twice.").await;
    let run = builder().build().expect("a runner").run(options());
    run.exec(ToolCall::text("failed", "telemetry__fail", "{}")).await;

    let tools = tree.events("histogram.gen_ai.execute_tool.duration");
    assert_eq!(tools.len(), 3);
    for (tool, name) in tools.iter().zip(["telemetry__wait", "telemetry__wait", "telemetry__fail"]) {
        assert_eq!(tool.target, "tool_runtime::metrics");
        let mut expected =
            vec![("gen_ai.tool.name", name), ("gen_ai.tool.type", "function"), ("gen_ai.agent.name", "helper")];
        if name == "telemetry__fail" {
            expected.push(("error.type", "execution_error"));
        }
        has(&tool.fields, &expected);
        assert_eq!(tool.fields.len(), expected.len() + 1, "no attribute has an unbounded number of values");
    }
    let seconds = |text: &str| text.parse::<f64>().expect("seconds");
    // The shorter of the two calls ended first, and neither was measured with the other.
    let (first, second) = (&tools[0].fields, &tools[1].fields);
    let of = |fields: &Fields| seconds(&fields["histogram.gen_ai.execute_tool.duration"]);
    assert!((0.005..0.01).contains(&of(first)) && (0.02..0.03).contains(&of(second)), "{tools:#?}");

    let chats = tree.events("histogram.gen_ai.client.operation.duration");
    assert_eq!(chats.len(), 2);
    let chat = [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.provider.name", "openai"),
        ("gen_ai.request.model", "gpt-x"),
        ("gen_ai.response.model", "gpt-x-2026"),
    ];
    has(&chats[0].fields, &chat);
    // The duration excludes the time of its tools.
    assert!(seconds(&chats[0].fields["histogram.gen_ai.client.operation.duration"]) < 0.005);
    let tokens = tree.events("histogram.gen_ai.client.token.usage");
    let counted: Vec<_> = tokens
        .iter()
        .map(|one| (&*one.fields["gen_ai.token.type"], &*one.fields["histogram.gen_ai.client.token.usage"]))
        .collect();
    assert_eq!(counted, [("input", "11"), ("output", "5"), ("input", "11"), ("output", "5")]);
    has(&tokens[0].fields, &chat);
    let invoked = tree.events("histogram.gen_ai.invoke_agent.duration");
    assert_eq!(invoked.len(), 1);
    has(&invoked[0].fields, &[("gen_ai.agent.name", "helper"), ("gen_ai.request.model", "gpt-x")]);
    assert!(seconds(&invoked[0].fields["histogram.gen_ai.invoke_agent.duration"]) >= 0.02);
}

#[tokio::test]
async fn values_are_shown_on_demand_and_projected() {
    for wanted in [false, true] {
        let tree = Tree::default();
        let guard = tree.listen();
        let run = builder().span_values(wanted).build().expect("a runner").run(options());
        let arguments = json!({ "login": "ada", "password": CANARY }).to_string();
        assert!(run.exec(ToolCall::text("c", "telemetry__sign_in", arguments)).await.is_ok());
        run.exec(ToolCall::text("failed", "telemetry__fail", "{}")).await;
        drop(guard);
        let tools = tree.spans("execute_tool");
        let value =
            |name: &str| tools[0].fields.get(name).map(|text| serde_json::from_str::<Value>(text).expect("JSON"));
        let (arguments, result) = (value("gen_ai.tool.call.arguments"), value("gen_ai.tool.call.result"));
        if wanted {
            assert_eq!(arguments.expect("arguments")["login"], "ada");
            assert_eq!(result, Some(json!({ "shown": "hello ada" })));
            assert!(!tools[1].fields.contains_key("gen_ai.tool.call.result"));
        } else {
            assert_eq!((arguments, result), (None, None));
        }
        assert!(!tree.text().contains(CANARY), "{}", tree.text());
    }
}

#[tokio::test]
async fn an_approved_call_belongs_to_the_request_that_decides() {
    let tree = Tree::default();
    let _guard = tree.listen();
    let catalog = ToolCatalog::builder().tool::<wait>().build().expect("a catalog");
    let policy = "allowed_tools = ['telemetry__wait']\nrequire_approval_for_tools = ['telemetry__wait']";
    let runner = ToolRunner::builder(catalog, ToolPolicy::from_toml(policy).expect("a policy")).approvals(true);
    let run = runner.build().expect("a runner").run(options());
    let script = [ScriptedTurn::call("c1", "telemetry__wait", r#"{"ms":1}"#), ScriptedTurn::text("Done.")];
    let mut conversation = Agent::new(ScriptedModel::new(script)).converse(run);
    conversation.send("Wait.").await;
    assert!(tree.spans("execute_tool").is_empty(), "nothing ran yet");
    conversation.decide_shown(&"c1".into(), ApprovalDecision::Approve, &grace()).await.expect("it waits");
    let tools = tree.spans("execute_tool");
    assert_eq!(parents(&tools[0]), ["invoke_agent helper"]);
    assert_eq!(tree.spans("invoke_agent").len(), 2);
    has(&tree.spans("chat")[0].fields, &[("gen_ai.provider.name", "_OTHER"), ("gen_ai.request.model", "scripted")]);
    assert_eq!(conversation.run().summary().calls.get(&Outcome::Ok), Some(&1));
}

#[tokio::test]
async fn the_spans_of_a_graph_are_below_its_call() {
    let tree = Tree::default();
    let _guard = tree.listen();
    let inner =
        [ScriptedTurn::call("c1", "telemetry__wait", r#"{"ms":1}"#), ScriptedTurn::text(r#"{"summary":"Done."}"#)];
    let graph = Graph::new("waiter", "1", Agent::new(ScriptedModel::new(inner)))
        .description("Waits.")
        .tools(["telemetry__wait"]);
    let catalog = ToolCatalog::builder().tool::<wait>().dynamic(graph).build().expect("a catalog");
    let policy = "allowed_tools = ['telemetry__wait']\nallowed_graphs = ['waiter']";
    let runner = ToolRunner::builder(catalog, ToolPolicy::from_toml(policy).expect("a policy"));
    let run = runner.build().expect("a runner").run(options());
    let script = [ScriptedTurn::call("c1", "graph__waiter", r#"{"task":"Wait."}"#), ScriptedTurn::text("Done.")];
    Agent::new(ScriptedModel::new(script)).converse(run).send("Wait.").await;
    let tools = tree.spans("execute_tool");
    let inner = tools.iter().find(|seen| seen.fields["gen_ai.tool.name"] == "telemetry__wait").expect("a tool");
    let above =
        ["chat scripted", "invoke_agent waiter", "execute_tool graph__waiter", "chat scripted", "invoke_agent helper"];
    assert_eq!(parents(inner)[..5], above);
}
