//! Verification of the chain of anchors, and of exported anchors.

use std::collections::BTreeMap;

use crate::store::anchors::{Anchor, only};
use crate::store::finding::{Finding, Wrong};
use crate::store::verify::Verifier;
use crate::store::{Document, DocumentKind, Key, Query, Store, StoreError, pages};
use crate::tool::Hash;

/// How many anchors are read at a time; each has at most a thousand heads.
const ANCHORS: usize = 16;

/// Verifies the chain of anchors, and takes over their heads. Returns the exported anchors that the store does not have
/// unchanged.
pub(super) async fn anchors(
    store: &dyn Store,
    kept: &[Anchor],
    verifier: &mut Verifier,
) -> Result<Vec<Finding>, StoreError> {
    let mut lost = Vec::new();
    let mut kept: BTreeMap<_, _> = kept.iter().map(|anchor| (anchor.number, anchor)).collect();
    let (mut next, mut end) = (0, None::<Anchor>);
    let mut pages = pages(store, Query { limit: ANCHORS, ..Query::new(DocumentKind::Anchor) });
    loop {
        let page = match pages.next().await {
            Ok(Some(page)) => page,
            Ok(None) => break,
            Err(StoreError::Corrupt(_)) => {
                let wrong =
                    "it, or one of the next behind it, cannot be read; the anchors from here on were not checked";
                verifier.note(Wrong::Anchor { number: next, wrong });
                kept.values().for_each(|anchor| verifier.expect(anchor));
                return Ok(lost);
            }
            Err(error) => return Err(error),
        };
        for listed in page {
            let Document::Anchor(anchor) = listed.document else { continue };
            let (number, anchor) = (anchor.number, *anchor);
            let mut wrong = |number, wrong| verifier.note(Wrong::Anchor { number, wrong });
            if listed.key != Key::anchor(number) {
                wrong(number, "it is kept under another number");
                continue;
            }
            if number > next {
                wrong(next, "it was removed, and a later one is there");
            } else if number < next || anchor.previous != end.as_ref().map_or(Hash([0; 32]), |end| end.hash) {
                wrong(number, "it does not follow the anchor before it: one of them was replaced");
            }
            if let Some(kept) = kept.remove(&number).filter(|kept| kept.hash != anchor.hash) {
                verifier.expect(kept);
                let wrong = "it is not the one that was exported: the anchors were made anew";
                lost.push(Wrong::Anchor { number, wrong }.into());
            }
            verifier.expect(&anchor);
            (next, end) = (number + 1, Some(anchor));
        }
    }
    for (number, anchor) in kept {
        verifier.expect(anchor);
        let wrong = "it was exported and is not in the store: the last anchors were removed";
        lost.push(Wrong::Anchor { number, wrong }.into());
    }
    let last = match only(store, Key::last_anchor()).await {
        Err(StoreError::Corrupt(_)) => None,
        last => last?,
    };
    let mut wrong = |number, wrong| verifier.note(Wrong::Anchor { number, wrong });
    match last {
        None if next == 0 => {}
        Some(last) if end.as_ref() == Some(&last) => {}
        // Another process made this anchor after the pages were read.
        Some(last) if last.number >= next && only(store, Key::anchor(last.number)).await?.as_ref() == Some(&last) => {}
        Some(last) if last.number >= next => wrong(next, "it was removed, but the stored end of the anchors names it"),
        _ => wrong(next.saturating_sub(1), "the end of the anchors is not this one: it was changed"),
    }
    Ok(lost)
}
