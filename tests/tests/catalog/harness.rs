//! `testing::harness` records calls of capabilities.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use tool_runtime::agent::{Agent, Graph};
use tool_runtime::call::Decider;
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::Clock as _;
use tool_runtime::testing::{Fault, Harness, ScriptedModel, ScriptedTurn, harness};
use tool_runtime::{Connection, RunOptions, ToolCatalog, ToolError, ToolPolicy, capability, tool};

/// It has no `Debug`.
struct Part(String);

/// Reads the stock.
#[capability(effect = read_only)]
#[async_trait]
trait Stock {
    /// The parts with this text.
    async fn find(&self, text: &str) -> Vec<Part>;

    /// How many there are.
    fn count(&self, part: &Part) -> u32 {
        u32::try_from(part.0.len()).unwrap_or_default()
    }

    /// No trait object has it.
    fn into_name(self) -> String
    where
        Self: Sized,
    {
        String::new()
    }
}

/// Reads the stock of another house. Its methods are not all here.
#[capability(effect = read_only)]
trait Branch: Stock {
    /// Its name.
    fn name(&self) -> &str;
}

/// Takes money.
#[capability(effect = external_side_effect, kind = "till")]
trait Till {
    /// Takes an amount.
    fn take(&self, cents: u32, _: Option<&str>) -> Result<(), String>;
}

struct House;

#[async_trait]
impl Stock for House {
    async fn find(&self, text: &str) -> Vec<Part> {
        vec![Part(text.to_owned())]
    }
}

impl Branch for House {
    fn name(&self) -> &'static str {
        "north"
    }
}

impl Till for House {
    fn take(&self, _: u32, _: Option<&str>) -> Result<(), String> {
        Ok(())
    }
}

/// Counts parts.
#[tool(name = "stock__count", effect = read_only, redact = ["$"])]
async fn count(
    stock: &dyn Stock,
    branch: &dyn Branch,
    /// A part of the name.
    #[schemars(length(min = 1))]
    text: String,
) -> Result<u32, ToolError> {
    let parts = stock.find(&text).await;
    assert_eq!(branch.name(), "north");
    Ok(parts.iter().map(|part| stock.count(part)).sum())
}

/// Sells a part.
#[tool(name = "stock__sell", effect = external_side_effect, redact = ["$"], blocking)]
fn sell(
    till: &Connection<dyn Till>,
    /// How much.
    cents: u32,
) -> Result<bool, ToolError> {
    till.take(cents, Some("a part")).map_err(ToolError::internal)?;
    Ok(true)
}

/// Counts one part.
#[tool(name = "stock__one", effect = read_only, redact = ["$"], timeout = "30s")]
struct One {
    /// Its name.
    name: String,
}

#[tool]
impl One {
    async fn run(self, stock: &dyn Stock) -> Result<u32, ToolError> {
        Ok(stock.count(&Part(self.name)))
    }
}

fn house() -> Harness {
    let catalog = ToolCatalog::builder().tool::<count>().tool::<sell>().tool::<One>().build().expect("a catalog");
    harness(catalog)
        .with::<dyn Stock>(Arc::new(House))
        .with::<dyn Branch>(Arc::new(House))
        .connection::<dyn Till>(Arc::new(House))
}

#[tokio::test]
async fn methods_are_recorded_in_order() {
    assert_eq!(House.into_name(), "");
    let house = house();
    let counted = house.call("stock__count", json!({ "text": "hinge" })).await;
    counted.assert_value(json!(5)).assert_capability_calls(["Branch", "Stock::find", "Stock::count"]);
    house.call("stock__sell", json!({ "cents": 5 })).await.assert_capability_calls(["Till::take"]);
    house
        .call("stock__one", json!({ "name": "nut" }))
        .await
        .assert_value(json!(3))
        .assert_capability_calls(["Stock::count"]);
    house.call("stock__count", json!({ "text": "" })).await.assert_violation("/text").assert_capability_calls([]);
    let all: Vec<_> = house.capability_calls().iter().map(|(id, call)| format!("{} {call}", id.as_str())).collect();
    assert_eq!(
        all,
        ["call_1 Branch", "call_1 Stock::find", "call_1 Stock::count", "call_2 Till::take", "call_3 Stock::count"]
    );
}

#[tokio::test]
async fn arguments_are_recorded_if_a_test_wants_them() {
    let house = house().record_arguments();
    let counted = house.call("stock__count", json!({ "text": "hinge" })).await;
    counted.assert_capability_calls(["Branch", r#"Stock::find("hinge")"#, "Stock::count(_)"]);
    let sold = house.call("stock__sell", json!({ "cents": 5 })).await;
    sold.assert_capability_calls([r#"Till::take(5, Some("a part"))"#]);
    assert!(sold.to_string().contains("\ncapability: Till::take(5, Some(\"a part\"))\n"), "{sold}");
}

#[tokio::test]
async fn calls_at_the_same_time_are_apart() {
    let house = house().record_arguments();
    let (one, other) = tokio::join!(
        house.call("stock__one", json!({ "name": "nut" })),
        house.call("stock__count", json!({ "text": "bolt" })),
    );
    one.assert_capability_calls(["Stock::count(_)"]);
    other.assert_capability_calls(["Branch", r#"Stock::find("bolt")"#, "Stock::count(_)"]);
}

#[tokio::test]
async fn a_call_that_waits_or_fails_has_what_it_did() {
    let policy = "allowed_tools = ['stock__sell']\nrequire_approval_for_tools = ['stock__sell']";
    let house =
        house().policy(ToolPolicy::from_toml(policy).expect("a policy")).options(RunOptions::new().principal("ada"));
    let waits = house.call("stock__sell", json!({ "cents": 5 })).await;
    waits.assert_outcome("approval_required").assert_capability_calls([]);
    let sold = house.decide(&waits, ApprovalDecision::Approve, &Decider::new("grace")).await;
    sold.assert_value(json!(true)).assert_capability_calls(["Till::take"]);

    house.break_tool("stock__sell", Fault::Panic);
    let waits = house.call("stock__sell", json!({ "cents": 6 })).await;
    let failed = house.decide(&waits, ApprovalDecision::Approve, &Decider::new("grace")).await;
    failed.assert_capability_calls([]);
}

/// A fault that comes after the tool ran leaves the uses of its capabilities.
#[tokio::test(start_paused = true)]
async fn each_fault_has_the_outcome_of_a_real_one() {
    let nut = json!({ "name": "nut" });
    for (fault, outcome, ran) in [
        (Fault::Panic, "panicked", false),
        (Fault::Hang, "timeout", false),
        (Fault::Slow(Duration::from_secs(2)), "ok", true),
        (Fault::Slow(Duration::from_hours(24)), "timeout", false),
        (Fault::Oversize, "result_too_large", true),
        (Fault::InvalidOutput, "output_invalid", true),
        (Fault::Error("no route to 10.0.0.7".to_owned()), "execution_error", false),
    ] {
        let house = house().fault("stock__one", fault.clone());
        let began = tokio::time::Instant::now();
        let broken = house.call("stock__one", nut.clone()).await;
        broken.assert_outcome(outcome);
        assert!(broken.executed(), "{fault:?}: {broken}");
        assert!(!broken.to_model().contains("10.0.0.7"), "{broken}");
        assert_eq!(broken.capability_calls(), if ran { &["Stock::count"][..] } else { &[] }, "{fault:?}: {broken}");
        if let Fault::Slow(time) = fault {
            assert_eq!(began.elapsed() >= time, outcome == "ok", "{:?}", began.elapsed());
        }
        house.heal("stock__one");
        house.call("stock__one", nut.clone()).await.assert_value(json!(3));
    }
}

/// A tool with an effect took effect before its output was found to be wrong.
#[tokio::test]
async fn a_wrong_output_comes_after_the_effect() {
    let house = house().fault("stock__sell", Fault::Oversize);
    let sold = house.call("stock__sell", json!({ "cents": 5 })).await;
    sold.assert_outcome("result_too_large").assert_capability_calls(["Till::take"]);
    house.break_tool("stock__sell", Fault::InvalidOutput);
    let sold = house.call("stock__sell", json!({ "cents": 5 })).await;
    sold.assert_outcome("output_invalid").assert_capability_calls(["Till::take"]);
}

#[tokio::test]
async fn an_approval_expires_when_the_clock_of_the_harness_advances() {
    let policy = "allowed_tools = ['stock__sell']\nrequire_approval_for_tools = ['stock__sell']";
    let policy = ToolPolicy::from_toml(policy).expect("a policy");
    let house = house().policy(policy).options(RunOptions::new().principal("ada"));
    let grace = Decider::new("grace");
    for (hours, outcome, effects) in [(23, "ok", &["Till::take"][..]), (25, "approval_expired", &[])] {
        let before = house.clock().now();
        let waits = house.call("stock__sell", json!({ "cents": 5 })).await;
        assert_eq!(waits.record().map(|record| record.started_at), Some(before), "{waits}");
        house.clock().advance(Duration::from_secs(hours * 3600));
        let decided = house.decide(&waits, ApprovalDecision::Approve, &grace).await;
        decided.assert_outcome(outcome);
        assert_eq!(decided.capability_calls(), effects, "{decided}");
    }
}

/// Reads a poem.
#[tool(name = "stock__poem", effect = read_only, redact = ["$"])]
fn poem() -> Result<Vec<String>, ToolError> {
    Ok(vec!["It rains, and it rains.".to_owned(); 9])
}

#[tokio::test]
async fn a_small_limit_of_the_policy_cuts_a_result() {
    let policy = "allowed_tools = ['stock__poem']\n[budgets.default]\nmax_result_bytes = 100";
    let poems = harness(ToolCatalog::builder().tool::<poem>().build().expect("a catalog"))
        .policy(ToolPolicy::from_toml(policy).expect("a policy"));
    let read = poems.call("stock__poem", json!({})).await;
    read.assert_outcome("ok");
    assert!(!read.left_out().is_none() && read.to_model().len() <= 100, "{read}");
}

#[tokio::test]
#[should_panic(expected = "; the decider has no tenant, the run the tenant `acme`")]
async fn a_decider_of_another_tenant_is_named() {
    let policy = "allowed_tools = ['stock__sell']\nrequire_approval_for_tools = ['stock__sell']";
    let house = house().policy(ToolPolicy::from_toml(policy).expect("a policy"));
    let house = house.options(RunOptions::new().principal("ada").tenant("acme"));
    let waits = house.call("stock__sell", json!({ "cents": 5 })).await;
    house.decide(&waits, ApprovalDecision::Approve, &Decider::new("grace")).await;
}

#[tokio::test]
#[should_panic(expected = "capability: Stock::count")]
async fn a_failed_assertion_prints_them() {
    house().call("stock__one", json!({ "name": "nut" })).await.assert_capability_calls(["Stock::find"]);
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Sheet {
    name: String,
    owner: String,
}

/// Reads a sheet.
#[tool(name = "stock__sheet", effect = read_only, redact = ["name"], model = ["owner"])]
fn sheet() -> Result<Sheet, ToolError> {
    Ok(Sheet { name: "nut".to_owned(), owner: "ada".to_owned() })
}

/// The value lacks the fields that only the model sees. A failed assertion shows both.
#[tokio::test]
async fn a_failed_assertion_prints_what_all_readers_see() {
    let sheets = harness(ToolCatalog::builder().tool::<sheet>().build().expect("a catalog"));
    let read = sheets.call("stock__sheet", json!({})).await;
    read.assert_value(json!({ "name": "nut" }));
    let printed = read.to_string();
    let both =
        "the model reads: {\"name\":\"nut\",\"owner\":\"ada\"}\nthe value, which all readers see: {\"name\":\"nut\"}\n";
    assert!(printed.contains(both), "{printed}");
}

#[derive(serde::Deserialize)]
struct Note {
    text: String,
    #[serde(default)]
    pages: u32,
}

/// Reads a note.
#[tool(name = "stock__note", effect = read_only, redact = ["$"], allow_no_schema, no_schema_mode = reject_effects)]
fn note(
    /// The note.
    note: Note,
) -> Result<String, ToolError> {
    Ok(format!("{} {}", note.text, note.pages))
}

/// Without a schema the type is the only check, so the model reads what the type refuses.
#[tokio::test]
async fn arguments_without_a_schema_are_refused_at_their_place() {
    let notes = harness(ToolCatalog::builder().tool::<note>().build().expect("a catalog"));
    notes.call("stock__note", json!({ "note": { "text": "a" } })).await.assert_value(json!("a 0"));
    let refused = notes.call("stock__note", json!({ "note": { "pages": 1 } })).await;
    refused.assert_outcome("validation_error").assert_violation("/note");
    let expected = r#"{"pointer":"/note","keyword":"required","expected":"the property `text`"}"#;
    assert!(refused.to_model().contains(expected), "{refused}");
    let refused = notes.call("stock__note", json!({ "note": { "text": "a", "pages": "SECRET" } })).await;
    refused.assert_outcome("validation_error").assert_violation("/note/pages");
    assert!(!refused.to_model().contains("SECRET"), "{refused}");
    notes.call("stock__note", json!({ "text": "a" })).await.assert_outcome("validation_error");
}

#[tokio::test]
async fn the_default_policy_allows_graphs_and_their_tools() {
    let report = r#"{"summary":"It rains.","findings":[]}"#;
    let turns = [ScriptedTurn::call("c1", "stock__poem", "{}"), ScriptedTurn::text(report)];
    let graph = Graph::new("critic", "1", Agent::new(ScriptedModel::new(turns)));
    let graph = graph.description("Reads a poem.").tools(["stock__poem"]);
    let poems = harness(ToolCatalog::builder().tool::<poem>().dynamic(graph).build().expect("a catalog"));
    let read = poems.call("graph__critic", json!({ "task": "What is it about?" })).await;
    assert!(read.assert_outcome("ok").to_model().contains("It rains."), "{read}");
}
