//! Hydration: parse, validate, instantiate. A provider's call becomes a [`Hydrated`] tool or located errors.
//!
//! The argument text is parsed once into a borrowed tree; the validator and the typed value both read that tree,
//! so what the schema accepts is what the tool is built from.

mod freeze;
mod provenance;
pub mod repair;
pub mod semantic;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

pub use provenance::{FailedStage, HydrationError, HydrationResult, Provenance, ValidatorUse};
pub use repair::Repairer;
pub use semantic::EvidenceSet;

pub use crate::call::RepairUse;
use crate::call::{Outcome, ToolCall};
use crate::catalog::Entry;
use crate::contain::{caught, discard};
use crate::json::{self, Limits, Tree};
use crate::policy::{ArgumentView, Scalar};
use crate::registration::Instance;
use crate::schema::validator::Validator;
use crate::tool::Hash;

/// A call whose arguments were parsed, validated and built into the tool's type. Opaque: only
/// [`Run::exec_hydrated`](crate::runner::Run::exec_hydrated) can run it.
pub struct Hydrated {
    pub(crate) call: ToolCall,
    pub(crate) entry: Arc<Entry>,
    instance: Ready,
    /// The run that hydrated it, by the address of its id: no other run may execute it.
    pub(crate) run: Arc<str>,
    /// The arguments as canonical text, every digit kept.
    pub(crate) frozen: Arc<str>,
    /// SHA-256 of `frozen`.
    pub(crate) digest: Hash,
    /// The arguments with the sensitive ones masked.
    pub(crate) masked: Arc<serde_json::value::RawValue>,
    pub(crate) repaired: bool,
}

impl Hydrated {
    /// The call as it came in.
    #[must_use]
    pub fn call(&self) -> &ToolCall {
        &self.call
    }

    /// SHA-256 of the frozen arguments.
    #[must_use]
    pub fn digest(&self) -> Hash {
        self.digest
    }

    /// The arguments had to be repaired to be read.
    #[must_use]
    pub fn repaired(&self) -> bool {
        self.repaired
    }

    /// The arguments with the sensitive ones masked, as JSON.
    #[must_use]
    pub fn masked_arguments(&self) -> &str {
        self.masked.get()
    }

    /// The typed value, once.
    pub(crate) fn take_instance(&mut self) -> Option<Box<dyn Instance>> {
        self.instance.0.take()
    }
}

/// A typed value that was not run yet. Its destructor is the author's code, so a panic in it is contained.
struct Ready(Option<Box<dyn Instance>>);

impl Drop for Ready {
    fn drop(&mut self) {
        discard(self.0.take());
    }
}

impl std::fmt::Debug for Hydrated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hydrated").field("tool", &self.entry.spec.name).finish_non_exhaustive()
    }
}

/// What hydration needs from its surroundings.
pub(crate) struct Settings<'a> {
    pub(crate) limits: &'a Limits,
    /// The id of the run that hydrates.
    pub(crate) run: &'a Arc<str>,
    pub(crate) validator: &'a dyn Validator,
    /// The longest call id that is taken, in bytes.
    pub(crate) call_id_bytes: usize,
    /// Those of the application, beside the built-in ones.
    pub(crate) repairers: &'a [Arc<dyn Repairer>],
    /// Those that the policy allows, by name. There is one attempt at most.
    pub(crate) allowed_repairers: &'a BTreeSet<String>,
    /// What was seen in this run.
    pub(crate) evidence: &'a Mutex<EvidenceSet>,
}

impl Settings<'_> {
    /// The one attempt: the first allowed repairer that knows what to do.
    fn repair(&self, text: &str, error: &json::ParseError) -> Option<repair::Repaired> {
        if error.kind.is_limit() {
            return None;
        }
        let own = self.repairers.iter().map(AsRef::as_ref);
        let all = own.chain(repair::BUILT_IN);
        repair::attempt(all.filter(|repairer| self.allowed_repairers.contains(repairer.name())), text)
    }
}

/// Takes one call through all stages.
pub(crate) fn hydrate(call: ToolCall, entry: &Arc<Entry>, settings: &Settings<'_>) -> HydrationResult {
    let mut provenance = Provenance::of(&call);
    let hydrated = stages(&call, entry, settings, &mut provenance).map(|built| Hydrated {
        call,
        entry: Arc::clone(entry),
        instance: Ready(Some(built.instance)),
        run: Arc::clone(settings.run),
        frozen: built.frozen,
        digest: built.digest,
        masked: built.masked,
        repaired: provenance.repair.is_some(),
    });
    if let Ok(hydrated) = &hydrated {
        provenance.validated = Some(Arc::clone(&hydrated.frozen));
    }
    HydrationResult { hydrated, provenance }
}

struct Built {
    instance: Box<dyn Instance>,
    frozen: Arc<str>,
    digest: Hash,
    masked: Arc<serde_json::value::RawValue>,
}

fn stages(
    call: &ToolCall,
    entry: &Arc<Entry>,
    settings: &Settings<'_>,
    provenance: &mut Provenance,
) -> Result<Built, HydrationError> {
    if call.id.as_str().len() > settings.call_id_bytes {
        let message = format!("The call id is longer than {} bytes.", settings.call_id_bytes);
        return Err(HydrationError::parse(Outcome::LimitExceeded, message));
    }
    let text = call.arguments.as_str();
    let repaired;
    let mut tree = match json::parse(text, settings.limits) {
        Ok(tree) => tree,
        Err(error) => {
            let Some(attempt) = settings.repair(text, &error) else {
                return Err(HydrationError::unparsed(&error));
            };
            provenance.repair =
                Some(RepairUse { repairer: attempt.repairer, before: attempt.before, after: attempt.after });
            repaired = attempt.text;
            json::parse(&repaired, settings.limits).map_err(|error| HydrationError::unparsed(&error))?
        }
    };
    let built = validate(&mut tree, entry, settings, provenance).and_then(|()| instantiate(&tree, entry));
    let instance = built.map_err(|mut error| {
        // Arguments that break the schema may hold a sensitive value under another name.
        if entry.semantics.sensitive.is_empty() {
            error.masked = Some(freeze::masked(&tree, &json::canonical::to_text(&tree), &[]));
        }
        error
    })?;
    let frozen: Arc<str> = json::canonical::to_text(&tree).into();
    let digest = json::digest(&*frozen);
    let masked = freeze::masked(&tree, &frozen, &entry.semantics.sensitive);
    Ok(Built { instance, frozen, digest, masked })
}

/// Schema and semantic rules, all violations together; evidence only for arguments that pass both.
fn validate(
    tree: &mut Tree<'_>,
    entry: &Entry,
    settings: &Settings<'_>,
    provenance: &mut Provenance,
) -> Result<(), HydrationError> {
    entry.identifiers.trim(tree);
    let mut violations = entry.identifiers.check(tree);
    if entry.no_schema.is_none() {
        let started = Instant::now();
        let compiled = entry.validator(settings.validator).map_err(|problem| {
            tracing::error!(tool = %entry.spec.name, pointer = %problem.pointer, "the input schema does not compile");
            HydrationError::instantiate("The tool's schema cannot be checked. The call did not run.")
        })?;
        if let Err(found) = compiled.check(tree) {
            if found.is_empty() {
                return Err(HydrationError::instantiate(
                    "The tool's arguments cannot be checked. The call did not run.",
                ));
            }
            violations.extend(found);
        }
        provenance.validator = Some(ValidatorUse::new(settings.validator, started.elapsed()));
    }
    violations.extend(semantic::check_require_any(tree, &entry.semantics.require_any));
    if violations.is_empty() && !entry.semantics.evidence.is_empty() {
        let seen = settings.evidence.lock().unwrap_or_else(PoisonError::into_inner);
        violations.extend(semantic::check_evidence(tree, &entry.semantics.evidence, &seen));
    }
    if violations.is_empty() { Ok(()) } else { Err(HydrationError::invalid(violations)) }
}

/// Builds the typed value and asks the author's hook. Both are the author's code, so a panic in them is contained.
fn instantiate(tree: &Tree<'_>, entry: &Entry) -> Result<Box<dyn Instance>, HydrationError> {
    caught(|| {
        let instance = entry.behaviour.instantiate(tree).map_err(|error| HydrationError::unbuilt(&error))?;
        instance.validate().map_err(|violation| HydrationError::invalid(vec![violation]))?;
        Ok(instance)
    })
    .unwrap_or_else(|| Err(HydrationError::instantiate("The tool's arguments could not be built.")))
}

/// Rules of the policy look at frozen arguments through their text; such rules are rare, so it is read on demand.
impl ArgumentView for Hydrated {
    fn visit(&self, pointer: &str, each: &mut dyn FnMut(Scalar<'_>)) -> bool {
        let Ok(tree) = json::parse(&self.frozen, &Limits::UNBOUNDED) else { return false };
        match tree.pointer(pointer) {
            None => return false,
            Some(Tree::Array(items)) => items.iter().for_each(|item| each(scalar(item))),
            Some(value) => each(scalar(value)),
        }
        true
    }
}

fn scalar<'t>(tree: &'t Tree<'_>) -> Scalar<'t> {
    match tree {
        Tree::Null => Scalar::Null,
        Tree::Bool(flag) => Scalar::Bool(*flag),
        Tree::Int(number) => Scalar::Int(*number),
        Tree::UInt(number) => Scalar::UInt(*number),
        Tree::Float(number) => Scalar::Float(*number),
        Tree::String(text) => Scalar::String(text),
        Tree::Array(_) | Tree::Object(_) => Scalar::Other,
    }
}
