//! What keeps files and outputs back: the policy's narrower allowlist, and `Debug`.

use serde_json::json;
use tool_runtime::store::MemoryStore;
use tool_runtime::wire::ui::{Protocol, UiEncoder, UiEvent};
use tool_runtime::{Event, Outcome, RunOptions, ToolCall, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};

use crate::{keep, rig, rig_with};

#[tokio::test]
async fn a_policy_narrows_the_files_of_a_typed_tool() {
    for (name, rule, to_model, to_ui) in [
        ("pages__show", "redact = ['number', '$media']", 1, 1),
        ("pages__show", "redact = ['number']\nmodel = ['$media']", 1, 0),
        ("pages__show", "redact = ['number']", 0, 0),
        ("pages__look", "redact = ['number']", 0, 0),
        ("pages__scan", "redact = ['n']", 0, 0),
    ] {
        let rig = rig_with(&["n", "$media"], &format!("[tools.{name}]\n{rule}"));
        let result = rig.exec(name, "{}").await;
        assert!(result.is_ok(), "{name} {rule}: {result:?}");
        assert_eq!((result.media().len(), rig.files()), (to_model, to_ui), "{name} {rule}");
        assert_eq!(rig.record().await.contains("image/png"), to_model == 1, "{name} {rule}");
    }
    for (rule, problem) in [
        ("redact = ['number', '$media']", "`$media` is not on the tool's own allowlist, which a policy only narrows"),
        ("redact = ['secret']", "`secret` is not on the tool's own allowlist"),
        ("model = ['number']", "`model` adds to `redact`; write `redact` too"),
    ] {
        let catalog = ToolCatalog::builder().tool::<keep>().build().unwrap();
        let policy = format!("allowed_tools = ['pages__keep']\n[tools.pages__keep]\n{rule}");
        let policy = ToolPolicy::from_toml(&policy).unwrap();
        let error = ToolRunner::builder(catalog, policy).build().unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}

#[tokio::test]
async fn a_policy_narrows_what_a_client_returns() {
    /// What the browser says.
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    struct Said {
        line: u32,
        secret: String,
    }

    /// Opens a page in the browser.
    #[tool(
        name = "pages__open",
        effect = read_only,
        execution = client,
        client_result = Said,
        prepare = ["$"],
        redact = ["line", "secret"]
    )]
    fn open() -> Result<u32, ToolError> {
        Ok(214)
    }

    let run = |rule: &str| {
        let catalog = ToolCatalog::builder().tool::<open>().build().unwrap();
        let policy = format!("allowed_tools = ['pages__open']\n[tools.pages__open]\n{rule}");
        let runner = ToolRunner::builder(catalog, ToolPolicy::from_toml(&policy).unwrap());
        runner.build().unwrap().run(RunOptions::new())
    };
    for (rule, shown) in
        [("", r#"{"line":7,"secret":"CANARY"}"#), ("redact = ['line']", r#"{"line":7}"#), ("redact = []", "{}")]
    {
        let run = run(rule);
        let asked = run.exec(ToolCall::text("c", "pages__open", "{}")).await;
        assert_eq!((asked.outcome(), asked.value().unwrap().get()), (Outcome::ClientRequired, "214"), "{rule}");
        let result = run.client_result("c", r#"{"line":7,"secret":"CANARY"}"#).await.unwrap();
        assert_eq!(result.value().unwrap().get(), shown, "{rule}");
    }
}

#[tokio::test]
async fn a_restored_run_shows_no_more_of_a_client_than_it_did() {
    /// What the browser says.
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    struct Said {
        line: u32,
        secret: String,
    }

    /// Reads a page in the browser.
    #[tool(
        name = "pages__read",
        effect = read_only,
        execution = client,
        client_result = Said,
        prepare = ["$"],
        redact = ["line", "secret"]
    )]
    fn read() -> Result<u32, ToolError> {
        Ok(214)
    }

    let store = std::sync::Arc::new(MemoryStore::new());
    let runner = |rule: &str| {
        let catalog = ToolCatalog::builder().tool::<read>().build().unwrap();
        let policy = format!("allowed_tools = ['pages__read']\n[tools.pages__read]\n{rule}");
        let runner = ToolRunner::builder(catalog, ToolPolicy::from_toml(&policy).unwrap());
        runner.store(std::sync::Arc::clone(&store)).build().unwrap()
    };
    let run = runner("redact = ['line']").run(RunOptions::new());
    run.exec(ToolCall::text("c", "pages__read", "{}")).await;
    let wider = runner("").restore(run.snapshot().await.unwrap(), RunOptions::new()).await.unwrap();
    let result = wider.client_result("c", r#"{"line":7,"secret":"CANARY"}"#).await.unwrap();
    assert!(!result.to_model().contains("CANARY"), "{}", result.to_model());
    assert_eq!(result.outcome(), Outcome::ApprovalMismatch);
    let result = run.client_result("c", r#"{"line":7,"secret":"CANARY"}"#).await.unwrap();
    assert_eq!(result.to_model(), r#"{"line":7}"#, "it still waits");
}

#[tokio::test]
async fn what_an_event_shows_is_in_no_debug_output() {
    let rig = rig(&[]);
    rig.exec("pages__show", "{}").await;
    let mut events = rig.heard.take();
    assert!(events.iter().any(|event| matches!(event, Event::File { url, .. } if url.contains("iVBOR"))));
    for document in [
        json!({"type": "text_delta", "text": "CANARY"}),
        json!({"type": "reasoning_delta", "text": "CANARY"}),
        json!({"type": "source", "id": "s", "url": "https://example.com/CANARY", "title": "CANARY"}),
        json!({"type": "data", "name": "d", "value": "CANARY"}),
        json!({"type": "tool_call_delta", "id": "c", "name": "a__b", "delta": "CANARY"}),
        json!({"type": "tool_call_suspended", "id": "c", "name": "a__b", "outcome": "client_required",
            "arguments": {"a": "CANARY"}, "prepared": "CANARY"}),
        json!({"type": "tool_call_result", "id": "c", "name": "a__b", "outcome": "ok", "executed": true,
            "arguments": {"a": "CANARY"}, "value": "CANARY"}),
    ] {
        events.push(serde_json::from_value(document).unwrap());
    }
    let mut encoder = UiEncoder::new(Protocol::DataStream);
    for event in &events {
        let shown = format!("{event:?}");
        assert!(!shown.contains("CANARY") && !shown.contains("iVBOR"), "{shown}");
        let _ = encoder.push_event(event);
        let shown = format!("{encoder:?}");
        assert!(!shown.contains("CANARY") && !shown.contains("iVBOR"), "{shown}");
    }
    let shown = json!({"type": "file", "media_type": "image/png", "url": "data:image/png;base64,iVBOR"});
    let shown = format!("{:?}", serde_json::from_value::<UiEvent>(shown).unwrap());
    assert!(!shown.contains("iVBOR"), "{shown}");
}
