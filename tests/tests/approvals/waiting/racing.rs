//! Many calls that wait, and several approvers who decide on all of them at the same time.

use std::sync::atomic::{AtomicU32, Ordering};
use tests::Shown as _;

use super::*;

/// The number of waiting calls. The variable `RACING_CALLS` overrides it.
const CALLS: u32 = 1000;
const APPROVERS: u32 = 4;

static RAN: AtomicU32 = AtomicU32::new(0);

/// Counts.
#[tool(name = "waiting__count", effect = external_side_effect, redact = ["$"])]
fn count(
    /// The number of the call.
    call: u32,
) -> Result<u32, ToolError> {
    RAN.fetch_add(1, Ordering::Relaxed);
    Ok(call)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_of_many_calls_is_decided_once() {
    let calls: u32 = std::env::var("RACING_CALLS").map_or(CALLS, |calls| calls.parse().expect("a number"));
    let policy = "allowed_tools = [\"waiting__count\"]\nrequire_approval_for_tools = [\"waiting__count\"]\n\
                  [loop_guard]\nwarn_at = 0\nstop_at = 0\n";
    let runner = runner(policy, &Arc::new(MemoryStore::with_limits(200_000, 20_000)));
    // One run for each hundred calls, as in many conversations.
    let options = |run: u32| RunOptions::new().run_id(format!("run-{run}")).principal("ada").tenant("acme");
    for call in 0..calls {
        let run = runner.run(options(call / 100));
        let arguments = format!(r#"{{"call":{call}}}"#);
        let waits = run.exec(ToolCall::text(format!("c{call}"), "waiting__count", arguments)).await;
        assert_eq!(waits.outcome(), Outcome::ApprovalRequired);
    }
    let mut approvers = tokio::task::JoinSet::new();
    for approver in 0..APPROVERS {
        let runner = runner.clone();
        approvers.spawn(async move {
            let (mut decided, mut late) = (0_u32, 0_u32);
            for call in 0..calls {
                // Each approver begins at another call, so that they meet.
                let call = (call + approver * calls / APPROVERS) % calls;
                let run = runner.run(options(call / 100));
                match run.resume_shown(&format!("c{call}"), ApprovalDecision::Approve, &grace()).await {
                    Ok(result) => {
                        assert_eq!(result.to_model(), call.to_string());
                        decided += 1;
                    }
                    Err(error) => {
                        assert_eq!(error.code(), "not_pending");
                        late += 1;
                    }
                }
            }
            (decided, late)
        });
    }
    let all = approvers.join_all().await;
    let (decided, late) = all.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    assert_eq!((decided, late), (calls, calls * (APPROVERS - 1)));
    assert_eq!(RAN.load(Ordering::Relaxed), calls);
    let records = runner.store().records(&RecordFilter::default()).await.expect("records");
    let ended = records.iter().filter(|sealed| sealed.record.as_call().is_some_and(|call| call.outcome == Outcome::Ok));
    assert_eq!(ended.count(), calls as usize);
    let decisions = || records.iter().filter_map(|sealed| sealed.record.as_decision());
    assert_eq!(decisions().filter(|decision| decision.refused().is_none()).count(), calls as usize);
    assert_eq!(decisions().count(), (calls * APPROVERS) as usize, "each late one has a record");
    tool_runtime::store::Chain::verify(&records).expect("whole chains");
}
