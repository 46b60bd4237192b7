//! Arguments as the gate would freeze them, for commands that run no tool.

use std::sync::{Arc, Mutex};

use crate::call::{Outcome, ToolCall, Violation};
use crate::catalog::{Entry, ToolCatalog};
use crate::cli::exit::{Exit, Failure};
use crate::cli::session::Cli;
use crate::hydrate::{self, EvidenceSet, Hydrated};
use crate::policy::{RunPolicy, ToolPolicy};

/// The arguments as the gate would freeze them. Every id in them counts as seen.
pub(super) fn frozen(
    catalog: &ToolCatalog,
    policy: &ToolPolicy,
    entry: &Arc<Entry>,
    text: String,
) -> Result<Hydrated, Failure> {
    let run = RunPolicy::new(policy.clone());
    let of_policy = run.limits();
    let compiled = Cli::compiled(catalog, policy, &mut Vec::new());
    let mut seen = EvidenceSet::new();
    seen.insert_text(&text);
    let settings = hydrate::Settings {
        depth: of_policy.argument_depth,
        of_tool: run.limits_of(entry.spec.name.as_str()),
        run: &Arc::default(),
        compiled: &compiled,
        lists: &|_| true,
        call_id_bytes: of_policy.call_id_bytes,
        repairers: &[],
        repairs: &|repairer| run.repairs(repairer),
        evidence: Some(&Mutex::new(seen)),
        provenance: false,
    };
    let call = ToolCall::text("explain", entry.spec.name.as_str(), text);
    hydrate::hydrate(call, Arc::clone(entry), &settings).map_err(|unhydrated| {
        let error = unhydrated.error;
        let place = |violation: &Violation| match violation.pointer.as_str() {
            "" => violation.keyword.clone(),
            pointer => format!("{pointer}: {}", violation.keyword),
        };
        let places: Vec<_> = error.violations.iter().map(place).collect();
        let places = if places.is_empty() { String::new() } else { format!(" ({})", places.join(", ")) };
        let failure = Failure::usage(format!("the arguments end as {}{places}", error.outcome));
        Failure { exit: Exit::of(error.outcome), ..failure }.code(code(error.outcome))
    })
}

const fn code(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::InvalidJson => "invalid_json",
        Outcome::LimitExceeded => "limit_exceeded",
        _ => "validation_error",
    }
}
