//! Waits for work at a terminal, with a progress line and Ctrl-C.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use tool_runtime::Run;

use crate::terminal;

/// The exit code of a process that an interrupt ended.
const INTERRUPTED: i32 = 130;
/// The silence on a terminal after which a progress line is shown.
const PATIENCE: Duration = Duration::from_secs(2);

/// Waits for the work of a run. Ctrl-C cancels the run; the wait then continues until the calls are recorded. A second
/// Ctrl-C ends the process.
pub(super) async fn cancellable<T>(run: &Run, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    loop {
        match wait(work.as_mut()).await {
            Some(done) => return done,
            // The second Ctrl-C: the run is already cancelled, but its work does not end.
            None if run.cancellation().is_cancelled() => {
                terminal::clear_progress();
                std::process::exit(INTERRUPTED);
            }
            None => {
                terminal::message("interrupted: cancelling the run (interrupt again to end the program)");
                run.cancel();
            }
        }
    }
}

/// Waits for work. Ctrl-C drops it, and the result is `None`.
pub(super) async fn interruptible<T>(work: impl Future<Output = T>) -> Option<T> {
    wait(pin!(work)).await
}

/// Waits for work, or for Ctrl-C (`None`).
async fn wait<T>(mut work: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    let mut interrupt = pin!(tokio::signal::ctrl_c());
    let watched = terminal::is_watched();
    terminal::clear_progress();
    let ended = poll_fn(|cx| {
        if let Poll::Ready(done) = work.as_mut().poll(cx) {
            return Poll::Ready(Some(done));
        }
        if interrupt.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        // The last poll of the interval returns `Pending`, which registers the waker for the next tick.
        while watched && ticks.poll_tick(cx).is_ready() {
            let silent = terminal::silence();
            if silent >= PATIENCE {
                terminal::progress(&format!("waiting, {} s", silent.as_secs()));
            }
        }
        Poll::Pending
    })
    .await;
    terminal::clear_progress();
    ended
}

/// Resolves at a signal to end the process: Ctrl-C, and on Unix also SIGTERM.
pub(super) async fn end_signal() {
    #[cfg(unix)]
    if let Ok(mut terminated) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        let mut interrupted = std::pin::pin!(tokio::signal::ctrl_c());
        poll_fn(|context| {
            if terminated.poll_recv(context).is_ready() {
                return Poll::Ready(());
            }
            Future::poll(interrupted.as_mut(), context).map(drop)
        })
        .await;
        return;
    }
    drop(tokio::signal::ctrl_c().await);
}
