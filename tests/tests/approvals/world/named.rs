//! Names that were looked up for the approver are compared before the call begins.

use std::sync::atomic::AtomicU32;

use tool_runtime::call::Violation;
use tool_runtime::capability::{NameLookup, NameRequest};
use tool_runtime::{ToolCatalog, ToolPolicy};

use super::*;

/// Deletes something.
#[tool(name = "world__delete", effect = state_change, redact = ["$"], summary = "Deletes {item_id}")]
fn delete(
    world: &dyn World,
    /// Which one.
    item_id: String,
) -> Result<String, ToolError> {
    world.happen();
    Ok(item_id)
}

/// The earliest day on which an item can be moved.
static TODAY: AtomicU32 = AtomicU32::new(1);

/// Moves something to a day.
#[tool(name = "world__move", effect = state_change, redact = ["$"], validate = has_not_passed(*day))]
fn postpone(
    world: &dyn World,
    /// Which one.
    item_id: String,
    /// To which day.
    day: u32,
) -> Result<String, ToolError> {
    world.happen();
    Ok(format!("{item_id} on {day}"))
}

fn has_not_passed(day: u32) -> Result<(), Violation> {
    if day < TODAY.load(Ordering::Acquire) { Err(Violation::of("day", "a day to come")) } else { Ok(()) }
}

/// Titles of items.
#[derive(Default, Clone)]
struct Titles(Arc<Mutex<Option<&'static str>>>);

#[async_trait]
impl NameLookup for Titles {
    async fn name(&self, _: &NameRequest<'_>) -> Result<Option<String>, ToolError> {
        match *self.0.lock().unwrap() {
            Some("FAILS") => Err(ToolError::safe("no directory")),
            title => Ok(title.map(str::to_owned)),
        }
    }
}

fn process(rig: &Rig, titles: &Titles) -> Run {
    let rules = "allowed_tools = ['world__delete', 'world__move']\n\
                 require_approval_for_tools = ['world__delete', 'world__move']";
    let policy = ToolPolicy::from_toml(rules).expect("a policy");
    let builder = ToolRunner::builder(ToolCatalog::collect().expect("a catalog"), policy);
    let builder = builder.capabilities(rig.capabilities()).approvals(true).clock(Arc::clone(&rig.shared.clock));
    let builder = builder.store(Arc::clone(&rig.shared.store)).names("world__delete", "item_id", titles.clone());
    let builder = builder.names("world__move", "item_id", titles.clone());
    builder.build().expect("a runner").run(of("run-1"))
}

fn item() -> ToolCall {
    ToolCall::text("c1", "world__delete", r#"{"item_id":"i-1"}"#)
}

#[tokio::test]
async fn a_name_that_reads_otherwise_asks_anew() {
    let (rig, titles) = (Rig::new(), Titles::default());
    *titles.0.lock().unwrap() = Some("Draft");
    let question = asked(&process(&rig, &titles).exec(item()).await);
    *titles.0.lock().unwrap() = Some("Contract");
    of_another_world(&approve(&process(&rig, &titles), &question).await);
    let pending = rig.waiting().await;
    assert_eq!(
        pending.summary.as_deref(),
        Some(
            "An approval did not count, because this has changed: “/item_id” was “Draft” and is “Contract”. Deletes \
             “i-1” (looked up: “Contract”)"
        )
    );
    assert_eq!(pending.names[0].name.as_deref(), Some("Contract"));
    assert_eq!(rig.refused().await, [DecisionError::World]);
    let records = serde_json::to_string(&rig.decisions().await).expect("JSON");
    assert!(!records.contains("Draft") && !records.contains("Contract"), "records keep no names: {records}");
    assert_eq!(approve(&process(&rig, &titles), &pending.question()).await.outcome(), Outcome::Ok);
    assert_eq!(rig.shared.effects(), 1);
}

/// A name only helps a person to decide, so a look-up that fails refuses nothing.
#[tokio::test]
async fn a_name_that_cannot_be_looked_up_refuses_nothing() {
    for (before, now, counts) in [
        (Some("Draft"), Some("Draft"), true),
        (Some("Draft"), Some("FAILS"), true),
        (Some("FAILS"), Some("Draft"), true),
        (Some("Draft"), None, false),
        (None, Some("Draft"), false),
    ] {
        let (rig, titles) = (Rig::new(), Titles::default());
        *titles.0.lock().unwrap() = before;
        let question = asked(&process(&rig, &titles).exec(item()).await);
        *titles.0.lock().unwrap() = now;
        let result = approve(&process(&rig, &titles), &question).await;
        let expected = if counts { Outcome::Ok } else { Outcome::ApprovalMismatch };
        assert_eq!((result.outcome(), rig.shared.effects()), (expected, u32::from(counts)), "{before:?} {now:?}");
    }
}

/// An edit corrects arguments that have become wrong. The approver has seen no statement and no name for the new ones,
/// so nothing is compared.
#[tokio::test]
async fn an_edit_that_repairs_a_call_counts() {
    let (rig, titles) = (Rig::new(), Titles::default());
    let postponed = ToolCall::text("c1", "world__move", r#"{"item_id":"i-1","day":1}"#);
    let question = asked(&process(&rig, &titles).exec(postponed).await);
    TODAY.store(2, Ordering::Release);
    let edited = ApprovalDecision::ApproveEdited(r#"{"item_id":"i-1","day":2}"#.to_owned());
    let result = process(&rig, &titles).resume(&question, edited, &grace()).await.expect("it waits");
    assert_eq!((result.outcome(), rig.shared.effects()), (Outcome::Ok, 1), "{}", result.to_model());
}

/// A person reads the start of a long name; all of it is compared.
#[tokio::test]
async fn the_whole_name_is_compared() {
    const START: &str = "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890";
    let named = |end: &str| -> &'static str { Box::leak(format!("{START}{end}").into_boxed_str()) };
    let (rig, titles) = (Rig::new(), Titles::default());
    *titles.0.lock().unwrap() = Some(named("a"));
    let question = asked(&process(&rig, &titles).exec(item()).await);
    *titles.0.lock().unwrap() = Some(named("b"));
    of_another_world(&approve(&process(&rig, &titles), &question).await);
    let summary = rig.waiting().await.summary.expect("a sentence");
    assert!(summary.contains("“/item_id” has another value than before"), "{summary}");
    let question = rig.waiting().await.question();
    assert_eq!(approve(&process(&rig, &titles), &question).await.outcome(), Outcome::Ok);
}
