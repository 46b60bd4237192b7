//! `exec`: the gate as a list of stages.
//!
//! Each stage takes what only the stage before it can make, so none can be skipped.

use std::future::Future;

use crate::call::{ToolCall, ToolExecResult};
use crate::hydrate::{Hydrated, HydrationResult};
use crate::runner::Run;
use crate::runner::approval;
use crate::runner::open::OpenCall;
use crate::runner::stages::{self, Judged, Permit};
use crate::runner::stop::{Ended, Stop};
use crate::store::Suspension;

impl Run {
    /// Takes one call through the gate. The call's start is announced now; if the returned future is dropped,
    /// polled or not, the call still gets its record and its terminal event.
    ///
    /// The future has to be polled inside a tokio runtime with its timer enabled.
    pub fn exec(&self, call: ToolCall) -> impl Future<Output = ToolExecResult> + Send + use<> {
        let mut open = OpenCall::start(self.clone(), call);
        async move {
            let ended = from_start(&mut open).await;
            open.finish(ended).await
        }
    }

    /// Hydrates calls and runs nothing. Each result can go on through [`Run::exec_hydrated`] once.
    #[must_use]
    pub fn hydrate(&self, calls: impl IntoIterator<Item = ToolCall>) -> Vec<HydrationResult> {
        calls.into_iter().map(|call| stages::hydrate_only(self, call)).collect()
    }

    /// Goes on with a hydrated call, from the policy's decision on its arguments.
    pub fn exec_hydrated(&self, hydrated: Hydrated) -> impl Future<Output = ToolExecResult> + Send + use<> {
        let mut open = OpenCall::start_hydrated(self.clone(), &hydrated);
        async move {
            let ended = from_hydrated(&mut open, hydrated).await;
            open.finish(ended).await
        }
    }
}

/// All of it.
async fn from_start(open: &mut OpenCall) -> Result<Ended, Stop> {
    let (admitted, call) = stages::admit_new(open)?;
    let hydrated = stages::hydrate(open, &admitted, call)?;
    from_frozen(open, hydrated).await
}

/// For calls that [`Run::hydrate`] took through parsing and validation before.
async fn from_hydrated(open: &mut OpenCall, hydrated: Hydrated) -> Result<Ended, Stop> {
    stages::admit(open, hydrated.call())?;
    from_frozen(open, hydrated).await
}

/// From frozen arguments to the projected result.
async fn from_frozen(open: &mut OpenCall, hydrated: Hydrated) -> Result<Ended, Stop> {
    stages::freeze(open, &hydrated);
    match stages::decide(open, hydrated)? {
        Judged::Permitted(permit) => from_permit(open, permit).await,
        Judged::NeedsApproval(hydrated) => Err(approval::suspend(open, hydrated, Suspension::Approval, None).await),
    }
}

/// From the permit to the projected result; a resumed call enters here.
pub(super) async fn from_permit(open: &mut OpenCall, permit: Permit) -> Result<Ended, Stop> {
    let reserved = stages::reserve(open, permit)?;
    let bound = stages::bind(open, reserved).await?;
    let ran = stages::run(open, bound).await?;
    stages::conclude(open, ran).await
}
