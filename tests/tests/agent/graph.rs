//! Graphs: a sub-agent is a tool of its parent, goes through the same gate and never has more rights.

mod approved;
mod carved;
mod crashed;
mod declared;
mod ended;
mod notes;
mod side;
mod twice;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use notes::{Happened, Seats, Table, World};
use tokio::sync::Barrier;
use tool_runtime::agent::{Agent, Conversation, DisplayFn, Graph, ModelClient, ModelError, ModelRequest, TurnOutcome};
use tool_runtime::call::Caller;
use tool_runtime::store::{DocumentKind, MemoryStore, PendingCall, Query, RecordFilter, Store};
use tool_runtime::testing::{ScriptedModel, ScriptedTurn};
use tool_runtime::wire::history::Content;
use tool_runtime::wire::{Decoded, Message};
use tool_runtime::{
    Capabilities, Event, Outcome, Run, RunOptions, ToolCall, ToolCatalog, ToolError, ToolExecResult,
    ToolInvocationRecord, ToolPolicy, ToolRunner,
};

const TOOLS: [&str; 6] = ["notes__list", "notes__page", "notes__delete", "notes__count", "notes__hang", "notes__panic"];

const POLICY: &str = r#"
    allowed_tools = ["notes__list", "notes__page", "notes__delete", "notes__count", "notes__hang", "notes__meet",
        "notes__panic"]
    allowed_graphs = ["researcher"]
"#;

/// The tools that only read.
const READS: [&str; 4] = ["notes__list", "notes__page", "notes__hang", "notes__meet"];

const REPORT: &str = r#"{"summary":"Done.","findings":["one","two"]}"#;

/// The store, the world and the sinks that a test inspects.
struct Rig {
    store: Arc<MemoryStore>,
    world: Arc<Happened>,
    heard: Arc<Mutex<Vec<Event>>>,
}

impl Rig {
    fn new() -> Self {
        Self { store: Arc::default(), world: Arc::default(), heard: Arc::default() }
    }

    fn runner(&self, rules: &str, graph: Graph) -> ToolRunner {
        let catalog = ToolCatalog::builder()
            .namespaces(["notes"])
            .dynamic(graph)
            .build()
            .unwrap_or_else(|error| panic!("{error}"));
        let policy = ToolPolicy::from_toml(&format!("{POLICY}\n{rules}")).unwrap_or_else(|error| panic!("{error}"));
        ToolRunner::builder(catalog, policy)
            .capabilities(self.capabilities())
            .approvals(true)
            .store(Arc::clone(&self.store))
            .build()
            .unwrap_or_else(|error| panic!("{error}"))
    }

    fn capabilities(&self) -> Capabilities {
        let table = Arc::new(Seats(Barrier::new(2))) as Arc<dyn Table>;
        Capabilities::new().with(Arc::clone(&self.world) as Arc<dyn World>).with(table)
    }

    fn options(&self) -> RunOptions {
        let heard = Arc::clone(&self.heard);
        let sink = move |event: Event| heard.lock().expect("a lock").push(event);
        RunOptions::new().principal("ada").tenant("acme").run_id("parent").events(sink)
    }

    /// A run whose graph has these turns.
    fn run(&self, rules: &str, turns: impl IntoIterator<Item = ScriptedTurn>) -> Run {
        self.runner(rules, researcher(turns)).run(self.options())
    }

    fn effects(&self) -> usize {
        self.world.0.lock().expect("a lock").len()
    }

    async fn records(&self) -> Vec<ToolInvocationRecord> {
        self.store.calls(&RecordFilter::default()).await.expect("records")
    }

    /// The waiting calls of a run.
    async fn waiting(&self, run: &str) -> Vec<PendingCall> {
        let filter = RecordFilter { run_id: Some(run.into()), ..RecordFilter::default() };
        tests::pending_calls(&*self.store, &filter).await
    }

    /// The tool and the outcome of each record.
    async fn outcomes(&self) -> Vec<(String, Outcome)> {
        self.records().await.into_iter().map(|record| (record.name.to_string(), record.outcome)).collect()
    }
}

/// A model that derives its turn from the first message and from the number of its answers so far.
struct Follows<F>(F);

#[async_trait]
impl<F: Fn(&str, usize) -> ScriptedTurn + Send + Sync> ModelClient for Follows<F> {
    fn name(&self) -> &'static str {
        "follows"
    }

    async fn complete(&self, request: ModelRequest<'_>, show: &mut DisplayFn<'_>) -> Result<Decoded, ModelError> {
        let first = request.messages.iter().find_map(|message| match message {
            Message::User(content) => content.iter().find_map(|content| match content {
                Content::Text(text) => Some(text.clone()),
                _ => None,
            }),
            _ => None,
        });
        let answered = request.messages.iter().filter(|message| matches!(message, Message::Assistant(_))).count();
        ScriptedModel::new([(self.0)(&first.unwrap_or_default(), answered)]).complete(request, show).await
    }
}

fn researcher(turns: impl IntoIterator<Item = ScriptedTurn>) -> Graph {
    Graph::new("researcher", "1", Agent::new(ScriptedModel::new(turns))).description("Researches.").tools(TOOLS)
}

/// A call of the graph.
fn ask(id: &str) -> ToolCall {
    ToolCall::text(id, "graph__researcher", r#"{"task":"Look at note 9."}"#)
}

fn call(id: &str, tool: &str, arguments: &str) -> ScriptedTurn {
    ScriptedTurn::call(id, tool, arguments)
}

fn text(result: &ToolExecResult) -> String {
    result.to_model()
}

#[tokio::test]
async fn a_graph_answers_with_a_summary_first() {
    let rig = Rig::new();
    let turns = [call("c1", "notes__list", "{}"), ScriptedTurn::text(REPORT)];
    let run = rig.run("", turns);
    let result = run.exec(ask("p1")).await;
    assert_eq!((result.outcome(), text(&result).as_str()), (Outcome::Ok, REPORT));

    // Each call has a separate record. The record of the child's call names its caller.
    let records = rig.records().await;
    let [child, parent] = records.as_slice() else { panic!("{records:?}") };
    assert_eq!((&*child.name, &*parent.name), ("notes__list", "graph__researcher"));
    let caller = Caller::Graph { run: "parent".into(), name: "researcher".into(), version: "1".into() };
    assert_eq!((&child.caller, &parent.caller), (&caller, &Caller::Direct));
    assert_eq!((child.principal.as_deref(), child.tenant.as_deref()), (Some("ada"), Some("acme")));
    assert_ne!(child.run_id, parent.run_id);

    // The child's events reach the parent's sink only with a mark.
    let heard = rig.heard.lock().expect("a lock");
    let own = heard.iter().filter(|event| !matches!(event, Event::Graph { .. })).count();
    assert_eq!(own, 2, "start and result of the call of the graph: {heard:?}");
    let marked = |event: &Event| matches!(event, Event::Graph { id, name, event, .. } if id.as_str() == "p1" && name == "researcher" && matches!(**event, Event::ToolCallResult { .. }));
    assert!(heard.iter().any(marked), "{heard:?}");
    let written = serde_json::to_string(&heard[1]).expect("JSON");
    let read: Event = serde_json::from_str(&written).expect("an event");
    assert_eq!(serde_json::to_string(&read).expect("JSON"), written);
}

#[tokio::test]
async fn nothing_of_the_childs_conversation_is_in_the_parents() {
    let rig = Rig::new();
    let turns = [call("c1", "notes__page", "{}"), ScriptedTurn::text(REPORT)];
    let runner = rig.runner("", researcher(turns));
    let model = [call("p1", "graph__researcher", r#"{"task":"Read."}"#), ScriptedTurn::text("Thanks.")];
    let mut conversation = Agent::new(ScriptedModel::new(model)).converse(runner.run(rig.options()));
    let ended = conversation.send("Read the page.").await;
    assert!(matches!(ended, TurnOutcome::Answered { text } if text == "Thanks."));
    let history = serde_json::to_string(&conversation.history()).expect("JSON");
    assert!(history.contains("Done.") && !history.contains("stranger"), "{history}");
    let said = |event: &Event| matches!(event, Event::TextDelta { text, .. } if text.contains("Done."));
    assert!(!rig.heard.lock().expect("a lock").iter().any(said));
}

#[tokio::test]
async fn labels_and_evidence_go_down_and_come_back() {
    let rig = Rig::new();
    let rules = "[labels.web]\nfrom_tags = ['web']\ndeny_effects = ['state_change']";
    let turns = [
        // The task mentions note 9, but the model wrote the task, so the id was not seen in a result.
        call("c1", "notes__delete", r#"{"note_id":9}"#),
        call("c2", "notes__list", "{}"),
        call("c3", "notes__page", "{}"),
        ScriptedTurn::text(REPORT),
    ];
    let run = rig.run(rules, turns);
    assert_eq!(run.exec(ask("p1")).await.outcome(), Outcome::Ok);
    let delete = |id: &str, note| ToolCall::text(id, "notes__delete", format!("{{\"note_id\":{note}}}"));
    let outcomes: Vec<_> = rig.outcomes().await.into_iter().map(|(_, outcome)| outcome).collect();
    assert_eq!(outcomes, [Outcome::ValidationError, Outcome::Ok, Outcome::Ok, Outcome::Ok]);
    // The child has read a page of a stranger, and so has the parent.
    assert_eq!(run.exec(delete("p2", 7)).await.outcome(), Outcome::PolicyDenied);

    // Without the label, an id that the child saw counts as seen.
    let rig = Rig::new();
    let run = rig.run("", [call("c1", "notes__list", "{}"), ScriptedTurn::text(REPORT)]);
    assert_eq!(run.exec(delete("p1", 7)).await.outcome(), Outcome::ValidationError);
    assert_eq!(run.exec(ask("p2")).await.outcome(), Outcome::Ok);
    assert_eq!(run.exec(delete("p3", 7)).await.outcome(), Outcome::Ok);

    // A model wrote the child's answer, so no id in it counts as seen.
    let rig = Rig::new();
    let run = rig.run("", [ScriptedTurn::text(r#"{"summary":"9","findings":["9"]}"#)]);
    assert_eq!(run.exec(ask("p1")).await.outcome(), Outcome::Ok);
    assert_eq!(run.exec(delete("p2", 9)).await.outcome(), Outcome::ValidationError);

    // An id that the parent saw counts as seen for the child, and the child's run has the parent's labels.
    let rig = Rig::new();
    let rules = "require_approval_for_tools = ['notes__delete']\n\
                 [labels.web]\nfrom_tags = ['web']\ndeny_effects = ['external_side_effect']";
    let run = rig.run(rules, [call("c1", "notes__delete", r#"{"note_id":7}"#)]);
    for (id, tool) in [("p1", "notes__list"), ("p2", "notes__page")] {
        assert_eq!(run.exec(ToolCall::text(id, tool, "{}")).await.outcome(), Outcome::Ok);
    }
    assert_eq!(run.exec(ask("p3")).await.outcome(), Outcome::ApprovalRequired);
    let snapshot = run.snapshot().await.expect("a snapshot");
    let graph = snapshot.waiting().next().and_then(|call| call.graph.clone()).expect("a graph");
    let waiting = rig.waiting(&graph.run_id).await;
    assert_eq!(waiting[0].labels, ["web".into()]);
}

fn waits(conversation: &Conversation) -> Vec<(String, Option<String>, Option<String>)> {
    let shown = |call: &tool_runtime::agent::WaitingCall| {
        let arguments = call.shown_arguments.as_ref().map(|shown| shown.get().to_owned());
        (call.id.to_string(), call.path.clone(), arguments)
    };
    conversation.waiting().map(shown).collect()
}

/// Long enough for anything that should have ended.
const LONG: Duration = Duration::from_mins(1);
