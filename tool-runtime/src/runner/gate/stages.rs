//! The stages of the gate, one file each; [`exec`](crate::runner::gate::exec) calls them in order.
//!
//! Each stage has one task, and ends the call with a [`Stop`](crate::runner::gate::ending::Stop) if it cannot continue.
//! Most stages need a value that only the previous stage can create. `earlier`, `effect`, `resolve` and `twins` are
//! helpers of stages.

mod admit;
mod begin;
mod bind;
mod conclude;
mod decide;
mod earlier;
mod effect;
mod freeze;
mod hydrate;
mod reach;
mod recordable;
mod reserve;
mod resolve;
mod run;
mod twins;

pub(in crate::runner) use admit::{admit, admit_hydrated};
pub(in crate::runner) use begin::{Beginning, begin, enter, replaced};
pub(in crate::runner) use bind::{Bound, Connections, bind, connect, resolve as resolve_connection};
pub(in crate::runner) use conclude::{Concluded, conclude};
pub(in crate::runner) use decide::{
    Judged, Permit, asks, decide, decide_approved, decide_granted, is_denied, required_approvals,
};
pub(in crate::runner) use effect::{Looked, look};
pub(in crate::runner) use freeze::freeze;
pub(in crate::runner) use hydrate::{Reader, hydrate, hydrate_only, hydrate_waiting, read_again};
pub(in crate::runner) use reach::reach;
pub(in crate::runner) use recordable::recordable;
pub(in crate::runner) use reserve::reserve;
pub(in crate::runner) use run::{Left, failed, run, unprojected};
pub(in crate::runner) use twins::{ask_about_twins, reconcile, reconcile_twin};

use std::future::Future;
use std::pin::Pin;

use crate::runner::gate::ending::Stop;

/// The boxed future of an asynchronous part of a stage.
type StageFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Stop>> + Send + 'a>>;
