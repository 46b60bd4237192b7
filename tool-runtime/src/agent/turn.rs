//! The calls of one turn: read-only ones side by side, everything else one after the other, in the model's order.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use crate::call::{ToolCall, ToolExecResult};
use crate::runner::Run;
use crate::tool::ToolEffect;

/// Takes every call through the gate and hands over each result with the call's place as soon as it is there.
///
/// Neighbouring `read_only` calls run together, at most `cap` at a time; any other call waits for all before it and
/// holds up all behind it. One failure never loses a sibling, and neither does a dropped future what it handed over.
pub(super) async fn execute(run: &Run, calls: Vec<ToolCall>, cap: usize, mut done: impl FnMut(usize, ToolExecResult)) {
    let read_only =
        |call: &ToolCall| run.catalog().get(&call.name).is_some_and(|spec| spec.effect == ToolEffect::ReadOnly);
    let mut waiting = calls.into_iter().enumerate().peekable();
    while let Some((at, call)) = waiting.next() {
        if cap < 2 || !read_only(&call) {
            done(at, run.exec(call).await);
            continue;
        }
        let mut running = vec![start(run, at, call)];
        loop {
            while running.len() < cap
                && let Some((at, call)) = waiting.next_if(|(_, call)| read_only(call))
            {
                running.push(start(run, at, call));
            }
            if running.is_empty() {
                break;
            }
            let (at, result) = first(&mut running).await;
            done(at, result);
        }
    }
}

type Running = (usize, Pin<Box<dyn Future<Output = ToolExecResult> + Send>>);

fn start(run: &Run, at: usize, call: ToolCall) -> Running {
    (at, Box::pin(run.exec(call)))
}

/// The first of a handful of futures that is done, taken out of them.
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
