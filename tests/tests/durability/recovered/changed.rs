//! The process that continues a run has another policy, or another definition of the tool.

use serde_json::{Value, json};
use tool_runtime::registration::{DynamicHandler, DynamicTool};
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::{ToolCall, ToolEffect};

use super::doors::{DOORS, is_given_again};
use super::swept::{deserted, open};
use super::*;

/// The difference between the first process and the later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Newer {
    Same,
    /// The policy lets the call run, too.
    Policy,
    /// The policy asks a person about the call.
    Asks,
    /// The policy denies the call.
    Denies,
    /// The tools have other definitions.
    Definition,
    /// The arguments of the call do not fit the definitions.
    Arguments,
    /// The tools had a default that they have no more, so that the call has another idempotency key.
    Default,
    /// The same, and the policy asks a person about the call.
    DefaultAsks,
}

impl Newer {
    pub(super) fn catalog(self, is_later: bool, there: &Arc<There>) -> ToolCatalog {
        let builder = ToolCatalog::builder().tool::<proven>().tool::<Both>();
        let builder = match self {
            Self::Definition | Self::Arguments | Self::Default | Self::DefaultAsks if !is_later => {
                TOOLS.into_iter().fold(builder, |builder, tool| builder.dynamic(self.older(tool, there)))
            }
            _ => builder.tool::<Keyed>().tool::<again>().tool::<plain>(),
        };
        builder.build().expect("a catalog")
    }

    /// The tool as the first process has it.
    fn older(self, tool: &str, there: &Arc<There>) -> DynamicTool {
        let ty = if self == Self::Arguments { "integer" } else { "string" };
        let mut schema = json!({"type": "object", "properties": {"what": {"type": ty}}, "required": ["what"]});
        if let Self::Default | Self::DefaultAsks = self {
            schema["properties"]["how"] = json!({"type": "string", "default": "slowly"});
        }
        let is_plain = tool == "plain";
        let (name, handler) = (format!("recovered__{tool}"), Arc::new(Older(Arc::clone(there))));
        let tool =
            DynamicTool::new(name, "An earlier version.", schema, ToolEffect::StateChange, handler).redact(["$"]);
        if is_plain { tool } else { tool.idempotent() }
    }

    pub(super) fn policy(self, is_later: bool, policy: &str) -> String {
        let tools = "['recovered__keyed', 'recovered__again', 'recovered__plain', 'recovered__both']";
        match self {
            Self::Policy if is_later => format!("{policy}\n[approvals]\nown_calls = true"),
            Self::Asks | Self::DefaultAsks if is_later => {
                format!("allowed_tools = {tools}\nrequire_approval_for_tools = {tools}")
            }
            Self::Denies if is_later => "allowed_tools = ['recovered__proven']".to_owned(),
            _ => policy.to_owned(),
        }
    }
}

struct Older(Arc<There>);

#[async_trait]
impl DynamicHandler for Older {
    async fn call(&self, _: &Value, context: &ToolContext) -> Result<Value, ToolError> {
        act(&*self.0, &context.idempotency_key()).await.map(Value::String)
    }
}

/// A service that sweeps its store.
fn is_swept(rig: &Rig) {
    let doomed = rig.runner().run(ada()).exec(ToolCall::text("c", rig.name(), ARGUMENTS));
    rig.dies(async move { drop(doomed.await) });
    rig.later(async { rig.runner().sweep().await.expect("swept") });
}

/// Runs a call through each door. The process that continues it has this difference.
fn each(tool: &'static str, dies: Dies, newer: Newer, holds: impl Fn(&Rig, &str)) {
    for (door, continues) in DOORS.into_iter().chain([("swept", is_swept as fn(&Rig))]) {
        let rig = Rig { newer, ..Rig::new(tool, dies) };
        continues(&rig);
        holds(&rig, door);
    }
}

/// The call is still open, and a process of the first version ends it.
#[track_caller]
fn is_left(rig: &Rig, door: &str, times: u32) {
    assert_eq!(runtime().block_on(open(rig)), [("c".to_owned(), true)], "{door}");
    rig.is_later.store(false, Ordering::Relaxed);
    if door == "worker" {
        // The stored run is held to the later policy from now on.
        return;
    }
    runtime().block_on(async { rig.runner().sweep().await.expect("swept") });
    let (outcome, _, result) = rig.ended();
    assert_eq!((outcome, result.as_deref(), rig.effects()), (Outcome::Ok, Some(r#""done""#), vec![times]), "{door}");
}

#[test]
fn a_policy_that_lets_the_call_run_continues_it() {
    for tool in TOOLS {
        for dies in [Dies::Before, Dies::After] {
            each(tool, dies, Newer::Policy, |rig, door| rig.holds(door, dies));
        }
    }
}

/// To find out what happened needs no approval. To run a call again does, and the approval was not for this policy.
#[test]
fn a_policy_that_asks_about_the_call_lets_its_tool_reconcile_it_and_repeats_nothing() {
    for dies in [Dies::Before, Dies::After] {
        each("keyed", dies, Newer::Asks, |rig, door| rig.holds(door, dies));
    }
    each("again", Dies::After, Newer::Asks, |rig, door| is_left(rig, door, 2));
}

#[test]
fn an_approved_call_is_reconciled_under_another_policy_and_not_repeated() {
    for tool in ["keyed", "again"] {
        let rig = Rig { newer: Newer::Asks, ..deserted(tool, Dies::After) };
        rig.later(async { rig.runner().sweep().await.expect("swept") });
        match tool {
            "keyed" => rig.holds("swept", Dies::After),
            _ => is_left(&rig, "swept", 2),
        }
    }
}

#[test]
fn a_policy_that_denies_the_call_ends_it_as_unknown() {
    for tool in TOOLS {
        each(tool, Dies::After, Newer::Denies, |rig, door| {
            assert_eq!(rig.ended(), (Outcome::OutcomeUnknown, Some("lost"), None), "{door}: {tool}");
            assert_eq!(rig.effects(), [1], "{door}: {tool}");
        });
    }
}

/// Another definition can give the call other effective arguments, so a sweep leaves the call. A run that makes its
/// call again finds it by its key.
#[test]
fn a_tool_of_another_definition_continues_its_own_call_only() {
    for tool in ["keyed", "again"] {
        for dies in [Dies::Before, Dies::After] {
            each(tool, dies, Newer::Definition, |rig, door| match door {
                "swept" => assert_eq!(runtime().block_on(open(rig)), [("c".to_owned(), true)], "{tool} {dies:?}"),
                _ => rig.holds(door, dies),
            });
        }
    }
}

fn is_unknown_again(rig: &Rig) {
    assert_eq!(is_given_again(rig), Outcome::OutcomeUnknown, "{}", rig.tool);
}

/// With another default the call has another key. It began under the earlier one, so it neither runs a second time nor
/// asks a person.
#[test]
fn a_call_whose_default_changed_does_not_begin_a_second_time() {
    for newer in [Newer::Default, Newer::DefaultAsks] {
        for (door, continues) in DOORS.into_iter().chain([("again", is_unknown_again as fn(&Rig))]) {
            for tool in TOOLS {
                let rig = Rig { newer, ..Rig::new(tool, Dies::After) };
                continues(&rig);
                assert_eq!(rig.effects(), [1], "{door}: {tool} {newer:?}");
                if tool == "plain" {
                    assert_eq!(rig.ended(), (Outcome::OutcomeUnknown, Some("lost"), None), "{door}");
                } else {
                    is_left(&rig, door, 2);
                }
            }
        }
    }
}

/// The result of the earlier call is the result of this one.
#[test]
fn a_call_that_ended_under_another_default_keeps_its_result() {
    let rig = Rig { newer: Newer::DefaultAsks, ..Rig::new("plain", Dies::After) };
    *of(&rig.there.fate) = None;
    let call = ToolCall::text("c", rig.name(), ARGUMENTS);
    let snapshot = runtime().block_on(async {
        let run = rig.runner().run(ada());
        let snapshot = run.snapshot().await.expect("taken");
        assert!(run.exec(call.clone()).await.is_ok());
        snapshot
    });
    rig.later(async {
        let options = RunOptions::new().principal("ada").tenant("acme");
        let run = rig.runner().restore(snapshot, options).await.expect("restored");
        let other = run.exec(ToolCall::text("c2", rig.name(), ARGUMENTS)).await;
        assert_eq!(other.outcome(), Outcome::ApprovalRequired, "another call is asked about");
        assert_eq!(run.exec(call).await.to_model(), "done");
    });
    assert_eq!(rig.effects(), [1]);
}

/// Two processes have the run. One makes a call, while the other has read that the store has none.
#[test]
fn a_call_that_another_process_makes_meanwhile_is_found() {
    let rig = Rig { newer: Newer::Default, ..Rig::new("plain", Dies::After) };
    *of(&rig.there.fate) = None;
    let (call, options) =
        (ToolCall::text("c", rig.name(), ARGUMENTS), RunOptions::new().principal("ada").tenant("acme"));
    let first = rig.runner().run(ada());
    let snapshot = runtime().block_on(first.snapshot()).expect("taken");
    rig.is_later.store(true, Ordering::Relaxed);
    runtime().block_on(async {
        let later = rig.runner().restore(snapshot, options).await.expect("restored");
        assert!(later.exec(ToolCall::text("c2", rig.name(), r#"{"what": "heat"}"#)).await.is_ok());
        assert!(first.exec(call.clone()).await.is_ok());
        assert_eq!(later.exec(call).await.to_model(), "done");
    });
    assert_eq!(rig.effects(), [1, 1]);
}

/// A call waits for a person. A process with another default neither begins it nor loses its question.
#[test]
fn a_waiting_call_whose_default_changed_still_waits() {
    for asks in [true, false] {
        let first = Rig { asks: true, newer: Newer::Default, ..Rig::new("plain", Dies::After) };
        let call = ToolCall::text("c", first.name(), ARGUMENTS);
        let (snapshot, question) = runtime().block_on(async {
            let run = first.runner().run(ada());
            let snapshot = run.snapshot().await.expect("taken");
            assert_eq!(run.exec(call.clone()).await.outcome(), Outcome::ApprovalRequired);
            (snapshot, run.pending(&"c".into()).await.expect("a store").expect("it waits").question())
        });
        let later = Rig { asks, newer: Newer::Default, ..first_of(&first) };
        later.later(async {
            let options = RunOptions::new().principal("ada").tenant("acme");
            let run = later.runner().restore(snapshot, options).await.expect("restored");
            let result = run.exec(call).await;
            assert_eq!((result.outcome(), result.question()), (Outcome::ApprovalRequired, Some(&question)), "{asks}");
        });
        assert_eq!(first.effects(), Vec::<u32>::new());
        // A process of the first version carries the decision out.
        runtime().block_on(async {
            *of(&first.there.fate) = None;
            let done = first.runner().run(ada()).resume(&question, ApprovalDecision::Approve, &grace()).await;
            assert_eq!(done.expect("it waits").outcome(), Outcome::Ok);
        });
        assert_eq!(first.effects(), [1]);
    }
}

/// A tool that may run again and can also find out what happened. Under a policy that asks about its calls, it only
/// finds out.
#[test]
fn a_tool_that_may_run_again_reconciles_where_it_may_not() {
    for (dies, expected) in [
        (Dies::After, (Outcome::Ok, None, Some(r#""found rent""#.to_owned()))),
        (Dies::Before, (Outcome::Cancelled, Some("prevented"), None)),
    ] {
        each("both", dies, Newer::Asks, |rig, door| {
            assert_eq!(rig.ended(), expected, "{door}");
            assert_eq!(rig.effects(), if dies == Dies::After { vec![1] } else { vec![] }, "{door}");
        });
    }
    each("both", Dies::After, Newer::Policy, |rig, door| assert_eq!(rig.effects(), [2], "{door}: it may run again"));
}

/// A process without approvals denies calls that need one. It leaves a call that was approved to a process with
/// approvals.
#[test]
fn a_process_without_approvals_leaves_an_approved_call() {
    let rig = deserted("keyed", Dies::After);
    rig.later(async {
        let silent = rig.builder().approvals(false).build().unwrap_or_else(|error| panic!("{error}"));
        silent.sweep().await.expect("swept");
        assert_eq!(open(&rig).await, [("c".to_owned(), true)]);
        rig.runner().sweep().await.expect("swept");
    });
    rig.holds("swept", Dies::After);
}

/// Any worker may be able to continue the call, so each gets a chance, at growing intervals.
#[test]
fn a_call_that_is_left_open_wakes_its_worker_seldom() {
    let rig = Rig { newer: Newer::Asks, ..Rig::new("again", Dies::After) };
    DOORS[1].1(&rig);
    let woken = runtime().block_on(async {
        let is_due = async || rig.queue().find("run", Some("acme")).await.expect("it is there").0.due.is_some();
        let mut woken = Vec::new();
        for minute in 1..=300 {
            rig.clock.advance(Duration::from_mins(1));
            rig.dyn_store().sweep().await.expect("swept");
            if !is_due().await {
                continue;
            }
            woken.push(minute);
            let (stop, mut stopped) = tokio::sync::watch::channel(false);
            let worker = tokio::spawn(rig.worker().run(async move { drop(stopped.wait_for(|stop| *stop).await) }));
            while is_due().await {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            stop.send_replace(true);
            worker.await.expect("no panic").expect("the store is there");
        }
        woken
    });
    assert_eq!(woken, [1, 2, 4, 8, 16, 32, 64, 124, 184, 244], "after twice the time, and then each hour");
    assert_eq!(runtime().block_on(open(&rig)), [("c".to_owned(), true)]);
}

/// The call waits for a process that can read its arguments, and is closed after a week without one.
#[test]
fn arguments_that_do_not_fit_the_definition_leave_the_call_open() {
    for tool in ["keyed", "again"] {
        let rig = Rig { newer: Newer::Arguments, ..Rig::new(tool, Dies::After) };
        let doomed = rig.runner().run(ada()).exec(ToolCall::text("c", rig.name(), r#"{"what":7}"#));
        rig.dies(async move { drop(doomed.await) });
        rig.later(async {
            rig.runner().sweep().await.expect("swept");
            assert_eq!(open(&rig).await, [("c".to_owned(), true)], "{tool}");
            rig.clock.advance(Duration::from_hours(7 * 24));
            rig.runner().sweep().await.expect("swept");
        });
        assert_eq!(rig.ended(), (Outcome::OutcomeUnknown, Some("lost"), None), "{tool}");
    }
}

/// A person asks the tool after the call was closed.
#[test]
fn a_recorded_call_is_reconciled_under_another_policy() {
    for newer in [Newer::Asks, Newer::Policy] {
        let rig = Rig { newer, ..Rig::new("keyed", Dies::After) };
        *of(&rig.there.looks) = Looks::Panics;
        is_swept(&first_of(&rig));
        *of(&rig.there.looks) = Looks::Normally;
        rig.later(async {
            let run = rig.runner().run(ada());
            let settled = run.settle(&"c".into(), Reconciled::Unknown, &grace()).await.expect("it is unknown");
            assert_eq!((settled.outcome(), settled.to_model()), (Outcome::Ok, "found rent".into()), "{newer:?}");
        });
    }
}

/// The same parts, with processes of the first version only.
fn first_of(rig: &Rig) -> Rig {
    let (clock, store, there) = (Arc::clone(&rig.clock), Arc::clone(&rig.store), Arc::clone(&rig.there));
    Rig { clock, store, there, tool: rig.tool, asks: false, newer: Newer::Same, is_later: AtomicBool::new(false) }
}
