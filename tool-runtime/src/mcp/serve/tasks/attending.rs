//! [`Attending`]: a request that the server holds open until its call ends.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{Instant, timeout_at};

use crate::call::CallId;
use crate::capability::Capabilities;
use crate::mcp::serve::tasks::run_tasks::{DeliveryState, RunTasks};

/// How many requests of one call may be held at the same time.
const ATTENDED: usize = 8;

/// How long a repeated call waits for the delivery of an answer that is being sent.
const ARRIVES: Duration = Duration::from_secs(1);

/// A guard of a request that the server holds open until its call ends.
pub(super) struct Attending {
    run_tasks: Arc<RunTasks>,
    id: CallId,
    number: u64,
}

impl Drop for Attending {
    fn drop(&mut self) {
        if let Some(entry) = self.run_tasks.calls().get_mut(&self.id) {
            entry.attending.remove(&self.number);
        }
        // A task whose client has received the result can be removed now.
        self.run_tasks.changed.notify_one();
    }
}

impl RunTasks {
    /// Holds a request until the call ends or the returned guard is dropped. `None` if too many requests are held.
    pub(super) fn attend(self: &Arc<Self>, id: &CallId, offers: Capabilities) -> Option<Attending> {
        let mut calls = self.calls();
        let entry = calls.get_mut(id).filter(|entry| entry.attending.len() < ATTENDED)?;
        let number = entry.attending.last_key_value().map_or(0, |(last, _)| last + 1);
        entry.attending.insert(number, offers);
        drop(calls);
        // A decision that was posted while no request was held is carried out now.
        self.changed.notify_one();
        Some(Attending { run_tasks: Arc::clone(self), id: id.clone(), number })
    }

    /// Whether more than one request is held for the call.
    pub(super) fn is_shared(&self, id: &CallId) -> bool {
        self.calls().get(id).is_some_and(|entry| entry.attending.len() > 1)
    }

    /// Whether an approval of the call has to wait until its client repeats the call.
    pub(super) fn is_left(&self, id: &CallId) -> bool {
        let calls = self.calls();
        let Some(entry) = calls.get(id) else { return false };
        entry.ended.is_none() && entry.saved.asked_as.is_some() && entry.attending.is_empty()
    }

    /// Whether the client has received the result of the call, and no request is held for the call. Waits a moment for
    /// the delivery of an answer that is being sent. If it is not delivered by then, another request gets the result.
    pub(super) async fn is_delivered(&self, id: &CallId) -> bool {
        let (mut news, late) = (self.news(), Instant::now() + ARRIVES);
        loop {
            news.borrow_and_update();
            let reported = self.calls().get(id).map(|entry| (entry.reported, entry.attending.len()));
            match reported {
                Some((DeliveryState::Yes, 0)) => return true,
                Some((DeliveryState::Sent, 0)) => {}
                _ => return false,
            }
            if timeout_at(late, news.changed()).await.is_err() {
                return false;
            }
        }
    }

    /// Records that a request is being answered with the result of the call. After a successful delivery, no later
    /// request gets the result.
    pub(super) fn mark_sending(&self, id: &CallId) {
        if let Some(entry) = self.calls().get_mut(id)
            && entry.reported == DeliveryState::No
        {
            entry.reported = DeliveryState::Sent;
        }
    }

    /// Records that an answer was sent to a client that may have stopped waiting, so that the next request gets the
    /// result again. Returns `false` if the result was already delivered.
    pub(super) fn mark_answered(&self, id: &CallId, at: Timestamp) -> bool {
        let is_marked = match self.calls().get_mut(id) {
            Some(entry) if entry.reported != DeliveryState::Yes => {
                (entry.reported, entry.saved.answered) = (DeliveryState::No, Some(at));
                true
            }
            _ => false,
        };
        self.changed();
        is_marked
    }

    /// Records whether the answer was delivered. If it was lost, the next request gets the result.
    pub(super) fn mark_delivered(&self, id: &CallId, has_arrived: bool) {
        if let Some(entry) = self.calls().get_mut(id)
            && entry.reported != DeliveryState::Yes
        {
            entry.reported = if has_arrived { DeliveryState::Yes } else { DeliveryState::No };
        }
        self.changed();
    }
}
