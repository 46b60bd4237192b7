//! [`Selector`]: finds the call that a delta of Chat Completions belongs to (rules R1 to R3 and R11 of `wire`).

use std::collections::{HashMap, HashSet};

use crate::wire::decode::arguments::Piece;
use crate::wire::decode::turn::Writer;
use crate::wire::formats::openai_chat::object_scan::ObjectScan;

/// The state for assigning deltas to calls.
#[derive(Default)]
pub(super) struct Selector {
    by_index: HashMap<i64, usize>,
    touched: Option<usize>,
    /// The indices at which the name of a call was repeated.
    named_again: HashSet<Option<i64>>,
    /// For each id that several calls share, the latest of them.
    latest: HashMap<String, usize>,
    /// Pairs of calls that share an id or an index: the earlier and the later one.
    shared: Vec<(usize, usize)>,
    /// The scans of the arguments of calls whose name was repeated.
    scans: HashMap<usize, ObjectScan>,
}

impl Selector {
    /// Returns the call of a delta, and starts it if it is new. Also takes over the id and the name. Returns `None` for
    /// an empty delta before the first call.
    pub(super) fn select(
        &mut self,
        index: Option<i64>,
        id: &str,
        name: &str,
        arguments: &Piece<'_>,
        is_empty: bool,
        turn: &mut Writer<'_>,
    ) -> Option<usize> {
        let found = self.find(index, id, name, turn).filter(|call| !renames(*call, name, turn));
        if found.is_some_and(|call| !name.is_empty() && name == turn.name(call)) {
            self.named_again.insert(index);
        }
        let call = match found {
            Some(call) if self.is_another(index, call, arguments, turn) => self.another(index, id, call, turn)?,
            Some(call) => {
                // R2, R3: the first id stays, and a name is appended if it comes before argument text or if the call
                // has none.
                turn.offer_id(call, id);
                if name != turn.name(call) {
                    turn.append_name(call, name);
                }
                call
            }
            None if id.is_empty() && name.is_empty() && is_empty => return None,
            None => turn.start(id, name)?,
        };
        // A delta that only continues a call (e) does not assign its index to the call.
        if let Some(index) = index
            && !(id.is_empty() && name.is_empty())
        {
            self.by_index.insert(index, call);
        }
        self.touched = Some(call);
        Some(call)
    }

    /// Whether a delta begins another call with the same id or index (R11): the name was repeated, the arguments of the
    /// call are complete, and new arguments begin.
    fn is_another(&mut self, index: Option<i64>, call: usize, arguments: &Piece<'_>, turn: &Writer<'_>) -> bool {
        // Checked first, because almost no delta repeats a name.
        self.named_again.contains(&index)
            && arguments.begins()
            && (turn.has_object(call) || self.scans.entry(call).or_default().is_whole(turn.argument_text(call)))
    }

    fn another(&mut self, index: Option<i64>, id: &str, before: usize, turn: &mut Writer<'_>) -> Option<usize> {
        self.named_again.remove(&index);
        let id = if id.is_empty() { turn.wire_id(before) } else { id }.to_owned();
        let name = turn.name(before).to_owned();
        let call = turn.start(&id, &name)?;
        self.shared.push((before, call));
        self.by_index.extend(index.map(|index| (index, call)));
        if !id.is_empty() {
            self.latest.insert(id, call);
        }
        Some(call)
    }

    /// Drops repeated calls: a server that sends a call twice means one call.
    pub(super) fn end(&mut self, turn: &mut Writer<'_>) {
        for (first, second) in std::mem::take(&mut self.shared) {
            turn.drop_repeat(first, second);
        }
    }

    /// Applies R1, first match wins. `None` means a new call.
    fn find(&self, index: Option<i64>, id: &str, name: &str, turn: &Writer<'_>) -> Option<usize> {
        let seen = if id.is_empty() { None } else { turn.call_by_id(id) };
        // If several calls share the id: the call at the index, or else the latest call.
        let at_index = || index.and_then(|index| self.by_index.get(&index)).filter(|call| turn.wire_id(**call) == id);
        let seen = seen.map(|first| match self.latest.get(id) {
            Some(latest) => *at_index().unwrap_or(latest),
            None => first,
        });
        // (a) a known id, unless the name differs.
        if let Some(call) = seen
            && (name.is_empty() || name == turn.name(call))
        {
            return Some(call);
        }
        // (b) a new id with a name.
        if seen.is_none() && !id.is_empty() && !name.is_empty() {
            return None;
        }
        match index {
            Some(index) => match self.by_index.get(&index) {
                // (c) a known index.
                Some(call) => Some(*call),
                // (d) an unknown index with an id or a name.
                None if !id.is_empty() || !name.is_empty() => None,
                // (e) an unknown index alone.
                None => self.touched,
            },
            // (f) no index: a name starts a call, unless the latest call still has no name.
            None if !name.is_empty() => self.touched.filter(|call| turn.name(*call).is_empty()),
            None => self.touched,
        }
    }
}

/// Whether a name begins another call: it differs, and argument text was received (R3).
fn renames(call: usize, name: &str, turn: &Writer<'_>) -> bool {
    let known = turn.name(call);
    !name.is_empty() && !known.is_empty() && known != name && turn.has_arguments(call)
}
