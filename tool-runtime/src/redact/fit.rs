//! [`fit`]: cuts a value to its size limit, after it was written through its allowlist.
//!
//! Whole items of arrays and whole entries of maps are left out, from the end. An item that does not fit is itself cut
//! if much of the room would stay empty otherwise. Members that the schema names stay. A string is cut only if it is
//! longer than its share of the room. Each cut is counted, and has a mark in the text for models. A value whose schema
//! a cut would break is written whole or not at all.

use std::ops::Range;

use crate::json::Tree;
use crate::media::LeftOut;
use crate::redact::plan::{MemberMatch, Plan};
use crate::text::pointer;

/// A part of a value that the writer left out: the start of its array, map or string, and the number of items or bytes.
pub(super) type Unwritten = (usize, usize);

/// A value that fits its limit.
pub(super) struct Fitted {
    /// The value, without marks.
    pub(super) data: String,
    /// The value with a mark at each cut.
    pub(super) marked: String,
    pub(super) left_out: LeftOut,
}

/// A place in a schema: the names on the path to it. `*` stands for the items of an array or the entries of a map.
pub(super) type SchemaPath = Vec<Box<str>>;

const ANY: &str = "*";

/// Returns the place in the schema of the value at a pointer.
pub(super) fn place(pointer: &str, value: &Tree<'_>, plan: &Plan) -> SchemaPath {
    let (mut place, mut value, mut plan) = (SchemaPath::new(), Some(value), Some(plan));
    for segment in pointer::split(pointer).into_iter().flatten() {
        if let Some(Tree::Array(items)) = value {
            place.push(ANY.into());
            value = segment.parse().ok().and_then(|at: usize| items.get(at));
        } else {
            let (name, inner) = member(plan, &segment);
            place.push(name.into());
            (value, plan) = (value.and_then(|value| value.get(&segment)), inner);
        }
    }
    place
}

/// Returns the name of a member in a [`SchemaPath`], and its plan.
fn member<'p: 'n, 'n>(plan: Option<&'p Plan>, name: &'n str) -> (&'n str, Option<&'p Plan>) {
    match plan.and_then(|plan| plan.member(name, 0)) {
        Some(MemberMatch::Named(_, member)) => (&member.name, Some(&member.plan)),
        Some(MemberMatch::Any(plan)) => (ANY, Some(plan)),
        None => (name, None),
    }
}

/// Fits JSON text without white space into `room` bytes, including marks. `unwritten` is sorted, and `whole` are the
/// places that must not be cut. `None` if the text cannot fit.
#[cold]
pub(super) fn fit(
    text: &str,
    plan: &Plan,
    unwritten: &[Unwritten],
    room: usize,
    whole: &[SchemaPath],
) -> Option<Fitted> {
    let mut fitting = Fitting {
        text,
        unwritten,
        whole,
        at: SchemaPath::new(),
        out: String::new(),
        marks: Vec::new(),
        left_out: LeftOut::default(),
    };
    let kept = fitting.value(0..text.len(), Some(plan), room) && fitting.out.len() <= room;
    kept.then(|| {
        let Fitting { out: marked, marks, left_out, .. } = fitting;
        let (mut data, mut from) = (String::with_capacity(marked.len()), 0);
        for mark in marks {
            data.push_str(marked.get(from..mark.start).unwrap_or_default());
            from = mark.end;
        }
        data.push_str(marked.get(from..).unwrap_or_default());
        Fitted { data, marked, left_out }
    })
}

/// An item that does not fit is cut only if more than 1 / `LEAST` of the room would stay empty otherwise.
const LEAST: usize = 11;

struct Fitting<'t> {
    text: &'t str,
    unwritten: &'t [Unwritten],
    whole: &'t [SchemaPath],
    /// The place of the value that is being written.
    at: SchemaPath,
    out: String,
    /// The positions of the marks, in order.
    marks: Vec<Range<usize>>,
    left_out: LeftOut,
}

/// An item of an array, or a member of an object: its name and colon, if it has one, and its value.
struct Item {
    start: usize,
    value: Range<usize>,
}

impl Item {
    fn len(&self) -> usize {
        self.value.end - self.start
    }
}

impl Fitting<'_> {
    /// Writes a value, cut to the room if necessary. Returns `false`, and writes nothing, if that is not possible.
    fn value(&mut self, at: Range<usize>, plan: Option<&Plan>, room: usize) -> bool {
        if at.len() <= room && self.is_complete(&at) {
            self.copy(at);
            return true;
        }
        if self.whole.contains(&self.at) {
            return false;
        }
        let before = (self.out.len(), self.marks.len(), self.left_out);
        let kept = match self.text.as_bytes().get(at.start) {
            Some(b'"') => self.string(at, room),
            Some(b'[') => self.items(at, plan, room, false),
            Some(b'{') if matches!(plan, Some(Plan::Object { any: Some(_), .. })) => self.items(at, plan, room, true),
            Some(b'{') => self.members(at, plan, room),
            _ => false,
        };
        if !kept {
            self.out.truncate(before.0);
            self.marks.truncate(before.1);
            self.left_out = before.2;
        }
        kept
    }

    /// Like [`value`](Self::value), for a value inside the current one.
    fn inner(&mut self, name: &str, at: Range<usize>, plan: Option<&Plan>, room: usize) -> bool {
        self.at.push(name.into());
        let kept = self.value(at, plan, room);
        self.at.pop();
        kept
    }

    /// Whether a value inside the current one has to stay whole.
    fn stays_whole(&self, name: &str) -> bool {
        let is_inner =
            |place: &SchemaPath| place.split_last().is_some_and(|(last, rest)| **last == *name && *rest == *self.at);
        self.whole.iter().any(is_inner)
    }

    fn copy(&mut self, at: Range<usize>) {
        self.out.push_str(self.text.get(at).unwrap_or_default());
    }

    /// Writes a mark in place of omitted items.
    fn mark(&mut self, mark: &str) {
        let start = self.out.len();
        self.out.push_str(mark);
        self.marks.push(start..self.out.len());
    }

    /// Whether the writer wrote the whole value.
    fn is_complete(&self, at: &Range<usize>) -> bool {
        let next = self.unwritten.partition_point(|(start, _)| *start < at.start);
        self.unwritten.get(next).is_none_or(|(start, _)| *start >= at.end)
    }

    /// Returns the number of items or bytes that are missing from the array, map or string that begins here.
    fn unwritten(&self, start: usize) -> usize {
        self.unwritten.binary_search_by_key(&start, |(start, _)| *start).map_or(0, |found| self.unwritten[found].1)
    }

    fn string(&mut self, at: Range<usize>, room: usize) -> bool {
        let inner = self.text.get(at.start + 1..at.end - 1).unwrap_or_default();
        let bytes = characters(inner).map(|(_, raw)| raw).sum::<usize>() + self.unwritten(at.start);
        let mark = |missing: usize| format!("[{missing} more bytes]");
        let reserved = mark(bytes).len();
        // A string is dropped if less of it than the length of its mark would remain.
        if room < 2 + 2 * reserved {
            return false;
        }
        let (mut end, mut kept) = (0, 0);
        for (written, raw) in characters(inner) {
            if 2 + end + written + reserved > room {
                break;
            }
            end += written;
            kept += raw;
        }
        self.out.push('"');
        self.copy(at.start + 1..at.start + 1 + end);
        self.mark(&mark(bytes - kept));
        self.out.push('"');
        self.left_out.bytes += bytes - kept;
        true
    }

    /// Writes whole items of an array or entries of a map from the beginning. An item that does not fit is itself cut
    /// only if much of the room would otherwise stay empty.
    fn items(&mut self, at: Range<usize>, plan: Option<&Plan>, room: usize, is_map: bool) -> bool {
        let inner = match plan {
            Some(Plan::Object { any, .. }) if is_map => any.as_deref(),
            plan => plan,
        };
        let items = split(self.text, &at);
        let all = items.len() + self.unwritten(at.start);
        let mark = |missing: usize| {
            let name = if is_map { "\"...\":" } else { "" };
            format!("{name}\"[{missing} more items]\"")
        };
        let reserved = mark(all).len() + 1;
        let mut written = 0;
        let start = self.out.len();
        self.copy(at.start..at.start + 1);
        for (place, item) in items.iter().enumerate() {
            // One byte for the comma, one for the end of the array.
            let comma = usize::from(written > 0);
            let used = self.out.len() - start + comma + 1;
            let left = all - place - 1;
            let Some(free) = room.checked_sub(used) else { break };
            let behind = if left == items.len() - place - 1 { at.end - 1 - item.value.end } else { usize::MAX };
            let whole = item.len() <= free && self.is_complete(&item.value);
            if whole
                && (item.len() + reserved <= free || (written == place && item.len().saturating_add(behind) <= free))
            {
                self.separate(written);
                self.copy(item.start..item.value.end);
                written += 1;
                continue;
            }
            let free = free.saturating_sub(reserved);
            // If the items after this one are short, their room is reserved.
            let share = if behind <= free / 2 { free - behind } else { free };
            let name = item.value.start - item.start;
            let before = self.out.len();
            if share > name && share > room / LEAST {
                self.separate(written);
                self.copy(item.start..item.value.start);
                if self.inner(ANY, item.value.clone(), inner, share - name) {
                    written += 1;
                } else {
                    self.out.truncate(before);
                }
            }
            if behind > (free + comma).saturating_sub(self.out.len() - before) {
                break;
            }
        }
        if written < all {
            let comma = if written > 0 { "," } else { "" };
            self.mark(&format!("{comma}{}", mark(all - written)));
            self.left_out.items += all - written;
        }
        self.copy(at.end - 1..at.end);
        self.out.len() - start <= room
    }

    fn separate(&mut self, written: usize) {
        if written > 0 {
            self.out.push(',');
        }
    }

    /// Writes all members of an object. Members that are short or stay whole get the room that they need; the others
    /// share the rest.
    fn members(&mut self, at: Range<usize>, plan: Option<&Plan>, room: usize) -> bool {
        let items = split(self.text, &at);
        let fixed: usize = items.iter().map(|item| item.value.start - item.start + 1).sum::<usize>() + 1;
        let Some(mut free) = room.checked_sub(fixed) else { return false };
        let mut members = Vec::with_capacity(items.len());
        for item in &items {
            let name = self.text.get(item.start + 1..item.value.start.saturating_sub(2)).unwrap_or_default();
            let (name, plan) = member(plan, name);
            let size = if self.is_complete(&item.value) { item.value.len() } else { usize::MAX };
            let is_whole = self.stays_whole(name);
            if is_whole {
                let Some(left) = free.checked_sub(size) else { return false };
                free = left;
            }
            members.push((name, plan, size, is_whole));
        }
        let mut sizes: Vec<_> =
            members.iter().filter(|(.., is_whole)| !is_whole).map(|(_, _, size, _)| *size).collect();
        sizes.sort_unstable();
        let mut sharing = sizes.len();
        for size in sizes {
            if size > free / sharing {
                break;
            }
            free -= size;
            sharing -= 1;
        }
        let largest = free.checked_div(sharing).unwrap_or(usize::MAX);
        self.out.push('{');
        for (place, (item, (name, plan, size, is_whole))) in items.iter().zip(members).enumerate() {
            self.separate(place);
            self.copy(item.start..item.value.start);
            if is_whole || size <= largest {
                self.copy(item.value.clone());
                continue;
            }
            let before = self.out.len();
            if sharing == 0 || !self.inner(name, item.value.clone(), plan, free / sharing) {
                return false;
            }
            free = free.saturating_sub(self.out.len() - before);
            sharing -= 1;
        }
        self.out.push('}');
        true
    }
}

/// Returns the size of each character of a JSON string in bytes, as JSON and unescaped.
fn characters(inner: &str) -> impl Iterator<Item = (usize, usize)> {
    let mut rest = inner;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let (written, raw) = match (first, rest.as_bytes().get(1)) {
            // The writer escapes control characters only.
            ('\\', Some(b'u')) => (6, 1),
            ('\\', _) => (2, 1),
            _ => (first.len_utf8(), first.len_utf8()),
        };
        rest = rest.get(written..).unwrap_or_default();
        Some((written, raw))
    })
}

/// Returns the items of an array or the members of an object.
fn split(text: &str, at: &Range<usize>) -> Vec<Item> {
    let bytes = text.as_bytes();
    let is_object = bytes.get(at.start) == Some(&b'{');
    let (mut items, mut start) = (Vec::new(), at.start + 1);
    while start + 1 < at.end {
        let value = if is_object { end_of(bytes, start) + 1 } else { start };
        let end = end_of(bytes, value);
        items.push(Item { start, value: value..end });
        start = end + 1;
    }
    items
}

/// Returns the end of the value that begins at `start`.
fn end_of(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut depth, mut is_text) = (start, 0_usize, false);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' if is_text => at += 1,
            b'"' => is_text = !is_text,
            _ if is_text => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' | b',' | b':' if depth == 0 => return at,
            b']' | b'}' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}
