//! [`Hints`]: unsolicited notifications; only `tools/list_changed` matters.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot};

use crate::mcp::source::message::Notification;

/// The notifications of a server. Its connections share them; any number of notifications gives one hint.
#[derive(Default)]
pub(super) struct Hints {
    /// Notified when the server reports that its tools changed.
    pub(super) changed: Notify,
    open: Mutex<Option<Open>>,
}

/// The subscription that is open.
struct Open {
    id: u64,
    /// Receives whether the subscription reports changes of the tools.
    acknowledged: Option<oneshot::Sender<bool>>,
}

impl Hints {
    fn open(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the subscription that this request opens, in place of the previous one. Returns the receiver of its
    /// acknowledgement.
    pub(super) fn subscribe(&self, id: u64) -> oneshot::Receiver<bool> {
        let (acknowledged, receiver) = oneshot::channel();
        *self.open() = Some(Open { id, acknowledged: Some(acknowledged) });
        receiver
    }

    /// Handles a notification. Returns the subscription that it ended.
    pub(super) fn notify(&self, notification: Notification) -> Option<u64> {
        let mut open = self.open();
        match notification {
            // Revisions with a handshake have no subscriptions; in the other one, only the open subscription counts.
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
        assert_eq!((hints.notify(changed(Some(7))), is_told(&hints)), (None, false), "nobody asked");
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
