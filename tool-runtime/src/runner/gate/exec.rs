//! [`Run::exec`]: calls the stages of the gate in order. The gate is the series of steps that each call passes.
//!
//! Most stages need a value that only the previous stage can create, so the compiler rejects another order. Three
//! stages are not enforced in this way, and only the code of this file ensures that they run: `reach` and `recordable`
//! return no value, and `bind` also accepts [`Connections::default`] instead of the connections from `connect`. A call
//! ends with a value, a suspension, or a [`Stop`] returned through `?`.

use std::future::Future;
use std::sync::Arc;

use tracing::Span;

use crate::call::{Decision, Suspension, ToolCall, ToolExecResult};
use crate::hydrate::{Hydrated, HydrationResult};
#[cfg(feature = "mcp-server")]
use crate::runner::CallClient;
use crate::runner::Run;
use crate::runner::gate::ending::{Ending, Stop};
use crate::runner::gate::open::{OpenCall, Origin};
use crate::runner::gate::spans::Parent;
use crate::runner::gate::stages;
use crate::runner::gate::stages::{Beginning, Bound, Concluded, Connections, Judged, Left, Looked, Permit};
use crate::runner::waiting::grants::{Remembered, remembered};
use crate::runner::waiting::suspend::{Waits, suspend};
use crate::store::{Key, StoredUnknown};

impl Run {
    /// Runs one call through the gate. Emits the start event before the future is polled. If the future is dropped,
    /// polled or not, the call still gets its record and its terminal event.
    ///
    /// Refusals and failures are in the result, see [`ToolExecResult::outcome`]. The future has to be polled inside a
    /// tokio runtime with its timer enabled. It resolves after the store has acknowledged the record. No timeout limits
    /// the wait for the store.
    pub fn exec(&self, call: ToolCall) -> impl Future<Output = ToolExecResult> + Send + use<> {
        run_to_end(OpenCall::start(self.clone(), call), from_start)
    }

    /// As [`exec`](Self::exec), with the span of a model's turn as the parent of the call's span.
    ///
    /// `known` is a result that another process recorded. The run adds the labels and the evidence of that result, but
    /// the tool does not run again and no second record is written. `is_new` states that no earlier process can have
    /// made the call.
    pub(crate) fn exec_within(
        &self,
        turn: &Span,
        call: ToolCall,
        known: Option<ToolExecResult>,
        is_new: bool,
    ) -> impl Future<Output = ToolExecResult> + Send + use<> {
        let mut open = OpenCall::start(self.clone(), call);
        open.parent = Parent::Turn(turn.clone());
        open.known = known.map(Box::new);
        if is_new {
            open.origin = Origin::New;
        }
        run_to_end(open, from_start)
    }

    /// As [`exec`](Self::exec), for a call that an MCP client made over a connection.
    #[cfg(feature = "mcp-server")]
    pub(crate) fn exec_for(
        &self,
        client: CallClient,
        call: ToolCall,
    ) -> impl Future<Output = ToolExecResult> + Send + use<> {
        let mut open = OpenCall::start(self.clone(), call);
        (open.client, open.origin) = (Some(Box::new(client)), Origin::New);
        run_to_end(open, from_start)
    }

    /// Parses and validates calls without running them. Pass each valid call to [`Run::exec_hydrated`] of the same run,
    /// which consumes it.
    #[must_use]
    pub fn hydrate(&self, calls: impl IntoIterator<Item = ToolCall>) -> Vec<HydrationResult> {
        calls.into_iter().map(|call| stages::hydrate_only(self, call)).collect()
    }

    /// Executes a hydrated call without parsing and validating its arguments again. A call that another run hydrated is
    /// refused as `policy_denied`.
    pub fn exec_hydrated(&self, hydrated: Hydrated) -> impl Future<Output = ToolExecResult> + Send + use<> {
        let open = OpenCall::start_hydrated(self.clone(), &hydrated);
        run_to_end(open, |open| from_hydrated(open, hydrated))
    }
}

/// Runs an open call to its end. `judge` runs the stages up to the policy's decision on the arguments.
///
/// The stages before the permit are synchronous. Nested futures would be copied into each awaiter, which costs about
/// 500 instructions a call (`docs/design/007-cost-of-a-call.md`).
#[expect(clippy::manual_async_fn, reason = "an `async fn` would hold the call twice")]
fn run_to_end(
    mut open: OpenCall,
    judge: impl FnOnce(&mut OpenCall) -> Result<Judged, Stop> + Send,
) -> impl Future<Output = ToolExecResult> + Send {
    async move {
        if open.run().shared().is_undated() {
            Box::pin(open.date()).await;
        }
        let permit = match judge(&mut open) {
            Ok(Judged::Permitted(permit)) => Ok(permit),
            Ok(Judged::NeedsApproval(hydrated)) => Box::pin(resolve_approval(&mut open, hydrated)).await,
            Err(stop) => Err(Err(stop)),
        };
        let ended = match permit {
            Ok(permit) => from_permit(&mut open, permit).await,
            Err(ended) => ended,
        };
        open.finish(ended).await
    }
}

/// Runs the stages from the first one up to the policy's decision on the arguments.
fn from_start(open: &mut OpenCall) -> Result<Judged, Stop> {
    let mut decision = None;
    let hydrated = open.read(|open, call| {
        let admitted = stages::admit(open, &call).inspect(|admitted| decision.clone_from(&admitted.decision));
        stages::hydrate(open, admitted, call)
    })?;
    from_hydration(open, hydrated, decision)
}

/// Runs the stages up to the decision for a call that [`Run::hydrate`] already parsed and validated.
fn from_hydrated(open: &mut OpenCall, hydrated: Hydrated) -> Result<Judged, Stop> {
    let decision = stages::admit_hydrated(open, &hydrated)?;
    from_hydration(open, hydrated, decision)
}

/// Runs the stages after hydration, up to the decision. `decision` is the policy's decision at admission, if it holds
/// for all arguments.
fn from_hydration(open: &mut OpenCall, hydrated: Hydrated, decision: Option<Decision>) -> Result<Judged, Stop> {
    let frozen = stages::freeze(open, hydrated);
    stages::decide(open, frozen, decision)
}

/// Applies a matching grant to a call that requires an approval. Without a grant, suspends the call for a person.
async fn resolve_approval(open: &mut OpenCall, hydrated: Hydrated) -> Result<Permit, Result<Ending, Stop>> {
    if let Some(known) = open.known.take() {
        return Err(Ok(Ending::Elsewhere(known)));
    }
    let Remembered { decided, void } = remembered(open, &hydrated).await;
    if let Some(void) = void {
        open.draft.voided(void);
    }
    match decided {
        None => Err(ask(open, hydrated).await),
        Some((grant, decision)) => stages::decide_granted(open, hydrated, grant, decision).map_err(Err),
    }
}

/// Suspends a call for a person, unless another call already caused its effect or is causing it now.
async fn ask(open: &mut OpenCall, hydrated: Hydrated) -> Result<Ending, Stop> {
    let frozen = Arc::clone(&hydrated.frozen);
    match stages::look(open, &frozen).await? {
        Looked::Ends(ending) => Ok(ending),
        Looked::Asks(unknown) => {
            let waits = Waits { unknown, ..Waits::default() };
            suspend(open, hydrated, Suspension::Approval, waits).await
        }
    }
}

/// Runs the stages after the permit. A call that a person approved starts here.
pub(in crate::runner) async fn from_permit(open: &mut OpenCall, permit: Permit) -> Result<Ending, Stop> {
    let mut bound = {
        let reserved = stages::reserve(open, permit)?;
        if let Some(known) = open.known.take() {
            return Ok(Ending::Elsewhere(known));
        }
        // Futures that only some calls need are on the heap; inline, they would enlarge the future of every call.
        let (entry, timeout) = reserved.tool();
        if let Some(reaching) = stages::reach(open, entry, timeout) {
            reaching.await?;
        }
        let connections = match stages::connect(open, entry, timeout) {
            Some(connecting) => connecting.await?,
            None => Connections::default(),
        };
        stages::bind(reserved, connections)
    };
    if open.run().policy().requires_records() {
        Box::pin(stages::recordable(open)).await?;
    }
    let entered = match stages::begin(open, &bound) {
        Some(entered) => entered,
        None => match Box::pin(stages::enter(open, &mut bound)).await? {
            Beginning::Run(entered) => entered,
            Beginning::End(ending) => return Ok(ending),
            Beginning::Ask => {
                return Box::pin(ask(open, bound.into_hydrated())).await;
            }
            Beginning::Twins(key, unknown) => return Box::pin(twins(open, bound, key, unknown)).await,
        },
    };
    let left = stages::run(open, &mut bound, entered).await?;
    concluded(open, bound, left).await
}

/// Handles a call that did not begin, because earlier calls with the same effect key, or of the same tool with the same
/// arguments, have an unknown outcome. If the tool can reconcile the earlier call, that outcome ends this call.
/// Otherwise this call waits for a person.
async fn twins(open: &mut OpenCall, mut bound: Bound, key: Key, unknown: Vec<StoredUnknown>) -> Result<Ending, Stop> {
    if let Some(left) = stages::reconcile_twin(open, &mut bound, &key, &unknown).await? {
        return concluded(open, bound, left).await;
    }
    let rule = stages::ask_about_twins(open)?;
    open.draft.decided(Some(rule));
    let unknown = unknown.into_iter().map(|unknown| unknown.call).collect();
    let waits = Waits { unknown, ..Waits::default() };
    suspend(open, bound.into_hydrated(), Suspension::Approval, waits).await
}

/// Lets the tool reconcile a call that already has a record, if the current policy does not deny the call. Writes
/// nothing to the store.
pub(in crate::runner) async fn reconcile(open: &mut OpenCall, hydrated: Hydrated) -> Result<Left, Stop> {
    stages::admit_hydrated(open, &hydrated)?;
    let hydrated = open.draft.read(Ok(hydrated))?;
    let frozen = stages::freeze(open, hydrated);
    let permit = stages::decide_approved(open, frozen)?;
    let reserved = stages::reserve(open, permit)?;
    let (entry, timeout) = reserved.tool();
    if let Some(reaching) = stages::reach(open, entry, timeout) {
        reaching.await?;
    }
    let connections = match stages::connect(open, entry, timeout) {
        Some(connecting) => connecting.await?,
        None => Connections::default(),
    };
    let mut bound = stages::bind(reserved, connections);
    stages::reconcile(open, &mut bound).await
}

/// Delivers the output of a call, or suspends the call for its client or for the person that its graph waits for.
async fn concluded(open: &mut OpenCall, bound: Bound, left: Left) -> Result<Ending, Stop> {
    match stages::conclude(open, bound, left)? {
        Concluded::Delivered(delivered) => Ok(Ending::Delivered(delivered)),
        Concluded::NeedsClient(hydrated, payload) => {
            let waits = Waits { prepared: Some(payload), ..Waits::default() };
            Box::pin(suspend(open, *hydrated, Suspension::Client, waits)).await
        }
        Concluded::GraphWaits(hydrated, pending) => {
            let waits = Waits { graph: Some(pending), ..Waits::default() };
            Box::pin(suspend(open, *hydrated, Suspension::Approval, waits)).await
        }
    }
}
