//! Verification of the chain of anchors, and of exported anchors.

use std::collections::BTreeMap;

use crate::store::anchors::only;
use crate::store::document::Anchor;
use crate::store::finding::{Finding, Wrong};
use crate::store::stored_anchors::StoredAnchors;
use crate::store::verify::verifier::Verifier;
use crate::store::{Key, Store, StoreError};
use crate::tool::Hash;

/// Verifies the chain of anchors, and passes their heads to the verifier. Returns a finding for each exported anchor
/// that the store lacks or that differs in the store.
pub(super) async fn anchors(
    store: &dyn Store,
    kept: &[Anchor],
    verifier: &mut Verifier,
) -> Result<Vec<Finding>, StoreError> {
    let mut lost = Vec::new();
    let mut kept = exported(kept);
    // The hash of the anchor before the next one. `None` if that anchor cannot be read.
    let (mut next, mut before, mut end) = (0, Some(Hash([0; 32])), None::<Anchor>);
    let mut read = StoredAnchors::of(store);
    while let Some(read) = read.next().await? {
        let anchor = match read {
            Ok(anchor) => anchor,
            Err(finding) => {
                if let Some(number) = finding.anchor().filter(|number| *number >= next) {
                    let exported = kept.remove(&number).unwrap_or_default();
                    exported.iter().for_each(|anchor| verifier.expect(anchor));
                    // If several anchors of this number were exported, the hash of the unreadable one is unknown.
                    let hash = if let [one] = exported[..] { Some(one.hash) } else { None };
                    (next, before, end) = (number.saturating_add(1), hash, None);
                }
                verifier.note(finding);
                continue;
            }
        };
        let number = anchor.number;
        let mut wrong = |number, wrong| verifier.note(Wrong::Anchor { number, wrong });
        if number > next {
            wrong(next, "it was removed, but a later anchor exists");
        } else if number < next || before.is_some_and(|before| anchor.previous != before) {
            wrong(number, "it does not follow the anchor before it: one of them was replaced");
        }
        for kept in kept.remove(&number).into_iter().flatten() {
            if kept.hash == anchor.hash {
                continue;
            }
            verifier.expect(kept);
            let wrong = "it differs from the exported anchor: the anchors were recreated";
            lost.push(Wrong::Anchor { number, wrong }.into());
        }
        verifier.expect(&anchor);
        (next, before, end) = (number.saturating_add(1), Some(anchor.hash), Some(anchor));
    }
    for anchor in kept.into_values().flatten() {
        let number = anchor.number;
        verifier.expect(anchor);
        let wrong = "it was exported and is not in the store: the last anchors were removed";
        lost.push(Wrong::Anchor { number, wrong }.into());
    }
    let last = match only(store, Key::last_anchor()).await {
        Err(StoreError::Corrupt(_)) => {
            let (number, wrong) =
                (next.saturating_sub(1), "the copy of this anchor at the end of the anchors cannot be read");
            verifier.note(Wrong::Anchor { number, wrong });
            return Ok(lost);
        }
        last => last?,
    };
    let mut wrong = |number, wrong| verifier.note(Wrong::Anchor { number, wrong });
    match last {
        None if next == 0 => {}
        Some(last) if end.as_ref() == Some(&last) => {}
        // The last anchor cannot be read; this is its copy.
        Some(last) if end.is_none() && next > 0 && last.number == next - 1 => {
            if before.is_some_and(|hash| hash != last.hash) {
                wrong(last.number, "the end of the anchors is not this anchor: it was changed");
            }
            verifier.expect(&last);
        }
        // Another process made this anchor after the pages were read.
        Some(last) if last.number >= next && is_there(store, &last).await? => {}
        Some(last) if last.number >= next => wrong(next, "it was removed, but the stored end of the anchors names it"),
        _ => wrong(next.saturating_sub(1), "the end of the anchors is not this anchor: it was changed"),
    }
    Ok(lost)
}

/// Groups exported anchors by their numbers, without duplicates. Several anchors of one number differ if the store went
/// back to an earlier state, its anchors were recreated, and the export was continued.
fn exported(kept: &[Anchor]) -> BTreeMap<u64, Vec<&Anchor>> {
    let mut exported = BTreeMap::<_, Vec<_>>::new();
    for anchor in kept {
        let same = exported.entry(anchor.number).or_default();
        if !same.contains(&anchor) {
            same.push(anchor);
        }
    }
    exported
}

async fn is_there(store: &dyn Store, last: &Anchor) -> Result<bool, StoreError> {
    match only(store, Key::anchor(last.number)).await {
        Err(StoreError::Corrupt(_)) => Ok(false),
        read => Ok(read?.as_ref() == Some(last)),
    }
}
