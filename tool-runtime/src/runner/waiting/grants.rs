//! Lists and revokes the grants of a tenant, and finds the grant for a call that requires an approval.

use std::sync::Arc;

use crate::call::{Decider, Decision, DecisionError, Verdict, VoidGrant};
use crate::contain::discard;
use crate::hydrate::Hydrated;
use crate::runner::gate::open::OpenCall;
use crate::runner::gate::stages;
use crate::runner::report::contained::Contained;
use crate::runner::shared::Shared;
use crate::store::grants::{self, GrantQuery};
use crate::store::pages::Search;
use crate::store::{Document, DocumentKind, Key, Query, Store, StoreError, StoredGrant, transact};

/// See [`ToolRunner::grants`](crate::runner::ToolRunner::grants).
pub(in crate::runner) async fn of_tenant(
    shared: &Shared,
    tenant: Option<&str>,
) -> Result<Vec<StoredGrant>, StoreError> {
    let now = shared.clock.now();
    let mut grants = listed(&shared.store, None).await?;
    grants.retain(|grant| grant.tenant.as_deref() == tenant && !grant.is_expired(now));
    Ok(grants)
}

/// See [`ToolRunner::revoke`](crate::runner::ToolRunner::revoke).
pub(in crate::runner) async fn revoke(
    shared: &Shared,
    grant: &StoredGrant,
    decider: &Decider,
) -> Result<bool, StoreError> {
    let (keys, change) = grants::revocation(grant, decider);
    transact(&shared.store, keys, change).await
}

/// The grant that applies to a call.
#[derive(Default)]
pub(in crate::runner) struct Remembered {
    /// The key and the decision of the grant that decides on the call.
    pub(in crate::runner) decided: Option<(Key, Decision)>,
    /// A grant that would permit the call, but whose decider may no longer decide on it.
    pub(in crate::runner) void: Option<VoidGrant>,
}

/// Finds the grant for a call that requires an approval. If the store fails, returns no grant, so that the call waits
/// for a person.
pub(in crate::runner) fn remembered<'a>(
    open: &'a OpenCall,
    hydrated: &Hydrated,
) -> impl Future<Output = Remembered> + Send + use<'a> {
    let frozen = &hydrated.frozen;
    let (spec, repaired) = (Arc::clone(&frozen.entry.spec), hydrated.repaired());
    let (digest, arguments) = (frozen.argument_digest(), Arc::clone(frozen.canonical()));
    let needs_several = stages::required_approvals(open.run(), hydrated) > 1;
    async move {
        let run = open.run();
        let options = run.options();
        // A grant does not cover arguments that were repaired.
        if repaired {
            return Remembered::default();
        }
        let scope = Key::grants_of(spec.name.as_str(), options.tenant.as_deref());
        let found = match listed(&run.shared().store, Some(scope)).await {
            Ok(found) => found,
            Err(error) => {
                discard(run.store_unread(error));
                return Remembered::default();
            }
        };
        let labels = run.labels();
        let asked = GrantQuery {
            run_id: run.id(),
            conversation_id: options.conversation.as_deref(),
            principal: options.principal.as_deref(),
            tenant: options.tenant.as_deref(),
            caller: &options.caller,
            is_script: options.is_script,
            labels: &labels,
            definition_hash: spec.definition_hash,
            effect: open.draft.effect().unwrap_or(spec.effect),
            digest,
            arguments: &arguments,
            now: run.shared().clock.now(),
        };
        let grants: Vec<_> = found.iter().filter(|grant| grant.is_for(&asked)).collect();
        let decided = |grant: &StoredGrant| {
            let decision = Decision { verdict: grant.verdict, rule: format!("grant:{}", grant.id).into() };
            (grant.key(), decision)
        };
        // A grant that denies the call overrides every grant that allows it.
        if let Some(denial) = grants.iter().find(|grant| grant.verdict == Verdict::Deny) {
            return Remembered { decided: Some(decided(denial)), void: None };
        }
        let mut void = None;
        for grant in grants {
            // The policy may have changed since the grant was made, so its decider is checked again. A grant has only
            // one decider, so it never covers a call that needs several approvals.
            let several = needs_several.then_some(DecisionError::SeveralDeciders);
            match run.bars(spec.name.as_str(), &grant.decider).or(several) {
                None => return Remembered { decided: Some(decided(grant)), void: None },
                Some(why) => void = Some(VoidGrant { id: Arc::clone(&grant.id), why }),
            }
        }
        Remembered { decided: None, void }
    }
}

/// Reads all grants of one scope, or of all scopes.
async fn listed(store: &Contained<dyn Store>, scope: Option<Arc<str>>) -> Result<Vec<StoredGrant>, StoreError> {
    let mut search = Search::of(Query { scope, ..Query::new(DocumentKind::Grant) });
    let mut grants = Vec::new();
    while let Some(page) = search.next(store).await? {
        grants.extend(page.into_iter().filter_map(|listed| match listed.document {
            Document::Grant(grant) => Some(*grant),
            _ => None,
        }));
    }
    search.end()?;
    Ok(grants)
}
