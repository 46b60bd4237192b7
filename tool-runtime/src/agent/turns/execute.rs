//! Runs the calls of one turn in the model's order: adjacent read-only calls concurrently, all others one at a time.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use tracing::Span;

use crate::agent::turns::state::ToGate;
use crate::call::ToolExecResult;
use crate::runner::Run;
use crate::tool::ToolEffect;

/// The progress of one call of the turn, by the call's index.
pub(in crate::agent) enum Progressed {
    /// The call is handed to the gate now.
    Begun(usize),
    /// The call has its result, or waits.
    Ended(usize, ToolExecResult),
}

/// Returns the calls that run next: adjacent `read_only` calls, or one call.
pub(in crate::agent) fn group(
    run: &Run,
    queued: impl Iterator<Item = (usize, ToGate)>,
    cap: usize,
) -> Vec<(usize, ToGate)> {
    let mut queued = queued.peekable();
    let mut group: Vec<_> = queued.next().into_iter().collect();
    if cap > 1 && group.first().is_some_and(|(_, one)| reads(run, one)) {
        while let Some(next) = queued.next_if(|(_, one)| reads(run, one)) {
            group.push(next);
        }
    }
    group
}

/// Whether the call only reads, by the effect that the policy gives its tool.
fn reads(run: &Run, one: &ToGate) -> bool {
    run.effect_of(&one.call.name) == Some(ToolEffect::ReadOnly)
}

/// Takes every call through the gate, and reports its start and its end as they happen.
///
/// Adjacent `read_only` calls run together, at most `cap` at a time. Any other call waits for all calls before it, and
/// all calls after it wait for it. A failed call does not affect the results of the other calls. A dropped future loses
/// no progress that was reported. The spans of the tools are children of `turn`.
pub(in crate::agent) async fn execute(
    run: &Run,
    turn: &Span,
    calls: Vec<ToGate>,
    cap: usize,
    mut report: impl FnMut(Progressed),
) {
    let mut waiting = calls.into_iter().enumerate().peekable();
    while let Some((at, call)) = waiting.next() {
        report(Progressed::Begun(at));
        if cap < 2 || !reads(run, &call) {
            report(Progressed::Ended(at, Box::pin(run.exec_within(turn, call.call, call.known, call.is_new)).await));
            continue;
        }
        let mut running = vec![start(run, turn, at, call)];
        loop {
            while running.len() < cap
                && let Some((at, call)) = waiting.next_if(|(_, call)| reads(run, call))
            {
                report(Progressed::Begun(at));
                running.push(start(run, turn, at, call));
            }
            if running.is_empty() {
                break;
            }
            let (at, result) = first(&mut running).await;
            report(Progressed::Ended(at, result));
        }
    }
}

type Running = (usize, Pin<Box<dyn Future<Output = ToolExecResult> + Send>>);

fn start(run: &Run, turn: &Span, at: usize, call: ToGate) -> Running {
    (at, Box::pin(run.exec_within(turn, call.call, call.known, call.is_new)))
}

/// Waits until one of the futures completes, and removes it.
async fn first(running: &mut Vec<Running>) -> (usize, ToolExecResult) {
    poll_fn(|cx| {
        let ready = running.iter_mut().enumerate().find_map(|(place, (_, future))| match future.as_mut().poll(cx) {
            Poll::Ready(result) => Some((place, result)),
            Poll::Pending => None,
        });
        match ready {
            Some((place, result)) => {
                let (at, _) = running.swap_remove(place);
                Poll::Ready((at, result))
            }
            None => Poll::Pending,
        }
    })
    .await
}
