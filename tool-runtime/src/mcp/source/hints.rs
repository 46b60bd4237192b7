//! [`Hints`]: handles a server's notifications about changes of its tools, and about the subscription to these changes.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot};

use crate::mcp::source::message::Notification;

/// The notifications of a server, shared by all its connections. Several change notifications that arrive before the
/// list is read again cause only one read.
#[derive(Default)]
pub(super) struct Hints {
    /// Notified when the server reports that its tools changed.
    pub(super) changed: Notify,
    open: Mutex<Option<Open>>,
}

/// The open subscription.
struct Open {
    id: u64,
    /// Receives whether the subscription reports changes of the tools.
    acknowledged: Option<oneshot::Sender<bool>>,
}

impl Hints {
    fn open(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers the subscription that the request `id` opens, in place of the previous one. Returns the receiver of
    /// its acknowledgement.
    pub(super) fn subscribe(&self, id: u64) -> oneshot::Receiver<bool> {
        let (acknowledged, receiver) = oneshot::channel();
        *self.open() = Some(Open { id, acknowledged: Some(acknowledged) });
        receiver
    }

    /// Handles a notification. Returns the id of the subscription, if the notification ended it.
    pub(super) fn notify(&self, notification: Notification) -> Option<u64> {
        let mut open = self.open();
        match notification {
            // Revisions with a handshake have no subscriptions. In the revision without one, only reports of the open
            // subscription are used.
            Notification::Changed { subscription: None } => self.changed.notify_one(),
            Notification::Changed { subscription } => {
                if subscription == open.as_ref().map(|open| open.id) {
                    self.changed.notify_one();
                }
            }
            Notification::Acknowledged { subscription, of_tools } => {
                let open = open.as_mut().filter(|open| subscription == Some(open.id));
                if let Some(acknowledged) = open.and_then(|open| open.acknowledged.take()) {
                    // The receiver is gone if the connection ended meanwhile.
                    let _ = acknowledged.send(of_tools);
                }
            }
            Notification::Cancelled { request } => {
                return open.take_if(|open| request == Some(open.id)).map(|open| open.id);
            }
            Notification::Other => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_told(hints: &Hints) -> bool {
        use std::future::Future as _;
        let told = std::pin::pin!(hints.changed.notified());
        told.poll(&mut std::task::Context::from_waker(std::task::Waker::noop())).is_ready()
    }

    #[test]
    fn only_the_open_subscription_counts() {
        let hints = Hints::default();
        let changed = |subscription| Notification::Changed { subscription };
        assert_eq!((hints.notify(changed(Some(7))), is_told(&hints)), (None, false), "no subscription is open");
        assert_eq!((hints.notify(changed(None)), is_told(&hints)), (None, true), "an older revision");
        let mut acknowledged = hints.subscribe(7);
        for (subscription, of_tools) in [(Some(8), true), (None, true), (Some(7), false), (Some(7), true)] {
            hints.notify(Notification::Acknowledged { subscription, of_tools });
        }
        assert_eq!(acknowledged.try_recv(), Ok(false), "the first acknowledgement of the subscription");
        hints.notify(changed(Some(8)));
        assert!(!is_told(&hints), "another subscription");
        (0..1000).for_each(|_| assert_eq!(hints.notify(changed(Some(7))), None));
        assert_eq!((is_told(&hints), is_told(&hints)), (true, false), "one hint");
        assert_eq!(hints.notify(Notification::Cancelled { request: Some(8) }), None, "a server cancels nothing else");
        assert_eq!(hints.notify(Notification::Cancelled { request: Some(7) }), Some(7));
        hints.notify(changed(Some(7)));
        assert!(!is_told(&hints), "it has ended");
    }
}
