//! The stages of the gate, in two halves: up to the permit, and from the permit on.
//!
//! Each stage does its one thing and stops the call with a [`Stop`](crate::runner::stop::Stop) when it cannot go on.

mod dispatch;
mod judge;

pub(super) use dispatch::{bind, conclude, remember, reserve, run, unprojected};
pub(super) use judge::{Judged, Permit, admit, admit_new, decide, freeze, hydrate, hydrate_only, permit_approved};
