//! Files and outputs are kept back by the policy's narrower allowlist, and in the output of `Debug`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tests::spans::Traced;
use tests::world::EventLog;
use tool_runtime::agent::{Agent, Input};
use tool_runtime::media::Media;
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::{MemoryStore, RecordFilter, Store};
use tool_runtime::testing::{ScriptedModel, ScriptedTurn};
use tool_runtime::wire::Format;
use tool_runtime::wire::ui::{Protocol, UiEncoder, UiEvent};
use tool_runtime::{
    Event, Outcome, RunOptions, ToolCall, ToolCatalog, ToolError, ToolPolicy, ToolRunner, WithMedia, tool,
};

use crate::tool_media::{keep, rig, rig_with};

#[tokio::test(start_paused = true)]
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

#[tokio::test(start_paused = true)]
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

#[tokio::test(start_paused = true)]
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

    let store = Arc::new(MemoryStore::new());
    let runner = |rule: &str| {
        let catalog = ToolCatalog::builder().tool::<read>().build().unwrap();
        let policy = format!("allowed_tools = ['pages__read']\n[tools.pages__read]\n{rule}");
        let runner = ToolRunner::builder(catalog, ToolPolicy::from_toml(&policy).unwrap());
        runner.store(Arc::clone(&store)).build().unwrap()
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

#[tokio::test(start_paused = true)]
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
        json!({"type": "tool_call_suspended", "id": "c", "question": tests::never("c"), "name": "a__b", "outcome": "client_required",
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

const HIDDEN: &str = "CANARYHIDDEN";
const FOR_MODEL: &str = "CANARYMODEL";

fn note(text: &str) -> Result<Media, ToolError> {
    Ok(Media::bytes("text/plain", text.as_bytes())?.with_name(&format!("{text}.txt")))
}

/// Keeps a note to itself.
#[tool(name = "memos__keep", effect = state_change, redact = ["$"])]
fn keep_note() -> Result<WithMedia<u8>, ToolError> {
    Ok(WithMedia::new(1).media(note(HIDDEN)?))
}

/// Keeps a note to itself, slowly.
#[tool(name = "memos__brood", effect = state_change, redact = ["$"])]
async fn brood() -> Result<WithMedia<u8>, ToolError> {
    tokio::time::sleep(Duration::from_millis(100)).await;
    Ok(WithMedia::new(2).media(note(HIDDEN)?))
}

/// Shows a note to the model.
#[tool(name = "memos__look", effect = read_only, redact = ["$"], model = ["$media"])]
fn look_at_note() -> Result<WithMedia<u8>, ToolError> {
    Ok(WithMedia::new(3).media(note(FOR_MODEL)?))
}

/// Whether a text holds a note, as text or in Base64.
fn holds(text: &str, canary: &str) -> bool {
    let media = note(canary).unwrap();
    text.contains(canary) || text.contains(media.data().unwrap().trim_end_matches('='))
}

#[test]
fn a_hidden_file_is_nowhere_and_one_for_the_model_in_its_requests_only() {
    let traced = Traced::default();
    let shown = tracing::subscriber::with_default(traced.subscriber(), || {
        // Steps without the slow call end before the clock moves, on every machine.
        let paused = || tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let protocols = [Protocol::DataStream, Protocol::AssistantTransport, Protocol::UiMessageStream, Protocol::AgUi];
        protocols.map(|protocol| paused().block_on(talk(protocol)))
    });
    assert!(traced.text().contains("memos__keep"), "it was traced");
    for (everyone, model) in shown {
        let everyone = format!("{everyone}{}", traced.text());
        assert!(everyone.contains("memos__brood"));
        assert!(!holds(&everyone, HIDDEN) && !holds(&everyone, FOR_MODEL), "{everyone}");
        assert!(!holds(&model, HIDDEN) && holds(&model, FOR_MODEL), "{model}");
    }
}

/// The texts that everyone sees, and those that the model gets, of a conversation with approvals, a value in the tool's
/// place, a dropped turn and a restore.
async fn talk(protocol: Protocol) -> (String, String) {
    let catalog = ToolCatalog::builder().tool::<keep_note>().tool::<brood>().tool::<look_at_note>().build().unwrap();
    let policy = "allowed_tools = ['memos__keep', 'memos__brood', 'memos__look']\n\
        require_approval_for_tools = ['memos__keep']";
    let store = Arc::new(MemoryStore::new());
    let runner = ToolRunner::builder(catalog, ToolPolicy::from_toml(policy).unwrap()).approvals(true);
    let runner = runner.store(Arc::clone(&store)).build().unwrap();
    let agent = Agent::new(ScriptedModel::new([
        ScriptedTurn::call("a", "memos__keep", "{}").and_call("b", "memos__look", "{}"),
        ScriptedTurn::call("c", "memos__keep", "{}"),
        ScriptedTurn::call("d", "memos__brood", "{}"),
        ScriptedTurn::text("Done."),
    ]));
    let (heard, mut everyone) = (EventLog::default(), Vec::new());
    let options = || RunOptions::new().events(heard.sink());
    let mut conversation = agent.converse(runner.run(options()));
    let decide = |id: &str, decision| Input::new().decide(&tests::never(id), decision, &tests::grace());
    let steps = [
        Input::new().text("Go."),
        decide("a", ApprovalDecision::Approve),
        decide("c", ApprovalDecision::Respond("7".to_owned())),
        Input::new().text("And now?"),
    ];
    for input in steps {
        let input = tests::answering(&conversation, &input);
        let mut stream = conversation.ui_stream_resuming(protocol, "m");
        let turn = tokio::time::timeout(Duration::from_millis(20), Box::pin(conversation.receive(input))).await;
        everyone.push(format!("{turn:?}"));
        while let Some(bytes) = stream.chunk().await {
            everyone.push(String::from_utf8(bytes.to_vec()).unwrap());
        }
        // The call that the dropped turn began ends by itself.
        tokio::time::sleep(Duration::from_millis(150)).await;
        let saved = conversation.save().await.unwrap();
        everyone.push(format!("{saved:?} {conversation:?}"));
        conversation = agent.restore(&runner, options(), saved).await.unwrap();
    }
    for event in heard.take() {
        everyone.push(format!("{event:?} {}", serde_json::to_string(&event).unwrap()));
    }
    for record in store.calls(&RecordFilter::default()).await.unwrap() {
        everyone.push(format!("{record:?} {}", serde_json::to_string(&record).unwrap()));
        let recorded = conversation.run().recorded(&record.tool_call_id).await.unwrap().unwrap();
        everyone.push(format!("{recorded:?} {}", recorded.to_model()));
    }
    let history = conversation.history();
    everyone.push(format!("{history:?}"));
    let mut model = serde_json::to_string(&conversation.save().await.unwrap()).unwrap();
    for &format in Format::ALL {
        let encoded = format.encode_messages(&history, None);
        everyone.push(format!("{encoded:?} {:?}", encoded.losses));
        let body = serde_json::to_string(&encoded.body).unwrap();
        assert!(holds(&body, FOR_MODEL), "{format}: {body}");
        model.push_str(&body);
    }
    (everyone.join("\n"), model)
}
