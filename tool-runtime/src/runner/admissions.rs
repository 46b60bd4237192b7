//! [`Admissions`]: what the policy says of the calls of a party before it sees their arguments, found out once for each tool.

use std::array;
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

/// How many tools of a party are known at most.
const SLOTS: usize = 64;

/// What holds for a party's runs while they have no labels. Asking the policy takes a twentieth of a small call.
///
/// A tool has its slot by its place in the catalog, and the first one that is called keeps it: a catalog may be large, and
/// there may be many parties.
pub(super) struct Admissions([OnceLock<Box<(usize, Admission)>>; SLOTS]);

impl Default for Admissions {
    fn default() -> Self {
        Self(array::from_fn(|_| OnceLock::new()))
    }
}

impl Admissions {
    #[inline]
    fn of(&self, index: usize, ask: impl Fn() -> Admission) -> Admission {
        let slot = self.0.get(index % SLOTS).map(|slot| slot.get_or_init(|| Box::new((index, ask()))));
        match slot.map(|known| &**known) {
            Some((tool, known)) if *tool == index => known.clone(),
            _ => ask(),
        }
    }
}

impl Run {
    /// What the policy says of calls of the tool.
    ///
    /// Labels come with what a run has read, and the definition of a published tool is its server's: there the policy is
    /// asked each time.
    #[inline]
    pub(super) fn admission(&self, entry: &Entry) -> Admission {
        let known = self.party().admissions.as_deref();
        match known.filter(|_| entry.published.is_none() && !self.remembered().is_labelled()) {
            Some(known) => known.of(entry.index, || {
                let context = self.options().context(self.id(), &[]);
                self.admission_of(entry, self.policy().admit(&context, &entry.subject()))
            }),
            None => self.admission_of(entry, self.ask(|policy, context| policy.admit(context, &entry.subject()))),
        }
    }

    fn admission_of(&self, entry: &Entry, decision: Decision) -> Admission {
        let terms = self.policy().terms_of(entry.spec.name.as_str(), entry.spec.effect);
        Admission { decision, terms }
    }
}
