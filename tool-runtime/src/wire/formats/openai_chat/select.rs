//! Which call a delta of Chat Completions belongs to (R1 to R3).

use std::collections::HashMap;

use crate::wire::decode::turn::Writer;

/// The state for attributing deltas to calls.
#[derive(Default)]
pub(super) struct Selector {
    by_index: HashMap<i64, usize>,
    touched: Option<usize>,
}

impl Selector {
    /// Returns the call of a delta, starts it if it is new, and takes over its id and name. `None` for a delta
    /// without content before any call began.
    pub(super) fn select(
        &mut self,
        index: Option<i64>,
        id: &str,
        name: &str,
        no_arguments: bool,
        turn: &mut Writer<'_>,
    ) -> Option<usize> {
        let found = self.find(index, id, name, turn).filter(|call| !renames(*call, name, turn));
        let call = match found {
            Some(call) => {
                // R2, R3: the first id stays; before argument text, or when there was none, a name is appended.
                turn.offer_id(call, id);
                if name != turn.name(call) {
                    turn.append_name(call, name);
                }
                call
            }
            None if id.is_empty() && name.is_empty() && no_arguments => return None,
            None => turn.start(id, name)?,
        };
        // A delta that only continues a call (e) does not make its index known.
        if let Some(index) = index
            && !(id.is_empty() && name.is_empty())
        {
            self.by_index.insert(index, call);
        }
        self.touched = Some(call);
        Some(call)
    }

    /// The first match wins (R1); `None` means a new call.
    fn find(&self, index: Option<i64>, id: &str, name: &str, turn: &Writer<'_>) -> Option<usize> {
        let seen = if id.is_empty() { None } else { turn.call_by_id(id) };
        // (a) a seen id, unless the name differs.
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
            // (f) no index: a name starts a call, unless the latest one still has none.
            None if !name.is_empty() => self.touched.filter(|call| turn.name(*call).is_empty()),
            None => self.touched,
        }
    }
}

/// Whether a name begins another call: it differs, and argument text came (R3).
fn renames(call: usize, name: &str, turn: &Writer<'_>) -> bool {
    let known = turn.name(call);
    !name.is_empty() && !known.is_empty() && known != name && turn.has_arguments(call)
}
