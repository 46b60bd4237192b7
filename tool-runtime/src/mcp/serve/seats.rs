//! [`Seats`]: limits the connections of a listener. A new connection can replace one that waits for its client.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv6Addr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::mcp::serve::body::Body;

/// The connections of a listener.
pub(super) struct Seats {
    max: usize,
    /// The maximum for one address.
    each: usize,
    taken: Mutex<Taken>,
    /// Notified when a connection begins to wait, or ends.
    freed: Notify,
}

#[derive(Default)]
struct Taken {
    next: u64,
    seats: HashMap<u64, Arc<Seat>>,
}

/// One connection.
pub(super) struct Seat {
    peer: IpAddr,
    /// When it began to wait for a request of its client, or for the rest of one. `None` while it does not wait.
    waits: Mutex<Option<Instant>>,
    /// Fires when the connection must close, to make room for another one.
    pub(super) leaves: CancellationToken,
}

impl Seat {
    fn waits(&self) -> MutexGuard<'_, Option<Instant>> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seats {
    pub(super) fn new(max: usize, each: usize) -> Arc<Self> {
        Arc::new(Self { max, each, taken: Mutex::default(), freed: Notify::new() })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether another connection can be accepted, because there is room, or a waiting one can be closed.
    pub(super) fn has_room(&self) -> bool {
        let taken = self.taken();
        taken.seats.len() < self.max || taken.seats.values().any(|seat| seat.waits().is_some())
    }

    /// Resolves when there may be room.
    pub(super) async fn freed(&self) {
        self.freed.notified().await;
    }

    /// Adds a connection of a peer. `None` if a limit is reached and no connection can be replaced.
    pub(super) fn take(self: &Arc<Self>, peer: IpAddr) -> Option<Sits> {
        let peer = network(peer);
        let mut taken = self.taken();
        if taken.seats.values().filter(|seat| seat.peer == peer).count() >= self.each {
            taken.make_room(|seat| seat.peer == peer)?;
        } else if taken.seats.len() >= self.max {
            taken.make_room(|_| true)?;
        }
        let (id, waits) = (taken.next, Mutex::new(Some(Instant::now())));
        let seat = Arc::new(Seat { peer, waits, leaves: CancellationToken::new() });
        taken.next += 1;
        taken.seats.insert(id, Arc::clone(&seat));
        drop(taken);
        Some(Sits { seats: Arc::clone(self), id, seat })
    }
}

/// Returns the network whose addresses are treated as one address: for IPv6 a prefix of 64 bits, because one host has
/// 2^64 addresses.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address @ IpAddr::V4(_) => address,
    }
}

impl Taken {
    /// Of the connections that `of` selects, closes the one that has waited longest. `None` if none of them waits.
    fn make_room(&mut self, of: impl Fn(&Seat) -> bool) -> Option<()> {
        let waiting = self.seats.iter().filter(|(_, seat)| of(seat));
        let longest = waiting.filter_map(|(id, seat)| Some(((*seat.waits())?, *id))).min();
        let (_, id) = longest?;
        self.seats.remove(&id)?.leaves.cancel();
        Some(())
    }
}

/// A guard of an accepted connection. When it is dropped, the connection no longer counts towards the limits.
pub(super) struct Sits {
    seats: Arc<Seats>,
    id: u64,
    pub(super) seat: Arc<Seat>,
}

impl Sits {
    /// Returns a handle for the requests of the connection.
    pub(super) fn place(&self) -> Seated {
        Seated { seats: Arc::clone(&self.seats), seat: Arc::clone(&self.seat) }
    }
}

impl Drop for Sits {
    fn drop(&mut self) {
        self.seats.taken().seats.remove(&self.id);
        self.seats.freed.notify_one();
    }
}

/// A handle with which a request marks its connection as waiting or not waiting.
#[derive(Clone)]
pub(super) struct Seated {
    seats: Arc<Seats>,
    seat: Arc<Seat>,
}

impl Seated {
    /// Marks the request as received. Its connection cannot be replaced until the answer is sent.
    pub(super) fn answered(self) -> Answered {
        *self.seat.waits() = None;
        Answered(self)
    }
}

/// A guard of an answer. Until it is dropped, the connection is not treated as waiting.
pub(super) struct Answered(Seated);

impl Drop for Answered {
    fn drop(&mut self) {
        *self.0.seat.waits() = Some(Instant::now());
        self.0.seats.freed.notify_one();
    }
}

/// A body, and a value that is dropped with it.
struct With<T> {
    body: Body,
    _with: T,
}

/// Keeps a value alive until a body is dropped.
pub(super) fn with<T: Send + Sync + Unpin + 'static>(body: Body, with: T) -> Body {
    With { body, _with: with }.boxed()
}

impl<T: Unpin> http_body::Body for With<T> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_one_that_has_waited_longest_makes_room() {
        let (ada, bob): (IpAddr, IpAddr) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let seats = Seats::new(3, 2);
        let later = || tokio::time::advance(std::time::Duration::from_secs(1));
        let first = seats.take(ada).unwrap();
        later().await;
        let second = seats.take(ada).unwrap();
        // Ada has her maximum of two connections, so the first is closed.
        let third = seats.take(ada).unwrap();
        assert!(first.seat.leaves.is_cancelled() && !second.seat.leaves.is_cancelled());
        drop(first);
        // A connection whose request has been received is not closed.
        let answers = (second.place().answered(), third.place().answered());
        assert!(seats.take(ada).is_none(), "no connection waits");
        let fourth = seats.take(bob).unwrap();
        later().await;
        let fifth = seats.take(bob).unwrap();
        assert!(fourth.seat.leaves.is_cancelled() && seats.has_room());
        let answered = fifth.place().answered();
        assert!(!seats.has_room() && seats.take(bob).is_none());
        drop(answers);
        assert!(seats.has_room() && seats.take(bob).is_some());
        drop(answered);
    }

    #[tokio::test]
    async fn the_addresses_of_one_host_are_one() {
        let seats = Seats::new(9, 1);
        let first = seats.take("2001:db8::1".parse().unwrap()).unwrap();
        let other = seats.take("2001:db8:0:1::1".parse().unwrap()).unwrap();
        let again = seats.take("2001:db8::ffff:0:0:2".parse().unwrap()).unwrap();
        assert!(first.seat.leaves.is_cancelled() && !other.seat.leaves.is_cancelled());
        let (mapped, plain) = ("::ffff:10.0.0.1".parse().unwrap(), "10.0.0.1".parse().unwrap());
        let mapped = seats.take(mapped).unwrap();
        let plain = seats.take(plain).unwrap();
        assert!(mapped.seat.leaves.is_cancelled());
        drop((again, plain));
    }
}
