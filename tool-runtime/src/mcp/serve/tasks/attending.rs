//! [`Attending`]: a request that the server holds open until its call ends.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{Instant, timeout_at};

use crate::call::CallId;
use crate::mcp::serve::tasks::run_tasks::{DeliveryState, Entry, HeldRequest, RunTasks};

/// How many requests of one call may be held at the same time.
const ATTENDED: usize = 8;

/// How long a repeated call waits while the result is being sent to another request.
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
        // A task whose client has received the result can be removed now, and a result that was not sent can be taken.
        self.run_tasks.changed();
    }
}

impl RunTasks {
    /// Counts a request as held until the returned guard is dropped. Returns `None` if the call is unknown or the
    /// maximum number of requests is held.
    pub(super) fn attend(self: &Arc<Self>, id: &CallId, request: HeldRequest) -> Option<Attending> {
        let mut calls = self.calls();
        let entry = calls.get_mut(id).filter(|entry| entry.attending.len() < ATTENDED)?;
        let number = entry.attending.last_key_value().map_or(0, |(last, _)| last + 1);
        entry.attending.insert(number, request);
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

    /// Returns whether a request has got the result of the call. Waits a moment while requests are getting it: those to
    /// which it is being sent, and those that were held when the call ended.
    pub(super) async fn delivery(&self, id: &CallId) -> DeliveryState {
        let (mut news, late) = (self.news(), Instant::now() + ARRIVES);
        loop {
            news.borrow_and_update();
            let state = self.calls().get(id).map_or(DeliveryState::No, Entry::delivery);
            if state != DeliveryState::Sent || timeout_at(late, news.changed()).await.is_err() {
                return state;
            }
        }
    }

    /// Records that a request is being answered with the result of the call. Returns `false` if the request must take
    /// the result alone, and another request is getting it.
    pub(super) fn mark_sending(&self, id: &CallId, takes: bool) -> bool {
        let mut calls = self.calls();
        let Some(entry) = calls.get_mut(id).filter(|entry| !takes || entry.delivery() == DeliveryState::No) else {
            return false;
        };
        if entry.reported == DeliveryState::No {
            entry.reported = DeliveryState::Sent;
        }
        true
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

impl Entry {
    /// Whether a request has got the result of the ended call, or is getting it.
    fn delivery(&self) -> DeliveryState {
        let is_awaited = self.attending.values().any(|request| !request.takes);
        if self.reported == DeliveryState::No && is_awaited { DeliveryState::Sent } else { self.reported }
    }
}
