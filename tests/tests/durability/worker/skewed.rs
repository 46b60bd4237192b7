//! Processes with a wrong clock: due times, expiry and dates follow the time of the store.

use jiff::{SignedDuration, Timestamp};
use tool_runtime::store::{AuditRecord, Clock};

use super::*;

/// The clock of the store, by which that of this process is wrong.
struct Ahead(SignedDuration);

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        Timestamp::now() + self.0
    }
}

/// How far the process is behind the store: 40 seconds, an hour ahead, two days ahead.
const BEHIND: [i64; 3] = [40, -3_600, -2 * 86_400];

/// Whether a time is between two times of the store. Its clock is known to within an answer of it; the clocks of these
/// processes are wrong by more.
fn between(began: Timestamp, at: Timestamp, now: Timestamp) -> bool {
    let near = SignedDuration::from_secs(30);
    at.duration_since(began) >= -near && at.duration_since(now) <= near
}

fn world(what: &str, behind: i64) -> World {
    let clock = Ahead(SignedDuration::from_secs(behind));
    World { store: Arc::new(MemoryStore::with_clock(clock)), ..World::new(format!("{what} {behind}")) }
}

/// A run is taken as soon as it is there, waits for its person as long as the store says, and its records have the
/// store's time.
#[tokio::test]
async fn a_run_is_taken_and_waits_by_the_clock_of_the_store() {
    for behind in BEHIND {
        let world = world("skewed", behind);
        let began = world.store.now().await.expect("a time");
        world.enqueue("Go.").await;
        with([world.lasting()], world.reaches("approval_required")).await;
        // Whatever wakes it, its call does not expire early.
        world.decide(ApprovalDecision::ApproveEdited("{}".to_owned())).await;
        with([world.lasting()], async {
            while !world.store.list(&Query::new(DocumentKind::Post)).await.expect("a list").is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            world.reaches("approval_required").await;
            world.decide(ApprovalDecision::Approve).await;
            world.reaches("answered").await;
        })
        .await;
        assert_eq!(world.ends().await.0, ALL.map(|id| (id.to_owned(), Outcome::Ok)), "{behind}");
        let now = world.store.now().await.expect("a time");
        for record in world.store.calls(&RecordFilter::run(&*world.run_id)).await.expect("records") {
            let ended = record.ended_at.expect("it ended");
            assert!(record.started_at <= ended, "{behind}: {record:?}");
            assert!(between(began, record.started_at, now) && between(began, ended, now), "{behind}: {record:?} {now}");
        }
    }
}

/// A worker that is told to stop, and one whose model fails, leave a run that is due by the store's time.
#[tokio::test]
async fn a_run_is_released_by_the_clock_of_the_store() {
    for behind in BEHIND {
        let stopping = world("released", behind);
        stopping.enqueue("Go.").await;
        with([stopping.lasting()], async { tokio::task::yield_now().await }).await;
        let failing = world("put down", behind);
        failing.enqueue("Fail.").await;
        with([failing.lasting()], failing.reaches("model_unreachable")).await;
        for (world, longest) in [(stopping, 0), (failing, 2)] {
            let (stored, _) = world.queue().find(&world.run_id, Some("acme")).await.expect("it is there");
            let now = world.store.now().await.expect("a time");
            let in_seconds = stored.due.expect("it is due").duration_since(now).as_secs();
            assert!(in_seconds <= longest, "{}: due in {in_seconds} s", world.run_id);
        }
    }
}

/// A service without workers: the first call of a process, and the first decision, follow the time of the store.
#[tokio::test]
async fn the_first_thing_that_a_process_does_follows_the_clock_of_the_store() {
    for behind in BEHIND {
        let world = world("first", behind);
        let began = world.store.now().await.expect("a time");
        let process = || World::runner(Arc::clone(&world.store) as _);
        let run = |runner: &ToolRunner| {
            runner.run(RunOptions::new().run_id(world.run_id.as_str()).principal("ada").tenant("acme"))
        };
        let exec = async |id: &str, tool: &str, arguments: &str| {
            run(&process()).exec(tool_runtime::ToolCall::text(id, tool, arguments)).await
        };
        assert!(exec("read", "rig__double", r#"{"n":1}"#).await.is_ok());
        assert!(exec("write", "worker__write", r#"{"text":"one"}"#).await.is_ok());
        let asked = exec("send", "worker__send", r#"{"to":"bob"}"#).await;
        let now = world.store.now().await.expect("a time");
        let pending = tests::pending_calls(&*world.store, &RecordFilter::default()).await.remove(0);
        assert!(between(began, pending.created_at, now), "{behind}: suspended at {}", pending.created_at);
        let question = asked.question().expect("it waits");
        let sent = run(&process()).resume(question, ApprovalDecision::Approve, &grace()).await.expect("it waits");
        assert_eq!(sent.outcome(), Outcome::Ok, "{behind}: it does not expire early");
        let now = world.store.now().await.expect("a time");
        for sealed in world.store.records(&RecordFilter::run(&*world.run_id)).await.expect("records") {
            let dated = match &sealed.record {
                AuditRecord::Call(record) => vec![Some(record.started_at), record.ended_at],
                AuditRecord::Decision(decision) => vec![Some(decision.at)],
                other => panic!("{behind}: {other:?}"),
            };
            for at in dated {
                let at = at.expect("it ended");
                assert!(between(began, at, now), "{behind}: {} at {at}", sealed.record.call_id());
            }
        }
    }
}
