//! A conversation that is continued step by step: the result is the same as without steps, also if another process
//! takes every step.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tests::world::{self, Effects, EventLog};
use tool_runtime::agent::{Agent, Conversation, Input, ModelError, SavedConversation, Step};
use tool_runtime::call::ClientAnswer;
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::{Chain, MemoryStore, RecordFilter, Store};
use tool_runtime::testing::{ScriptedModel, ScriptedTurn};
use tool_runtime::wire::{FinishReason, Message};
use tool_runtime::{Outcome, RunOptions, ToolContext, ToolError, ToolPolicy, ToolRunner, tool};

static EFFECTS: Effects = Effects::new();

/// Writes a note.
#[tool(name = "steps__write", effect = state_change, redact = ["$"])]
async fn write(
    ctx: &ToolContext,
    /// The note.
    text: String,
) -> Result<String, ToolError> {
    tokio::time::sleep(Duration::from_millis(5)).await;
    EFFECTS.happen(ctx);
    Ok(format!("wrote {text}"))
}

/// Sends a note.
#[tool(name = "steps__send", effect = external_side_effect, redact = ["$"])]
fn send(
    ctx: &ToolContext,
    /// To whom.
    to: String,
) -> Result<String, ToolError> {
    EFFECTS.happen(ctx);
    Ok(format!("sent to {to}"))
}

/// Reads a note.
#[tool(name = "steps__read", effect = read_only, redact = ["$"])]
async fn read(
    /// Which one.
    note: u32,
) -> Result<u32, ToolError> {
    tokio::time::sleep(Duration::from_millis(u64::from(10 - note.min(10)))).await;
    Ok(note)
}

const POLICY: &str = r#"
    allowed_tools = ["rig__double", "rig__fail", "rig__cursor", "steps__write", "steps__send", "steps__read"]
    parallel = 4
    require_approval_for_effects = ["external_side_effect"]
"#;

/// A scenario: the turns of the model, and the input of each request.
struct Scenario {
    name: &'static str,
    script: fn() -> Vec<ScriptedTurn>,
    requests: fn() -> Vec<Input>,
}

fn go() -> Vec<Input> {
    vec![Input::from("Go.")]
}

const SCENARIOS: &[Scenario] = &[
    Scenario { name: "text", script: || vec![ScriptedTurn::text("Hello.").using(10, 5)], requests: go },
    Scenario {
        name: "two requests",
        script: || vec![ScriptedTurn::text("Hello."), ScriptedTurn::text("Bye.")],
        requests: || vec![Input::from("Go."), Input::from("Stop.")],
    },
    Scenario {
        name: "calls of all kinds",
        script: || {
            vec![
                ScriptedTurn::call("a", "steps__read", r#"{"note":1}"#)
                    .and_call("b", "steps__read", r#"{"note":9}"#)
                    .and_call("c", "steps__write", r#"{"text":"one"}"#)
                    .and_call("d", "steps__read", r#"{"note":3}"#)
                    .and_call("e", "steps__write", r#"{"text":"two"}"#),
                ScriptedTurn::call("f", "rig__fail", "{}").using(7, 7),
                ScriptedTurn::call("g", "rig__denied", "{}").and_call("h", "steps__nonsense", "{}"),
                ScriptedTurn::call("i", "rig__double", r#"{"n":"#),
                ScriptedTurn::text("All done."),
            ]
        },
        requests: go,
    },
    Scenario {
        name: "calls that wait",
        script: || {
            vec![
                ScriptedTurn::call("a", "steps__write", r#"{"text":"one"}"#)
                    .and_call("b", "steps__send", r#"{"to":"bob"}"#)
                    .and_call("c", "rig__cursor", r#"{"file":"a.rs"}"#)
                    .and_call("d", "steps__write", r#"{"text":"two"}"#)
                    .and_call("e", "steps__send", r#"{"to":"eve"}"#),
                ScriptedTurn::text("Done."),
            ]
        },
        requests: || {
            vec![
                Input::from("Go."),
                Input::new().decide(&tests::never("b"), ApprovalDecision::Approve, &tests::grace()),
                Input::new()
                    .decide(&tests::never("e"), ApprovalDecision::Deny(Some("No.".to_owned())), &tests::grace())
                    .answer(ClientAnswer::value("c", "7")),
            ]
        },
    },
    Scenario {
        name: "calls that are left",
        script: || vec![ScriptedTurn::call("a", "steps__send", r#"{"to":"bob"}"#), ScriptedTurn::text("Well.")],
        requests: || vec![Input::from("Go."), Input::from("Never mind.")],
    },
    Scenario {
        name: "an unclean end",
        script: || {
            let cut = ScriptedTurn::call("a", "steps__write", r#"{"text":"one"}"#).ending(FinishReason::Length);
            vec![cut, ScriptedTurn::text("Again.")]
        },
        requests: || vec![Input::from("Go."), Input::new()],
    },
    Scenario { name: "a refusal", script: || vec![ScriptedTurn::refuses("No.")], requests: go },
    Scenario { name: "an empty answer", script: || vec![ScriptedTurn::text("")], requests: go },
    Scenario {
        name: "a pause",
        script: || vec![ScriptedTurn::text("Hm.").ending(FinishReason::Pause), ScriptedTurn::text("Yes.")],
        requests: go,
    },
    Scenario {
        name: "a model that fails",
        script: || vec![ScriptedTurn::fails(ModelError::timeout("scripted")), ScriptedTurn::text("Yes.")],
        requests: || vec![Input::from("Go."), Input::new()],
    },
    Scenario {
        name: "wrong in three turns",
        script: || (0..3).map(|at| ScriptedTurn::call(format!("{at}"), "rig__double", r#"{"n":"x"}"#)).collect(),
        requests: || vec![Input::from("Go."), Input::new()],
    },
];

/// Who takes the steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Nobody: each request is taken in one go.
    OneGo,
    /// One process.
    Steps,
    /// Another process for every step.
    Restored,
    /// The process that runs calls ends before its document is kept: another one takes the same step again.
    Cut,
}

/// The results to compare.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    history: Vec<Message>,
    records: Vec<(String, Outcome, bool)>,
    turns: Vec<(u64, Vec<Option<Outcome>>)>,
    done: Vec<String>,
    asked: Vec<Vec<Message>>,
    effects: BTreeMap<String, u32>,
}

struct Process<'a> {
    runner: &'a ToolRunner,
    agent: Agent,
    options: &'a dyn Fn() -> RunOptions,
}

impl Process<'_> {
    /// Continues in another process: the document goes through text.
    async fn restored(&self, document: &str) -> Conversation {
        let saved: SavedConversation = serde_json::from_str(document).expect("a document");
        self.agent.restore(self.runner, (self.options)(), saved).await.expect("restored")
    }
}

async fn document(conversation: &Conversation) -> String {
    serde_json::to_string(&conversation.save().await.expect("saved")).expect("JSON")
}

async fn see(test: &str, scenario: &Scenario, mode: Mode) -> Seen {
    let store = Arc::new(MemoryStore::new());
    let catalog = world::tools().tool::<write>().tool::<send>().tool::<read>().build().expect("a catalog");
    let policy = ToolPolicy::from_toml(POLICY).expect("a policy");
    let builder = ToolRunner::builder(catalog, policy).approvals(true).store(Arc::clone(&store));
    let runner = builder.build().expect("a runner");
    let model = Arc::new(ScriptedModel::new((scenario.script)()));
    let heard = EventLog::default();
    let run_id = format!("{test} {} {mode:?}", scenario.name);
    let options = || RunOptions::new().run_id(run_id.as_str()).principal("ada").events(heard.sink());
    let process = Process { runner: &runner, agent: Agent::new(Arc::clone(&model)), options: &options };
    let mut conversation = process.agent.converse(runner.run(options()));
    for input in (scenario.requests)() {
        let input = tests::answering(&conversation, &input);
        if mode == Mode::OneGo {
            conversation.receive(input).await.expect("nothing to refuse");
            continue;
        }
        let before = document(&conversation).await;
        conversation.accept(input.clone()).await.expect("nothing to refuse");
        if mode == Mode::Cut {
            conversation = process.restored(&before).await;
            conversation.accept(input).await.expect("what was decided is known");
        }
        loop {
            let before = document(&conversation).await;
            if mode != Mode::Steps {
                conversation = process.restored(&before).await;
            }
            let mut step = conversation.step().await;
            if mode == Mode::Cut && matches!(step, Step::Ran) {
                conversation = process.restored(&before).await;
                step = conversation.step().await;
            }
            if matches!(step, Step::Waits(_) | Step::Ended(_)) {
                break;
            }
        }
    }
    let sealed = store.records(&RecordFilter::default()).await.expect("records");
    Chain::verify(&sealed).expect("whole");
    let records = store.calls(&RecordFilter::default()).await.expect("records");
    let records = records.iter().map(|one| (one.tool_call_id.to_string(), one.outcome, one.executed)).collect();
    let outcomes = |turn: &tool_runtime::agent::ModelTurn| turn.calls.iter().map(|call| call.outcome).collect();
    let tokens = |turn: &tool_runtime::agent::ModelTurn| turn.usage.map_or(0, |usage| usage.total());
    Seen {
        history: conversation.history(),
        records,
        turns: conversation.turns().iter().map(|turn| (tokens(turn), outcomes(turn))).collect(),
        done: heard.done(),
        asked: model.asked(),
        effects: EFFECTS.of(&run_id),
    }
}

#[tokio::test(start_paused = true)]
async fn steps_are_the_same_as_one_go() {
    for scenario in SCENARIOS {
        let expected = see("steps", scenario, Mode::OneGo).await;
        assert!(expected.effects.values().all(|times| *times == 1), "{}: {:?}", scenario.name, expected.effects);
        for mode in [Mode::Steps, Mode::Restored] {
            assert_eq!(see("steps", scenario, mode).await, expected, "{} {mode:?}", scenario.name);
        }
    }
}

/// The process that took a step ended before its document was kept.
#[tokio::test(start_paused = true)]
async fn a_step_that_is_taken_again_runs_nothing_twice() {
    for scenario in SCENARIOS {
        let expected = see("again", scenario, Mode::OneGo).await;
        let seen = see("again", scenario, Mode::Cut).await;
        assert_eq!(seen.effects, expected.effects, "{}", scenario.name);
        assert_eq!(seen.records, expected.records, "{}", scenario.name);
        assert_eq!(seen.turns, expected.turns, "{}", scenario.name);
        assert_eq!(seen.asked.len(), expected.asked.len(), "{}", scenario.name);
    }
}

/// After an end, nothing happens until new input arrives, and a model that failed is asked again.
#[tokio::test(start_paused = true)]
async fn an_end_is_told_again() {
    let runner = ToolRunner::builder(world::tools().build().expect("a catalog"), ToolPolicy::deny_all());
    let runner = runner.build().expect("a runner");
    let script =
        [ScriptedTurn::fails(ModelError::timeout("scripted")), ScriptedTurn::text("Yes."), ScriptedTurn::text("Well.")];
    let heard = EventLog::default();
    let mut conversation =
        Agent::new(ScriptedModel::new(script)).converse(runner.run(RunOptions::new().events(heard.sink())));
    conversation.accept(Input::from("Go.")).await.expect("a message");
    let mut codes = Vec::new();
    for _ in 0..4 {
        codes.push(conversation.step().await.code());
    }
    assert_eq!(codes, ["model_timeout", "asked", "answered", "answered"]);
    assert_eq!(heard.done(), ["model_timeout", "answered", "answered"]);
    conversation.accept(Input::new()).await.expect("nothing to refuse");
    assert_eq!(conversation.step().await.code(), "asked");
}
