//! The stages of the gate, one file each, in the order in which [`exec`](crate::runner::exec) runs them.
//!
//! Each takes what only the stage before it can make, does its one thing, and stops the call with a
//! [`Stop`](crate::runner::ending::Stop) if it cannot continue.

mod admit;
mod begin;
mod bind;
mod conclude;
mod decide;
mod freeze;
mod hydrate;
mod reach;
mod recordable;
mod reserve;
mod resolve;
mod run;

pub(super) use admit::{admit, admit_hydrated};
pub(super) use begin::{Beginning, begin, enter, replaced};
pub(super) use bind::{Connections, bind, connect};
pub(super) use conclude::{Concluded, conclude};
pub(super) use decide::{Judged, Permit, decide, decide_approved, decide_granted, is_denied};
pub(super) use freeze::freeze;
pub(super) use hydrate::{hydrate, hydrate_begun, hydrate_only, hydrate_waiting};
pub(super) use reach::reach;
pub(super) use recordable::recordable;
pub(super) use reserve::reserve;
pub(super) use run::{run, unprojected};

use std::future::Future;
use std::pin::Pin;

use crate::runner::ending::Stop;

/// A part of a stage that waits.
type Waiting<'a, T> = Pin<Box<dyn Future<Output = Result<T, Stop>> + Send + 'a>>;
