//! From the call to the permit: resolve, admit, hydrate, freeze, decide.

use std::sync::Arc;

use crate::call::{Decision, NO_SUCH_TOOL, Outcome, ToolCall};
use crate::catalog::Entry;
use crate::hydrate::{self, FailedStage, Hydrated, HydrationError, HydrationResult};
use crate::json::Limits;
use crate::policy::{Stage, Verdict};
use crate::runner::Run;
use crate::runner::open::OpenCall;
use crate::runner::stop::Stop;

/// A call whose tool exists, belongs to the run and is not denied.
pub(in crate::runner) struct Admitted(Arc<Entry>);

/// A hydrated call that the policy allows. Only [`decide`] and an approval make one.
pub(in crate::runner) struct Permit {
    pub(super) hydrated: Hydrated,
}

/// What [`decide`] says of frozen arguments.
pub(in crate::runner) enum Judged {
    Permitted(Permit),
    NeedsApproval(Hydrated),
}

/// Finds the tool and asks the run's tool list and the policy, before the arguments are looked at.
pub(in crate::runner) fn admit(open: &mut OpenCall, call: &ToolCall) -> Result<Admitted, Stop> {
    if !call.is_complete() {
        return Err(Stop::new(Outcome::IncompleteCall));
    }
    if open.repeated {
        let message = "This call id was already used in this run. The call did not run again.";
        return Err(Stop::new(Outcome::PolicyDenied).message(message));
    }
    if open.run.0.options.cancellation.is_cancelled() {
        return Err(Stop::new(Outcome::Cancelled));
    }
    let entry = resolve(&open.run, &call.name).map_err(|refusal| {
        open.decision = refusal.decision;
        refusal.stop
    })?;
    open.effect = open.run.effect_of(entry.spec.name.as_str());
    open.definition_hash = Some(entry.spec.definition_hash);
    if open.run.0.shared.compiled.projector(&entry).is_none() {
        let message = "The tool has no redaction allowlist, so its answer could not be shown. It did not run.";
        return Err(Stop::new(Outcome::RedactionFailed).message(message));
    }
    Ok(Admitted(entry))
}

/// Admits the call that this record is about.
pub(in crate::runner) fn admit_new(open: &mut OpenCall) -> Result<(Admitted, ToolCall), Stop> {
    let call = open.take_call().ok_or_else(|| Stop::new(Outcome::Cancelled))?;
    match admit(open, &call) {
        Ok(admitted) => Ok((admitted, call)),
        Err(stop) => {
            open.unread(call.arguments.as_str());
            Err(stop)
        }
    }
}

/// Why a name leads to no tool.
struct Refusal {
    decision: Option<Decision>,
    stop: Stop,
}

fn resolve(run: &Run, name: &str) -> Result<Arc<Entry>, Box<Refusal>> {
    let shared = &run.0.shared;
    let Some(entry) = shared.catalog.entry(name) else {
        return Err(Box::new(Refusal { decision: None, stop: Stop::new(Outcome::Unavailable) }));
    };
    let denied = |rule| {
        let mut stop = Stop::new(Outcome::PolicyDenied);
        if run.catalog().get(name).is_none() {
            stop = stop.message(NO_SUCH_TOOL);
            stop.concealed = true;
        }
        Box::new(Refusal { decision: Some(Decision { verdict: Verdict::Deny, rule }), stop })
    };
    let labels = run.state().labels();
    let decision = shared.policy.decide(&run.context(&labels), Stage::Admission, &entry.subject(), None);
    match decision.verdict {
        Verdict::Deny => Err(denied(decision.rule)),
        Verdict::RequireApproval if !shared.approvals => Err(denied(decision.rule)),
        Verdict::Allow | Verdict::RequireApproval => Ok(Arc::clone(entry)),
    }
}

/// Parses, repairs when the policy says so, validates, checks the semantic rules and builds the typed arguments.
pub(in crate::runner) fn hydrate(open: &mut OpenCall, admitted: &Admitted, call: ToolCall) -> Result<Hydrated, Stop> {
    let run = open.run.clone();
    let result = hydrate_entry(&run, &admitted.0, call);
    open.validator = result.provenance.validator.as_ref().map(hydrate::ValidatorUse::label);
    open.repair = result.provenance.repair.as_ref().map(|repair| repair.repairer.clone());
    match result.hydrated {
        Ok(hydrated) => Ok(hydrated),
        Err(error) => {
            match &error.masked {
                Some(masked) => open.read_arguments(Arc::clone(masked)),
                None => open.unread(&result.provenance.raw_arguments),
            }
            Err(refused(&run, admitted.0.spec.name.as_str(), error))
        }
    }
}

/// Hydrates one call for a caller that wants to look at it first.
pub(in crate::runner) fn hydrate_only(run: &Run, call: ToolCall) -> HydrationResult {
    if !call.is_complete() {
        return HydrationResult::refused(&call, FailedStage::Resolve, Outcome::IncompleteCall, None);
    }
    match resolve(run, &call.name) {
        Ok(entry) => hydrate_entry(run, &entry, call),
        Err(refusal) => {
            let concealed = refusal.stop.concealed.then(|| refusal.stop.message.to_string());
            HydrationResult::refused(&call, FailedStage::Resolve, refusal.stop.outcome, concealed)
        }
    }
}

fn hydrate_entry(run: &Run, entry: &Arc<Entry>, call: ToolCall) -> HydrationResult {
    let shared = &run.0.shared;
    let policy = shared.policy.data();
    let limits = Limits {
        bytes: shared.policy.limits_of(entry.spec.name.as_str()).argument_bytes,
        depth: policy.limits.argument_depth,
    };
    let settings = hydrate::Settings {
        limits: &limits,
        call_id_bytes: policy.limits.call_id_bytes,
        compiled: &shared.compiled,
        lists: &|tool| run.catalog().get(tool).is_some(),
        repairers: &shared.repairers,
        allowed_repairers: &policy.repair.allowed,
        evidence: &run.0.evidence,
    };
    hydrate::hydrate(call, entry, &settings)
}

/// Turns a failed hydration into what the model reads, one degree firmer each time it happens again.
fn refused(run: &Run, tool: &str, error: HydrationError) -> Stop {
    let mut stop = Stop::new(error.outcome).errors(error.violations);
    if let Some(message) = error.message {
        stop = stop.message(message);
    }
    if matches!(error.outcome, Outcome::ValidationError | Outcome::InvalidJson) {
        match run.state().failed(tool) {
            0 | 1 => {}
            2 => {
                let message = format!("{} This is the second time: ask the user for what is missing.", stop.message);
                stop = stop.message(message);
            }
            _ => {
                let message = format!("{} Stop calling this tool and ask the user.", stop.message);
                stop = stop.message(message);
            }
        }
    }
    stop
}

/// The arguments stand: the record may show them, masked, and the tool's failures in a row are forgotten.
pub(in crate::runner) fn freeze(open: &mut OpenCall, hydrated: &Hydrated) {
    open.run.state().passed(hydrated.entry.spec.name.as_str());
    open.read_arguments(Arc::clone(&hydrated.masked));
}

/// Asks the policy again, now with the arguments.
pub(in crate::runner) fn decide(open: &mut OpenCall, hydrated: Hydrated) -> Result<Judged, Stop> {
    let shared = &open.run.0.shared;
    let subject = hydrated.entry.subject().repaired(hydrated.repaired);
    let labels = open.run.state().labels();
    let decision = shared.policy.decide(&open.run.context(&labels), Stage::Frozen, &subject, Some(&hydrated.frozen));
    let verdict = match decision.verdict {
        Verdict::RequireApproval if !shared.approvals => Verdict::Deny,
        verdict => verdict,
    };
    open.decision = Some(decision);
    match verdict {
        Verdict::Allow => Ok(Judged::Permitted(Permit { hydrated })),
        Verdict::RequireApproval => Ok(Judged::NeedsApproval(hydrated)),
        Verdict::Deny => Err(Stop::new(Outcome::PolicyDenied)),
    }
}

/// A person approved exactly these arguments: the policy is asked again, and only a denial still counts.
pub(in crate::runner) fn permit_approved(open: &mut OpenCall, hydrated: Hydrated) -> Result<Permit, Stop> {
    match decide(open, hydrated)? {
        Judged::Permitted(permit) => Ok(permit),
        Judged::NeedsApproval(hydrated) => Ok(Permit { hydrated }),
    }
}
