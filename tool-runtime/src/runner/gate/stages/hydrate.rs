//! Hydrate: parses the arguments, repairs them if the policy permits it, validates them, checks the semantic rules, and
//! builds the typed arguments.

use std::sync::Arc;

use crate::call::{CallId, Outcome, ToolCall};
use crate::catalog::Entry;
use crate::hydrate::{self, FailedStage, Hydrated, HydrationError, HydrationResult, Unhydrated};
use crate::policy::ToolLimits;
use crate::runner::Run;
use crate::runner::gate::draft::{Refused, Shown};
use crate::runner::gate::ending::Stop;
use crate::runner::gate::open::OpenCall;
use crate::runner::gate::stages::admit::Admitted;
use crate::runner::gate::stages::resolve::resolve;
use crate::runner::run::mistakes::{clarification, mistake};
use crate::store::PendingCall;

/// Hydrates an admitted call.
#[inline]
pub(in crate::runner) fn hydrate(
    open: &mut OpenCall,
    admitted: Result<Admitted, Stop>,
    call: ToolCall,
) -> Result<Hydrated, Refused> {
    let Admitted { entry, limits, .. } = match admitted {
        Ok(admitted) => admitted,
        Err(stop) => {
            // Without the tool's definition, any argument may be sensitive, so the record gets a hash of them all.
            let shown = Shown::unread(call.arguments());
            return Err(Refused { stop, shown });
        }
    };
    let hydrated = hydrate::hydrate(call, entry, &asked(open.run()).settings(limits, false));
    if let Ok(hydrated) = &hydrated {
        open.hydrated(&hydrated.frozen.treatment);
    }
    hydrated.map_err(|unhydrated| {
        let Unhydrated { call, error, treatment } = *unhydrated;
        open.hydrated(&treatment);
        let shown = shown_of(&call, &error);
        Refused { stop: refused(open.run(), open.draft.name(), error), shown }
    })
}

/// The kind of run that reads a waiting call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::runner) enum Reader {
    /// The run of the call. It has the evidence, so the ids in the arguments are checked.
    Own,
    /// A run that lacks the evidence, because it is in another process or was restored from an older state. The call's
    /// own run checks the ids later.
    Other,
}

/// Hydrates a waiting call before it is claimed, or a call that another process began. Errors do not count as mistakes
/// of the model, because the model did not cause them.
pub(in crate::runner) fn hydrate_waiting(
    run: &Run,
    pending: &PendingCall,
    call: ToolCall,
    reader: Reader,
) -> Result<Hydrated, Refused> {
    let proves = reader == Reader::Own;
    let shown = || Shown::Masked(pending.shown_arguments.clone());
    // If a graph waits, `call` can be its inner call, of another tool than `pending.tool`.
    let Some(entry) = run.shared().catalog.entry(&call.name) else {
        return Err(Refused { stop: Stop::new(Outcome::ApprovalMismatch), shown: shown() });
    };
    // The current limits apply, and not the limits at the time of the suspension.
    let limits = run.policy().limits_of(entry.spec.name.as_str());
    hydrate::hydrate(call, Arc::clone(entry), &Hydrator { proves, ..asked(run) }.settings(limits, false)).map_err(
        |unhydrated| {
            let Unhydrated { call, error, .. } = *unhydrated;
            let shown = shown_of(&call, &error);
            let message = format!("{} The call still waits.", error.text());
            Refused { stop: Stop::new(error.outcome).errors(error.violations).message(message), shown }
        },
    )
}

/// Hydrates the arguments of a call again, to get a second typed value of them.
pub(in crate::runner) fn read_again(
    run: &Run,
    entry: &Arc<Entry>,
    id: &CallId,
    arguments: &str,
) -> Result<Hydrated, Stop> {
    let limits = run.policy().limits_of(entry.spec.name.as_str());
    let settings = Hydrator { proves: false, ..asked(run) };
    let call = ToolCall::text(id.clone(), entry.spec.name.as_str(), arguments);
    let hydrated = hydrate::hydrate(call, Arc::clone(entry), &settings.settings(limits, false));
    hydrated.map_err(|unhydrated| Stop::new(unhydrated.error.outcome))
}

/// Returns arguments that could not be hydrated, as a record may show them.
#[cold]
fn shown_of(call: &ToolCall, error: &HydrationError) -> Shown {
    match &error.masked {
        Some(masked) => Shown::Masked(masked.clone()),
        None => Shown::unread(call.arguments()),
    }
}

/// Hydrates one call for a caller that inspects it before it runs.
pub(in crate::runner) fn hydrate_only(run: &Run, call: ToolCall) -> HydrationResult {
    if !call.is_complete() {
        return HydrationResult::refused(&call, FailedStage::Resolve, Outcome::IncompleteCall, None);
    }
    match resolve(run, &call.name, None) {
        Ok((entry, _)) => {
            let limits = run.policy().limits_of(entry.spec.name.as_str());
            hydrate::hydrate_with_provenance(call, &entry, &asked(run).settings(limits, true))
        }
        Err(unresolved) => {
            let stop = unresolved.stop;
            // A hidden tool gets the message of an unknown one here as well.
            let concealed = stop.concealed.then(|| stop.message.to_string());
            HydrationResult::refused(&call, FailedStage::Resolve, stop.outcome, concealed)
        }
    }
}

/// The parts of a run that hydration uses.
struct Hydrator<'a, L, R> {
    run: &'a Run,
    lists: L,
    repairs: R,
    /// Whether ids have to be in the run's evidence.
    proves: bool,
}

fn asked(run: &Run) -> Hydrator<'_, impl Fn(&str) -> bool, impl Fn(&str) -> bool> {
    let lists = |tool: &str| run.catalog().get(tool).is_some();
    Hydrator { run, lists, repairs: |repairer: &str| run.policy().repairs(repairer), proves: true }
}

impl<L: Fn(&str) -> bool, R: Fn(&str) -> bool> Hydrator<'_, L, R> {
    #[inline]
    fn settings(&self, of_tool: ToolLimits, provenance: bool) -> hydrate::Settings<'_> {
        let (shared, policy) = (self.run.shared(), self.run.policy());
        hydrate::Settings {
            depth: policy.argument_depth(),
            of_tool,
            run: self.run.fields(),
            call_id_bytes: policy.call_id_bytes(),
            compiled: &shared.compiled,
            lists: &self.lists,
            repairers: &shared.repairers,
            repairs: &self.repairs,
            evidence: self.proves.then(|| self.run.seen()),
            provenance,
        }
    }
}

/// Returns the stop for a failed hydration. Its message to the model gets firmer when a mistake is repeated. If a tool
/// lists the missing values, the message does not tell the model to ask the user.
#[cold]
fn refused(run: &Run, tool: &str, error: HydrationError) -> Stop {
    let mut stop = Stop::new(error.outcome).errors(error.violations);
    if let Some(message) = error.message {
        stop = stop.message(message);
    }
    if matches!(error.outcome, Outcome::ValidationError | Outcome::InvalidJson) {
        let located = stop.errors.iter().map(|one| mistake(&one.pointer, &one.keyword, &one.expected));
        // Unreadable arguments have no location.
        let whole = stop.errors.is_empty().then(|| mistake("", error.outcome.code(), ""));
        let times = run.remembered().failed(tool, located.chain(whole), || clarification(tool, &stop.errors));
        let firmer = match times {
            _ if error.lists => None,
            0 | 1 => None,
            2 => Some("This is the second time: ask the user for what is missing."),
            _ => Some("Stop calling this tool and ask the user."),
        };
        if let Some(firmer) = firmer {
            let message = format!("{} {firmer}", stop.message);
            stop = stop.message(message);
        }
    }
    stop
}
