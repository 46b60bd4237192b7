//! Hydration: parses and validates a call as the model wrote it, and builds the tool with its typed arguments. The
//! result is a [`Hydrated`] tool, or errors that name the wrong arguments.
//!
//! The argument text is parsed once into a borrowed tree. The validator and the typed value both read this tree, so the
//! tool is built from exactly the value that the schema accepted.

mod frozen;
mod mistakes;
mod provenance;
pub(crate) mod repair;
mod semantic;
mod settings;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

pub use frozen::Hydrated;
pub(crate) use frozen::{Frozen, Treatment};
pub(crate) use provenance::FailedStage;
pub(crate) use provenance::HydrationError;
pub use provenance::HydrationResult;
use provenance::ValidatorUse;
pub(crate) use semantic::EvidenceSet;
pub(crate) use settings::Settings;

use crate::call::{ArgumentChangeKind, Ends, JsonText, Outcome, RecordedRepair, RepairUse, ToolCall, Violation};
use crate::catalog::{CompiledCatalog, Entry, ToolCatalog};
use crate::contain::caught;
use crate::hydrate::frozen::{Forms, Ready};
use crate::hydrate::mistakes::{together, with_the_authors};
use crate::hydrate::semantic::WithoutEvidence;
use crate::json::{self, Limits, Tree, canonical};
use crate::policy::{RunPolicy, ToolPolicy};
use crate::redact;
use crate::registration::Instance;
use crate::schema;
use crate::schema::validator::JsonSchemaValidator;
use crate::text::pointer;
use crate::tool::ToolEffect;

/// A call that could not be hydrated, with its error.
pub(crate) struct Unhydrated {
    pub(crate) call: ToolCall,
    pub(crate) error: HydrationError,
    /// The changes to the call before it failed.
    pub(crate) treatment: Treatment,
}

/// Hydrates one call.
#[inline]
pub(crate) fn hydrate(call: ToolCall, entry: Arc<Entry>, settings: &Settings<'_>) -> Result<Hydrated, Box<Unhydrated>> {
    let mut treatment = Treatment::default();
    match stages(&call, &entry, settings, &mut treatment) {
        Ok(Built { instance, masked, read, fingerprint, forms }) => {
            let (run, limits) = (Arc::clone(settings.run), settings.of_tool);
            let ends = Ends::default();
            let frozen = Frozen { call, entry, run, limits, masked, treatment, read, fingerprint, forms, ends };
            Ok(Hydrated { frozen: Arc::new(frozen), instance: Ready(Some(instance)) })
        }
        Err(error) => Err(Box::new(Unhydrated { call, error, treatment })),
    }
}

/// Like [`hydrate`], but also returns how the call was changed and checked.
pub(crate) fn hydrate_with_provenance(call: ToolCall, entry: &Arc<Entry>, settings: &Settings<'_>) -> HydrationResult {
    let hydrated = hydrate(call.clone(), Arc::clone(entry), settings);
    let treatment = match &hydrated {
        Ok(hydrated) => &hydrated.frozen.treatment,
        Err(unhydrated) => &unhydrated.treatment,
    };
    let (repaired, used, repair) = (
        treatment.repaired.clone(),
        treatment.used.as_deref().cloned(),
        treatment.repair.as_deref().map(RecordedRepair::from),
    );
    HydrationResult {
        tool: Some(entry.spec.name.clone()),
        definition_hash: Some(entry.spec.definition_hash),
        repaired,
        validated: hydrated.as_ref().ok().map(|hydrated| Arc::clone(hydrated.frozen.canonical())),
        validator: used,
        repair,
        ..HydrationResult::of(call, hydrated.map_err(|unhydrated| unhydrated.error))
    }
}

impl HydrationResult {
    /// Hydrates a call as a runner with this catalog and policy would, without running the tool. Use it to check the
    /// edited arguments of an approval before sending them, or to explain a policy. The policy makes no decision on the
    /// call, every value in the arguments counts as evidence, and only the built-in repairers are available.
    ///
    /// ```
    /// use tool_runtime::hydrate::HydrationResult;
    /// use tool_runtime::{ToolCall, ToolCatalog, ToolError, ToolPolicy, tool};
    ///
    /// /// Adds.
    /// #[tool(name = "math__add", effect = read_only, redact = ["$"])]
    /// fn add(
    ///     /// One.
    ///     a: i64,
    /// ) -> Result<i64, ToolError> { Ok(a) }
    ///
    /// let catalog = ToolCatalog::builder().tool::<add>().build()?;
    /// let policy = ToolPolicy::allow(["math__add"]);
    /// let edited = |text| HydrationResult::preview(&catalog, &policy, ToolCall::text("", "math__add", text));
    /// assert!(edited(r#"{"a":2}"#).hydrated.is_ok());
    /// assert_eq!(edited(r#"{"a":"two"}"#).hydrated.unwrap_err().errors[0].pointer, "/a");
    /// # Ok::<(), tool_runtime::error::BuildError>(())
    /// ```
    #[must_use]
    pub fn preview(catalog: &ToolCatalog, policy: &ToolPolicy, call: ToolCall) -> Self {
        let Some(entry) = catalog.entry(&call.name) else {
            return Self::refused(&call, FailedStage::Resolve, Outcome::Unavailable, None);
        };
        let compiled = CompiledCatalog::unprepared(Arc::new(JsonSchemaValidator));
        let compiled = compiled.prepared(catalog, policy, &mut Vec::new());
        let policy = RunPolicy::new(policy.clone());
        let mut seen = EvidenceSet::new();
        seen.insert_text(call.arguments());
        let settings = Settings {
            depth: policy.argument_depth(),
            of_tool: policy.limits_of(&call.name),
            run: &Arc::default(),
            compiled: &compiled,
            lists: &|_| true,
            call_id_bytes: policy.call_id_bytes(),
            repairers: &[],
            repairs: &|repairer| policy.repairs(repairer),
            evidence: Some(&Mutex::new(seen)),
            provenance: true,
        };
        hydrate_with_provenance(call, entry, &settings)
    }
}

struct Built {
    instance: Box<dyn Instance>,
    masked: Option<JsonText>,
    read: Option<Arc<str>>,
    fingerprint: u64,
    forms: OnceLock<Box<Forms>>,
}

fn stages(
    call: &ToolCall,
    entry: &Arc<Entry>,
    settings: &Settings<'_>,
    treatment: &mut Treatment,
) -> Result<Built, HydrationError> {
    if call.id.as_str().len() > settings.call_id_bytes {
        let message = format!("The call id is longer than {} bytes.", settings.call_id_bytes);
        return Err(HydrationError::parse(Outcome::LimitExceeded, message));
    }
    let limits = Limits { bytes: settings.of_tool.argument_bytes, depth: settings.depth };
    let mut text = call.arguments.text();
    let sensitive = &entry.spec.sensitive;
    let repaired;
    let (mut tree, is_line) = match json::parse_line(text, &limits) {
        Ok(read) => read,
        Err(error) => {
            repaired = repair(text, &error, settings, treatment)?;
            treatment.changes.push(redact::repaired(text, &repaired, sensitive));
            text = &repaired;
            json::parse_line(text, &limits).map_err(|error| HydrationError::unparsed(&error))?
        }
    };
    let trimmed = entry.identifiers.trim(&mut tree);
    // The model's text is kept, unless the arguments were changed, or the text contains line breaks, which would split
    // the lines of logs and streams.
    let is_kept = is_line && !trimmed;
    let canonical = || Arc::<str>::from(canonical::to_text(&tree));
    if trimmed {
        treatment.changes.extend(redact::changes(ArgumentChangeKind::Trimmed, text, &canonical(), sensitive));
    }
    let built = validate(&tree, entry, settings, treatment).and_then(|found| match found {
        None => instantiate(&tree, entry),
        Some(invalid) => Err(with_the_authors(invalid, &tree, entry)),
    });
    let shown = || JsonText::known(if is_kept { Arc::clone(text) } else { canonical() });
    let instance = built.map_err(|error| without_secrets(error, sensitive, shown))?;
    // A call with effects needs the canonical text, from which its idempotency key is made.
    let asked = settings.provenance || entry.spec.effect != ToolEffect::ReadOnly;
    let (read, forms) = if is_kept && !asked {
        (treatment.repaired.clone(), OnceLock::new())
    } else {
        let canonical = canonical();
        let read = if is_kept { treatment.repaired.clone() } else { Some(Arc::clone(&canonical)) };
        (read, Box::new(Forms::of(&tree, canonical, entry)).into())
    };
    let masked = (!sensitive.is_empty()).then(|| redact::mask_arguments(&tree, sensitive));
    Ok(Built { instance, masked, read, fingerprint: entry.effective.fingerprint(&tree), forms })
}

/// Returns the repaired text; if no repairer succeeds, returns the error of the original text.
fn repair(
    text: &str,
    error: &json::ParseError,
    settings: &Settings<'_>,
    treatment: &mut Treatment,
) -> Result<Arc<str>, HydrationError> {
    let attempt = settings.repair(text, error).ok_or_else(|| HydrationError::unparsed(error))?;
    let repair::Repaired { repairer, before, after, text } = attempt;
    treatment.repair = Some(Box::new(RepairUse { repairer, before, after }));
    let repaired = Arc::<str>::from(text);
    treatment.repaired = Some(Arc::clone(&repaired));
    Ok(repaired)
}

/// Adds the arguments to the error if the tool has no sensitive argument, and removes names inside sensitive arguments.
fn without_secrets(
    mut error: HydrationError,
    sensitive: &[String],
    shown: impl FnOnce() -> JsonText,
) -> HydrationError {
    // Member names in a sensitive argument may be secret too.
    error.violations.iter_mut().for_each(|violation| cut_at_sensitive(&mut violation.pointer, sensitive));
    // Arguments that break the schema may contain a sensitive value under another name.
    error.masked = sensitive.is_empty().then(shown);
    error
}

/// Checks the schema, the semantic rules and the evidence, and returns all violations in one error. `None` if there are
/// none.
fn validate(
    tree: &Tree<'_>,
    entry: &Entry,
    settings: &Settings<'_>,
    treatment: &mut Treatment,
) -> Result<Option<HydrationError>, HydrationError> {
    let mut violations = Vec::new();
    entry.identifiers.check(tree, &mut violations);
    let blank = violations.len();
    if entry.spec.no_schema.is_none() {
        // The time is measured only if the caller requests the provenance.
        let started = settings.provenance.then(Instant::now);
        let mode = settings
            .compiled
            .check(entry, tree, &mut violations)
            .ok_or_else(|| HydrationError::instantiate("The tool's schema cannot be checked. The call did not run."))?;
        treatment.is_validated = true;
        let used = started.map(|started| ValidatorUse::new(settings.compiled, mode, started.elapsed()));
        treatment.used = used.map(Box::new);
    }
    if !entry.spec.require_any.is_empty()
        && let Some(nothing) = semantic::check_require_any(tree, &entry.spec.require_any)
    {
        // The schema expresses `require_any` as `minProperties`, whose violation would repeat the next one.
        violations.retain(|one| !(one.pointer.is_empty() && one.keyword == "minProperties"));
        violations.push(nothing);
    }
    let without_evidence = if let Some(evidence) = settings.evidence.filter(|_| !entry.spec.evidence.is_empty()) {
        let seen = evidence.lock().unwrap_or_else(PoisonError::into_inner);
        semantic::check_evidence(tree, &entry.spec.evidence, &seen, settings.lists)
    } else {
        WithoutEvidence::default()
    };
    if violations.is_empty() && without_evidence.violations.is_empty() {
        return Ok(None);
    }
    Ok(Some(together(violations, blank, without_evidence, &entry.spec.evidence, settings.lists)))
}

/// Builds the typed value and calls the author's `validate` hook. Both are the author's code, so a panic in them is
/// caught.
fn instantiate(tree: &Tree<'_>, entry: &Entry) -> Result<Box<dyn Instance>, HydrationError> {
    caught(|| {
        let has_schema = entry.spec.no_schema.is_none();
        let instance =
            entry.behaviour.instantiate(tree).map_err(|error| HydrationError::unbuilt(&error, has_schema))?;
        instance.validate().map_err(|violation| HydrationError::invalid(vec![located(violation, entry)]))?;
        Ok(instance)
    })
    .unwrap_or_else(|| Err(HydrationError::instantiate("The tool's arguments could not be built.")))
}

/// Moves a violation to the whole call if the author's hook names an argument that the tool does not have. Otherwise
/// the pointer would mislead the model.
fn located(mut violation: Violation, entry: &Entry) -> Violation {
    let known = schema::names_at(&entry.spec.input_schema, &[]);
    let first = pointer::split(&violation.pointer).map(|mut segments| segments.next());
    if !first.is_some_and(|first| first.is_none_or(|name| known.contains(&*name))) {
        let tool = entry.spec.name.as_str();
        tracing::error!(tool, "a validation hook names an argument that the tool does not have");
        violation.pointer.clear();
    }
    violation
}

/// Cuts a pointer after the name of a sensitive argument.
fn cut_at_sensitive(pointer: &mut String, sensitive: &[String]) {
    let first = pointer::split(pointer).and_then(|mut segments| segments.next());
    let cut = first.filter(|first| sensitive.iter().any(|name| name == first)).map(|first| pointer::segment(&first));
    if let Some(cut) = cut {
        *pointer = cut;
    }
}
