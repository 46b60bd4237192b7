//! [`Admissions`]: what the policy says of the calls of a party before it sees their arguments, found out once for each tool.

use std::sync::OnceLock;

use crate::call::Decision;
use crate::catalog::Entry;
use crate::policy::Terms;
use crate::runner::Run;

/// What the policy says of every call of one tool, whatever its arguments are.
#[derive(Clone)]
pub(super) struct Admission {
    pub(super) decision: Decision,
    pub(super) terms: Terms,
}

/// By the place of a tool in the catalog: what holds for a party's runs while they have no labels. Asking the policy took a
/// tenth of a small call.
pub(super) struct Admissions(Box<[OnceLock<Box<Admission>>]>);

impl Admissions {
    pub(super) fn new(tools: usize) -> Self {
        Self((0..tools).map(|_| OnceLock::new()).collect())
    }

    /// How many tools it has room for.
    pub(super) const fn tools(&self) -> usize {
        self.0.len()
    }
}

impl Run {
    /// What the policy says of calls of the tool.
    ///
    /// Labels come and go with what a run has read, and the definition of a published tool with its server: there the
    /// policy is asked each time.
    #[inline]
    pub(super) fn admission(&self, entry: &Entry) -> Admission {
        let known = self
            .party()
            .admissions
            .as_deref()
            .filter(|_| entry.published.is_none() && !self.remembered().is_labelled());
        match known.and_then(|known| known.0.get(entry.index)) {
            Some(known) => Admission::clone(known.get_or_init(|| {
                let context = self.options().context(self.id(), &[]);
                Box::new(self.admission_of(entry, self.policy().admit(&context, &entry.subject())))
            })),
            None => self.admission_of(entry, self.ask(|policy, context| policy.admit(context, &entry.subject()))),
        }
    }

    fn admission_of(&self, entry: &Entry, decision: Decision) -> Admission {
        let terms = self.policy().terms_of(entry.spec.name.as_str(), entry.spec.effect);
        Admission { decision, terms }
    }
}
