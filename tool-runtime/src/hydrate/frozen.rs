//! [`Frozen`]: a call whose arguments passed every check, and forms of the arguments that few calls need.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::call::{ArgumentChange, CallId, Ends, HydratedCall, JsonText, RepairUse, RunFields, ToolCall};
use crate::catalog::Entry;
use crate::contain::discard;
use crate::hydrate::provenance::ValidatorUse;
use crate::json::{self, Limits, Tree, canonical};
use crate::policy::ToolLimits;
use crate::registration::Instance;
use crate::tool::{Digested, Hash, ToolName};

/// A call whose arguments were parsed, validated and built into the tool's type. Opaque: only
/// [`Run::exec_hydrated`](crate::runner::Run::exec_hydrated) can run it.
///
/// [`HydrationResult`](crate::hydrate::HydrationResult) has an example.
pub struct Hydrated {
    /// Behind a pointer, because every stage of the runner moves it.
    pub(crate) frozen: Arc<Frozen>,
    pub(super) instance: Ready,
}

impl Hydrated {
    /// Returns the call as it arrived.
    #[must_use]
    pub fn call(&self) -> &ToolCall {
        &self.frozen.call
    }

    /// Returns the SHA-256 of the arguments as canonical JSON.
    #[must_use]
    pub fn digest(&self) -> Hash {
        self.frozen.argument_digest()
    }

    /// Returns whether the arguments were repaired before they could be parsed.
    #[must_use]
    pub fn repaired(&self) -> bool {
        self.frozen.treatment.repair.is_some()
    }

    /// Returns the arguments with the sensitive ones masked, as JSON.
    #[must_use]
    pub fn masked_arguments(&self) -> &str {
        self.frozen.masked_text()
    }

    /// Returns the call. The first call of this method also returns the typed value.
    pub(crate) fn parts(&mut self) -> (&Arc<Frozen>, Option<Box<dyn Instance>>) {
        (&self.frozen, self.instance.0.take())
    }
}

impl fmt::Debug for Hydrated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hydrated").field("tool", &self.frozen.entry.spec.name).finish_non_exhaustive()
    }
}

/// A hydrated call, which the stages of the runner, the tool's context and the guard against repeated calls share.
pub(crate) struct Frozen {
    pub(crate) call: ToolCall,
    pub(crate) entry: Arc<Entry>,
    /// The run that hydrated the call. No other run may execute it, and no two runs share this value.
    pub(crate) run: Arc<RunFields>,
    /// The limits of the call under the policy at the time of hydration.
    pub(crate) limits: ToolLimits,
    /// The arguments with the sensitive ones masked; `None` if none are sensitive.
    pub(super) masked: Option<JsonText>,
    /// The changes to the call, for its record.
    pub(crate) treatment: Treatment,
    /// The argument text, if it is not the call's own text: repaired or canonical text.
    pub(super) read: Option<Arc<str>>,
    pub(super) fingerprint: u64,
    /// Boxed, because few calls need these forms.
    pub(super) forms: OnceLock<Box<Forms>>,
    pub(crate) ends: Ends,
}

/// The changes to a call during hydration. Repairs and details are boxed, because few calls have them.
#[derive(Default)]
pub(crate) struct Treatment {
    pub(super) repaired: Option<Arc<str>>,
    /// The differences between the arguments and the model's text, for the record.
    pub(crate) changes: Vec<ArgumentChange>,
    /// Whether the validator ran.
    pub(crate) is_validated: bool,
    /// The validator and its duration; `None` unless the caller requests them.
    pub(super) used: Option<Box<ValidatorUse>>,
    pub(crate) repair: Option<Box<RepairUse>>,
}

/// A typed value that has not run yet. Its destructor is the author's code, so a panic in it is caught.
pub(super) struct Ready(pub(super) Option<Box<dyn Instance>>);

impl Drop for Ready {
    fn drop(&mut self) {
        // Nearly always the value was taken; only a remaining value needs the guard against panics.
        if self.0.is_some() {
            discard(self.0.take());
        }
    }
}

/// The forms of arguments that are computed on demand.
#[derive(Default)]
pub(super) struct Forms {
    canonical: OnceLock<Arc<str>>,
    digest: OnceLock<Hash>,
    /// `None` if it equals the canonical text.
    effective: OnceLock<Option<Arc<str>>>,
    effective_digest: OnceLock<Hash>,
}

impl Forms {
    /// Computes the texts while the tree exists, for a call that will need them.
    pub(super) fn of(tree: &Tree<'_>, canonical: Arc<str>, entry: &Entry) -> Self {
        let effective = entry.effective.of_arguments(tree).map(Into::into);
        Self { canonical: canonical.into(), effective: effective.into(), ..Self::default() }
    }
}

impl Frozen {
    /// The arguments as canonical text with every digit.
    pub(crate) fn canonical(&self) -> &Arc<str> {
        self.forms().canonical.get_or_init(|| canonical::to_text(&self.tree()).into())
    }

    /// The SHA-256 of the canonical text.
    pub(crate) fn argument_digest(&self) -> Hash {
        *self.forms().digest.get_or_init(|| Hash::sha256(&**self.canonical()))
    }

    /// The arguments that a person decides on: the canonical text, or the masked arguments if some are sensitive.
    pub(crate) fn decided_on(&self) -> JsonText {
        if self.entry.spec.sensitive.is_empty() {
            return JsonText::known(Arc::clone(self.canonical()));
        }
        self.masked()
    }

    /// The arguments with the sensitive ones masked.
    pub(crate) fn masked(&self) -> JsonText {
        self.masked.clone().unwrap_or_else(|| JsonText::known(Arc::clone(self.text())))
    }

    /// Like [`masked`](Self::masked), but borrowed.
    pub(super) fn masked_text(&self) -> &str {
        self.masked.as_ref().map_or(self.text(), JsonText::get)
    }

    fn forms(&self) -> &Forms {
        self.forms.get_or_init(Box::default)
    }

    /// The argument text.
    fn text(&self) -> &Arc<str> {
        self.read.as_ref().unwrap_or_else(|| self.call.arguments.text())
    }

    /// The arguments, parsed again.
    fn tree(&self) -> Tree<'_> {
        // The text was parsed before, within narrower limits, so this does not fail.
        json::parse(self.text(), &Limits::UNBOUNDED).unwrap_or_default()
    }
}

impl HydratedCall for Frozen {
    fn id(&self) -> &CallId {
        &self.call.id
    }

    fn tool_name(&self) -> &ToolName {
        &self.entry.spec.name
    }

    fn run(&self) -> &RunFields {
        &self.run
    }

    fn ends(&self) -> &Ends {
        &self.ends
    }
}

impl Digested for Frozen {
    fn tool(&self) -> &str {
        self.entry.spec.name.as_str()
    }

    fn read(&self) -> &str {
        self.text()
    }

    fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// An explicit default and an absent argument give the same text, because they mean the same call.
    fn effective(&self) -> &str {
        let other =
            self.forms().effective.get_or_init(|| self.entry.effective.of_arguments(&self.tree()).map(Into::into));
        other.as_ref().unwrap_or_else(|| self.canonical())
    }

    fn effective_digest(&self) -> Hash {
        *self.forms().effective_digest.get_or_init(|| Hash::sha256(self.effective()))
    }
}
