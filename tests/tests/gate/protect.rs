//! The protections hold: pins and allowlists of discovered tools, rules about arguments, validators of one runner,
//! evidence and hints, values that lie about their schema.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use tool_runtime::call::Violation;
use tool_runtime::error::{BuildError, Problem};
use tool_runtime::registration::{DynamicHandler, DynamicTool};
use tool_runtime::schema::validator::{Compiled, JsonSchemaValidator, Tree, Validator};
use tool_runtime::store::{MemoryStore, RecordFilter, Store as _};
use tool_runtime::tool::Schema;
use tool_runtime::wire::Format;
use tool_runtime::{
    Outcome, Run, RunOptions, ToolCall, ToolCatalog, ToolContext, ToolEffect, ToolError, ToolPolicy, ToolRunner,
};

/// Answers with what it got and a secret.
struct Echo;

#[async_trait]
impl DynamicHandler for Echo {
    async fn call(&self, arguments: &Value, _: &ToolContext) -> Result<Value, ToolError> {
        Ok(json!({"who": arguments["who"], "secret": "SECRET-77"}))
    }
}

/// Answers with arrays in arrays.
struct Deep(usize);

#[async_trait]
impl DynamicHandler for Deep {
    async fn call(&self, _: &Value, _: &ToolContext) -> Result<Value, ToolError> {
        Ok((0..self.0).fold(Value::Null, |inner, _| Value::Array(vec![inner])))
    }
}

fn schema(properties: &Value) -> Value {
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}

fn who() -> Value {
    schema(&json!({"who": {"type": "string"}}))
}

fn tool(name: &str, input: Value) -> DynamicTool {
    DynamicTool::new(name, "Says it again.", input, ToolEffect::ReadOnly, Arc::new(Echo)).redact(["who"])
}

fn catalog(tool: DynamicTool) -> Result<ToolCatalog, BuildError> {
    ToolCatalog::builder().dynamic(tool).build()
}

fn run_of(tool: DynamicTool, policy: &str) -> Run {
    let policy = ToolPolicy::from_toml(policy).expect("a policy");
    let runner = ToolRunner::builder(catalog(tool).expect("a catalog"), policy).build().expect("a runner");
    runner.run(RunOptions::new())
}

#[tokio::test]
async fn a_discovered_tool_runs_when_its_definition_is_pinned() {
    let discovered = || DynamicTool::discovered("srv", "echo", "Says it again.", who(), Arc::new(Echo));
    let hash = catalog(discovered()).unwrap().get("mcp__srv__echo").unwrap().pin.unwrap().to_string();
    let other = catalog(discovered().title("Echo").tags(["x"])).unwrap().get("mcp__srv__echo").unwrap().pin.unwrap();
    assert_ne!(hash, other.to_string(), "a title changes the definition");
    let rule = |rest: &str| format!("allowed_tools = ['mcp__srv__echo']\n[tools.mcp__srv__echo]\n{rest}");
    let call = || ToolCall::text("c", "mcp__srv__echo", r#"{"who":"ada"}"#);
    let zeros = "0".repeat(64);
    for (policy, outcome) in [
        (rule("redact = ['who']"), Outcome::PolicyDenied),
        (rule(&format!("redact = ['who']\npin = '{zeros}'")), Outcome::PolicyDenied),
        (rule(&format!("redact = ['who']\npin = '{other}'")), Outcome::PolicyDenied),
        (rule(&format!("pin = '{hash}'")), Outcome::RedactionFailed),
        (rule(&format!("redact = ['who']\npin = '{hash}'")), Outcome::Ok),
    ] {
        let result = run_of(discovered(), &policy).exec(call()).await;
        assert_eq!(result.outcome(), outcome, "{policy}");
        assert!(!result.to_model().contains("SECRET"), "{policy}");
    }
    let pinned = |rest: &str| rule(&format!("pin = '{hash}'\n{rest}"));
    let shown = run_of(discovered(), &pinned("redact = ['who']\nmodel = ['secret']")).exec(call()).await;
    assert!(shown.to_model().contains("SECRET-77") && !shown.value().unwrap().get().contains("SECRET-77"));
}

#[tokio::test]
async fn results_of_discovered_tools_are_untrusted() {
    let discovered = || DynamicTool::discovered("srv", "echo", "Says it again.", who(), Arc::new(Echo));
    let hash = catalog(discovered()).unwrap().get("mcp__srv__echo").unwrap().pin.unwrap();
    let change =
        || DynamicTool::new("t__b", "Changes.", who(), ToolEffect::StateChange, Arc::new(Echo)).redact(["who"]);
    let policy = format!(
        "allowed_tools = ['mcp__srv__echo', 't__b']\n[tools.mcp__srv__echo]\npin = '{hash}'\nredact = ['who']\n\
         [labels.untrusted]\ndeny_effects = ['state_change']"
    );
    let catalog = ToolCatalog::builder().dynamic(discovered()).dynamic(change()).build().unwrap();
    let policy = ToolPolicy::from_toml(&policy).unwrap();
    let run = ToolRunner::builder(catalog, policy).build().unwrap().run(RunOptions::new());
    let call = async |id: &str, name: &str| run.exec(ToolCall::text(id, name, r#"{"who":"ada"}"#)).await.outcome();
    assert_eq!(call("1", "t__b").await, Outcome::Ok);
    assert_eq!(call("2", "mcp__srv__echo").await, Outcome::Ok);
    // No rule names the tool: the label comes with its name.
    assert_eq!(call("3", "t__b").await, Outcome::PolicyDenied);
}

#[tokio::test]
async fn an_array_in_place_of_an_object_is_invalid_output() {
    for (output, expected) in
        [(json!({"type": "object"}), Outcome::Ok), (json!({"type": "array"}), Outcome::OutputInvalid)]
    {
        let tool = tool("t__a", who()).output_schema(output).redact(Vec::<String>::new());
        let result = run_of(tool, "allowed_tools = ['t__a']").exec(ToolCall::text("c", "t__a", "{}")).await;
        assert_eq!(result.outcome(), expected);
    }
    let listed = schema(&json!({"a": {"type": "string"}}));
    let tool = DynamicTool::new("t__a", "Lists.", who(), ToolEffect::ReadOnly, Arc::new(Listed)).output_schema(listed);
    let result = run_of(tool.redact(["a"]), "allowed_tools = ['t__a']").exec(ToolCall::text("c", "t__a", "{}")).await;
    assert_eq!(result.outcome(), Outcome::OutputInvalid, "{:?}", result.value());
}

/// Answers with an array of what should be one object.
struct Listed;

#[async_trait]
impl DynamicHandler for Listed {
    async fn call(&self, _: &Value, _: &ToolContext) -> Result<Value, ToolError> {
        Ok(json!([{"a": "x"}]))
    }
}

#[tokio::test]
async fn a_policy_narrows_the_allowlist_of_a_discovered_tool() {
    let discovered =
        || DynamicTool::discovered("srv", "echo", "Says it.", who(), Arc::new(Echo)).redact(["who", "secret"]);
    let hash = catalog(discovered()).unwrap().get("mcp__srv__echo").unwrap().pin.unwrap();
    let policy = |rest: &str| {
        format!(
            "allowed_tools = ['mcp__srv__echo']\n[tools.mcp__srv__echo]\npin = '{hash}'\neffect = 'read_only'\n{rest}"
        )
    };
    let call = || ToolCall::text("c", "mcp__srv__echo", r#"{"who":"ada"}"#);
    let result = run_of(discovered(), &policy("")).exec(call()).await;
    assert_eq!(result.to_model(), r#"{"secret":"SECRET-77","who":"ada"}"#);
    let result = run_of(discovered(), &policy("redact = ['who']")).exec(call()).await;
    assert_eq!(result.to_model(), r#"{"who":"ada"}"#);
    let policy = ToolPolicy::from_toml(&policy("redact = ['who', 'more']")).unwrap();
    let error = ToolRunner::builder(catalog(discovered()).unwrap(), policy).build().unwrap_err();
    assert!(error.to_string().contains("`more` is not on the tool's own allowlist"), "{error}");
}

#[test]
fn the_namespace_of_discovered_tools_is_reserved() {
    let taken = ["mcp__srv__echo", "MCP__srv__echo"].map(|name| tool(name, who()));
    for tool in taken.into_iter().chain([tool("srv__echo", who()).namespace("mcp")]) {
        let error = catalog(tool).unwrap_err();
        assert_eq!(error.code(), "name");
        assert!(error.to_string().contains("reserved"), "{error}");
    }
    // Outside the namespace no pin would be asked of it.
    let escaped = DynamicTool::discovered("srv", "echo", "Says it again.", who(), Arc::new(Echo)).namespace("lab");
    let error = catalog(escaped).unwrap_err();
    assert!(error.to_string().contains("give it no namespace"), "{error}");
    let handed_over = DynamicTool::discovered("srv", "echo", "Says it again.", who(), Arc::new(Echo));
    let error = catalog(handed_over.client(json!({"type": "string"}), ["who"])).unwrap_err();
    assert_eq!(error.code(), "execution");
    assert!(error.to_string().contains("remove `client(..)`"), "{error}");
}

/// Two equal names from two places would collide, so each name has a namespace.
#[test]
fn a_dynamic_tool_has_a_namespace() {
    let without = |name| {
        DynamicTool::without_schema(name, "Says it again.", ToolEffect::ReadOnly, Arc::new(Echo))
            .approve_each()
            .redact(["who"])
    };
    for bare in [tool("get_current_time", who()), without("get_current_time")] {
        let error = catalog(bare).unwrap_err();
        assert_eq!(error.code(), "name");
        for fix in ["`.namespace(\"core\")`", "`core__get_current_time`"] {
            assert!(error.to_string().contains(fix), "{error}");
        }
    }
    for (name, says) in [("core__", "is empty"), ("__time", "start with"), ("1core__time", "start with")] {
        let error = catalog(tool(name, who())).unwrap_err();
        assert!(error.code() == "name" && error.to_string().contains(says), "{error}");
    }
    // Both fixes give one name. The part behind the namespace may hold a second `__`.
    for fixed in [tool("get_current_time", who()).namespace("core"), tool("core__get_current_time", who())] {
        assert!(catalog(fixed).unwrap().get("core__get_current_time").is_some());
    }
    assert!(catalog(tool("core__clock__now", who())).unwrap().get("core__clock__now").is_some());
}

#[test]
fn a_problem_of_a_client_tools_allowlist_names_the_schema_that_it_applies_to() {
    let result = schema(&json!({"picked": {"type": "string"}}));
    let built = |redact: &str, prepare: &str| {
        let tool = tool("t__a", who()).output_schema(who()).redact([redact]).client(result.clone(), [prepare]);
        catalog(tool).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(built("picked", "who"), Ok(()));
    let error = built("who", "picked").unwrap_err();
    assert!(error.contains("`redact`, which lists fields of the client's result: `who` names nothing"), "{error}");
    assert!(error.contains("`prepare`: `picked` names nothing"), "{error}");
}

#[test]
fn rules_about_arguments_that_do_not_exist_are_problems() {
    for (tool, says) in [
        (
            tool("t__a", who()).sensitive("woh"),
            "`sensitive` names the argument `woh`, which does not exist; did you mean `who`?",
        ),
        (tool("t__a", who()).evidence("whom", "t__a"), "`evidence` names the argument `whom`"),
        (tool("t__a", who()).require_any(["x"]), "`require_any` names the argument `x`"),
        (
            tool("t__a", who()).evidence("who", "t__b"),
            "the evidence of `who` comes from the tool `t__b`, which does not exist; did you mean `t__a`?",
        ),
        (
            tool("t__a", who()).redact(Vec::<String>::new()).evidence("who", "t__a"),
            "the evidence of `who` comes from the tool `t__a`, which shows nothing",
        ),
    ] {
        let error = catalog(tool).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    for (schema, can) in [
        (json!({"type": "boolean"}), false),
        (json!({"type": ["object", "null"]}), false),
        (json!({"type": "array", "items": {"type": "boolean"}}), false),
        (json!({"type": "array", "items": {"type": ["array", "null"], "items": {"type": "string"}}}), false),
        (json!({"anyOf": [{"$ref": "#/$defs/flag"}, {"type": "null"}]}), false),
        (json!({"$ref": "#/$defs/ids"}), true),
        (json!({"type": ["integer", "null"]}), true),
        (json!({"enum": ["a", "b"]}), true),
    ] {
        let (ids, flag) = (json!({"type": "array", "items": {"type": "string"}}), json!({"type": "boolean"}));
        let arguments = json!({"type": "object", "properties": {"who": schema}, "$defs": {"ids": ids, "flag": flag}});
        let built = catalog(tool("t__a", arguments).evidence("who", "t__a"));
        let error = built.map(drop).map_err(|error| error.to_string());
        assert_eq!(error.is_ok(), can, "{schema}: {error:?}");
        assert!(error.err().is_none_or(|error| error.contains("no result can be evidence for `who`")), "{schema}");
    }
    catalog(tool("t__a", who()).evidence("who", "mcp__later__list")).expect("a server may come later");
}

/// Refuses everything, and counts what it compiled.
#[derive(Clone, Default)]
struct Refuses(Arc<AtomicUsize>);

impl Validator for Refuses {
    fn name(&self) -> &'static str {
        "refuses"
    }

    fn version(&self) -> &'static str {
        "9"
    }

    fn compile(&self, _: &Schema) -> Result<Arc<dyn Compiled>, Problem> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(self.clone()))
    }
}

impl Compiled for Refuses {
    fn check(&self, _: &Tree<'_>) -> Result<(), Vec<Violation>> {
        Err(vec![Violation::new("", "refuses", "another validator")])
    }
}

/// Panics wherever it is asked.
struct Panics;

impl Validator for Panics {
    fn name(&self) -> &str {
        panic!("no name")
    }

    fn version(&self) -> &'static str {
        "1"
    }

    fn compile(&self, _: &Schema) -> Result<Arc<dyn Compiled>, Problem> {
        panic!("no schema")
    }
}

#[tokio::test]
async fn each_runner_has_its_own_validator() {
    let catalog = Arc::new(catalog(tool("t__a", who())).unwrap());
    let policy = ToolPolicy::allow(["t__a"]);
    let plain = ToolRunner::builder(Arc::clone(&catalog), policy.clone()).build().unwrap();
    plain.warm().unwrap();
    let own = Refuses::default();
    let strict = ToolRunner::builder(Arc::clone(&catalog), policy.clone()).validator(own.clone()).build().unwrap();
    let call = || ToolCall::text("c", "t__a", r#"{"who":"ada"}"#);
    assert_eq!(plain.run(RunOptions::new()).exec(call()).await.outcome(), Outcome::Ok);
    for _ in 0..2 {
        let result = strict.run(RunOptions::new()).exec(call()).await;
        assert_eq!(result.outcome(), Outcome::ValidationError);
    }
    assert_eq!(own.0.load(Ordering::Relaxed), 1, "compiled once");
    let used = |runner: &ToolRunner| {
        let hydrated = runner.run(RunOptions::new()).hydrate([call()]).remove(0);
        assert_eq!(hydrated.tool.as_ref().unwrap().as_str(), "t__a");
        assert_eq!(hydrated.definition_hash, catalog.get("t__a").map(|spec| spec.definition_hash));
        assert!(hydrated.validation_time().is_some());
        (hydrated.validator().unwrap(), hydrated.is_compiled_lazily())
    };
    assert_eq!(used(&strict), ("refuses 9".to_owned(), true));
    assert_eq!(used(&plain), (format!("jsonschema {}", JsonSchemaValidator.version()), false));
    let panics = ToolRunner::builder(catalog, policy).validator(Panics).build().unwrap();
    assert_eq!(panics.run(RunOptions::new()).exec(call()).await.outcome(), Outcome::InstantiateFailed);
}

#[tokio::test]
async fn a_repaired_call_shows_what_was_parsed() {
    let policy = "allowed_tools = ['t__a']\nrepair = { allowed = ['fenced_json'], require_approval = false }";
    let run = run_of(tool("t__a", who()), policy);
    let broken = "```json\n{\"who\": \"ada\"}\n```";
    let hydrated = run.hydrate([ToolCall::text("c", "t__a", broken)]).remove(0);
    assert_eq!(hydrated.parsed(), Some(json!({"who": "ada"})));
    assert_eq!(hydrated.call.arguments(), broken);
}

#[tokio::test]
async fn what_a_provider_sent_with_a_call_is_reached_from_its_hydration_only() {
    let store = Arc::new(MemoryStore::new());
    let policy = ToolPolicy::from_toml("allowed_tools = ['t__a']").unwrap();
    let runner = ToolRunner::builder(catalog(tool("t__a", who())).unwrap(), policy).store(Arc::clone(&store));
    let run = runner.build().unwrap().run(RunOptions::new());
    let item =
        r#"{"type":"function_call","id":"fc_1","call_id":"c1","name":"t__a","arguments":"{\"who\":\"a\"}","canary":1}"#;
    let signed = r#"{"functionCall":{"name":"t__a","args":{"who":"b"},"id":"c2"},"thoughtSignature":"canary"}"#;
    let block = r#"{"type":"tool_use","id":"c3","name":"t__a","input":{"who":"c"},"caller":{"type":"canary"}}"#;
    for (format, body, raw) in [
        (Format::OpenAiResponses, format!(r#"{{"id":"r","status":"completed","output":[{item}]}}"#), Some(item)),
        (
            Format::Gemini,
            format!(r#"{{"candidates":[{{"finishReason":"STOP","content":{{"parts":[{signed}]}}}}]}}"#),
            Some(r#"{"thoughtSignature":"canary"}"#),
        ),
        (
            Format::Anthropic,
            format!(r#"{{"type":"message","id":"m","model":"m","content":[{block}],"stop_reason":"tool_use"}}"#),
            Some(r#"{"caller":{"type":"canary"}}"#),
        ),
        (
            Format::OpenAiChat,
            r#"{"choices":[{"finish_reason":"tool_calls","message":{"tool_calls":[{"id":"c4","type":"function",
                "function":{"name":"t__a","arguments":"{\"who\":\"d\"}"}}]}}]}"#
                .to_owned(),
            None,
        ),
    ] {
        let mut decoder = format.decoder();
        decoder.push(body.as_bytes());
        let call = decoder.finish().calls.remove(0).call;
        assert!(call.is_complete(), "{format}");
        let result = run.hydrate([call.clone()]).remove(0);
        assert_eq!(result.raw.as_deref(), raw, "{format}");
        let hydrated = result.hydrated.as_ref().unwrap();
        for shown in [format!("{call:?}"), format!("{result:?}"), format!("{hydrated:?}")] {
            assert!(!shown.contains("canary"), "{format}: {shown}");
        }
        // A document of the call does not contain the raw text, so a restored call has none.
        let document = serde_json::to_string(&call).unwrap();
        assert!(!document.contains("canary"), "{format}: {document}");
        let restored: ToolCall = serde_json::from_str(&document).unwrap();
        assert_eq!(run.hydrate([restored]).remove(0).raw, None);
        let done = run.exec_hydrated(result.hydrated.unwrap()).await;
        assert_eq!(done.outcome(), Outcome::Ok, "{format}");
    }
    let records = store.calls(&RecordFilter::default()).await.unwrap();
    assert!(records.len() == 4 && !serde_json::to_string(&records).unwrap().contains("canary"));
    // Calls that are refused have it, too.
    let mut decoder = Format::OpenAiResponses.decoder();
    decoder
        .push(format!(r#"{{"id":"r","status":"completed","output":[{}]}}"#, item.replace("t__a", "t__b")).as_bytes());
    let refused = run.hydrate([decoder.finish().calls.remove(0).call]).remove(0);
    assert!(refused.hydrated.is_err() && refused.raw.is_some());
}

#[tokio::test]
async fn a_pointer_ends_at_a_sensitive_argument() {
    let input = schema(&json!({"headers": {"type": "object", "additionalProperties": {"type": "integer"}}}));
    let run = run_of(tool("t__a", input).sensitive("headers"), "allowed_tools = ['t__a']");
    let result = run.exec(ToolCall::text("c", "t__a", r#"{"headers":{"SECRET-KEY":"x"}}"#)).await;
    assert_eq!(result.outcome(), Outcome::ValidationError);
    assert!(
        !result.to_model().contains("SECRET-KEY") && result.to_model().contains("/headers"),
        "{}",
        result.to_model()
    );
}

#[tokio::test]
async fn a_deep_value_is_invalid_and_ends_no_process() {
    for levels in [100, 200, 1_500] {
        let deep = DynamicTool::new("t__a", "Deep.", who(), ToolEffect::ReadOnly, Arc::new(Deep(levels)))
            .output_schema(json!({"type": "array", "items": {"type": "array"}}))
            .redact(Vec::<String>::new());
        let result = run_of(deep, "allowed_tools = ['t__a']").exec(ToolCall::text("c", "t__a", "{}")).await;
        let expected = if levels == 100 { Outcome::Ok } else { Outcome::OutputInvalid };
        assert_eq!(result.outcome(), expected, "{levels}");
    }
}

#[tokio::test]
async fn the_loop_guard_compares_calls_with_their_defaults() {
    let input = schema(&json!({
        "who": {"type": ["string", "null"]}, "zone": {"type": "string", "default": "UTC"},
    }));
    let run = run_of(tool("t__a", input), "allowed_tools = ['t__a']");
    let mut outcomes = Vec::new();
    for (at, text) in ["{}", r#"{"who":null}"#, r#"{"zone":"UTC"}"#, r#"{"zone":"CET"}"#].iter().enumerate() {
        outcomes.push(run.exec(ToolCall::text(&*format!("c{at}"), "t__a", *text)).await.outcome());
    }
    assert_eq!(outcomes, [Outcome::Ok, Outcome::Ok, Outcome::BudgetExceeded, Outcome::Ok]);
}

#[tokio::test]
async fn ids_are_checked_in_dynamic_tools_too() {
    let input = schema(&json!({
        "parent_id": {"type": "string"}, "label_ids": {"type": "array", "items": {"type": "string"}},
        "target": {"type": "object", "properties": {"projectId": {"type": "string"}}},
    }));
    let run = run_of(tool("t__a", input), "allowed_tools = ['t__a']");
    for (at, (text, pointer)) in [
        (r#"{"parent_id":": "}"#, "/parent_id"),
        (r#"{"label_ids":["x",": "]}"#, "/label_ids/1"),
        (r#"{"target":{"projectId":"null"}}"#, "/target/projectId"),
    ]
    .iter()
    .enumerate()
    {
        let result = run.exec(ToolCall::text(&*format!("c{at}"), "t__a", *text)).await;
        assert_eq!(result.outcome(), Outcome::ValidationError, "{text}");
        assert!(result.to_model().contains(pointer), "{}", result.to_model());
    }
}

#[test]
fn hydrating_conceals_which_tools_are_denied() {
    let run = run_of(tool("t__a", who()), "");
    let said = |name: &str| run.hydrate([ToolCall::text("c", name, "{}")]).remove(0).hydrated.unwrap_err().to_string();
    assert_eq!(said("t__a"), said("t__unknown"));
}

#[test]
fn guidance_names_only_tools_that_the_model_can_call() {
    let builder = || {
        let list = tool("t__list", schema(&json!({})));
        ToolCatalog::builder().dynamic(list).dynamic(tool("t__a", who()).evidence("who", "t__list")).build().unwrap()
    };
    let guidance = |tools: &[&str]| {
        let runner = ToolRunner::builder(builder(), ToolPolicy::allow(tools.iter().copied())).build().unwrap();
        runner.run(RunOptions::new()).catalog().guidance()
    };
    assert!(guidance(&["t__a", "t__list"]).contains("call `t__list` first"));
    assert!(!guidance(&["t__a"]).contains("t__list"));
}

/// Keeps what is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl tracing::Subscriber for Log {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        struct Fields<'l>(&'l mut String);

        impl tracing::field::Visit for Fields<'_> {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                let _ = std::fmt::Write::write_fmt(self.0, format_args!("{field}={value:?} "));
            }
        }

        let mut log = self.0.lock().unwrap();
        event.record(&mut Fields(&mut log));
        log.push('\n');
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[test]
fn a_tool_that_is_not_pinned_is_logged_with_its_hash() {
    let log = Log::default();
    let hash = tracing::subscriber::with_default(log.clone(), || {
        let discovered = DynamicTool::discovered("srv", "echo", "Says it again.", who(), Arc::new(Echo));
        let catalog = Arc::new(catalog(discovered).unwrap());
        let hash = catalog.get("mcp__srv__echo").unwrap().pin.unwrap().to_string();
        let pin = format!("[tools.mcp__srv__echo]\nredact = ['who']\npin = '{hash}'");
        for rule in ["", &pin] {
            let policy = ToolPolicy::from_toml(&format!("allowed_tools = ['mcp__srv__echo']\n{rule}")).unwrap();
            ToolRunner::builder(Arc::clone(&catalog), policy).build().unwrap();
        }
        hash
    });
    let log = log.0.lock().unwrap();
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 1, "{log}");
    assert!(
        lines[0].contains("mcp__srv__echo") && lines[0].contains("code=\"not_pinned\"") && lines[0].contains(&hash),
        "{log}"
    );
}
