//! Writers of arrays and objects. An array or object is removed again if the allowlist leaves nothing of it.

use serde::ser::{self, Serialize};

use crate::json::quote;
use crate::redact::fault::Fault;
use crate::redact::key::Key;
use crate::redact::plan::{MemberMatch, Plan};
use crate::redact::writer::{Cursor, Out, Shown};

/// An array. Its elements have the plan of the array itself.
pub(in crate::redact) struct Compound<'o, 'p> {
    out: &'o mut Out,
    /// `None` if nothing may be written here.
    plan: Option<&'p Plan>,
    arrays: u8,
    depth: u8,
    start: usize,
    /// The position of its bracket, which is after `start` in `{"variant":[..]}`.
    bracket: usize,
    seen: usize,
    written: usize,
    missing: usize,
    /// Whether the array is the value of `{"variant": ..}`.
    wrapped: bool,
}

impl<'o, 'p> Compound<'o, 'p> {
    pub(super) fn array(place: Cursor<'o, 'p>) -> Self {
        let start = place.out.text.len();
        place.out.text.push('[');
        let arrays = place.arrays.saturating_add(1);
        let Cursor { out, plan, depth, .. } = place;
        let bracket = start;
        Self { out, plan: Some(plan), arrays, depth, start, bracket, seen: 0, written: 0, missing: 0, wrapped: false }
    }

    pub(super) fn variant(place: Cursor<'o, 'p>, variant: &str) -> Self {
        let Cursor { out, plan, depth, .. } = place;
        let start = out.text.len();
        out.text.push('{');
        quote(&mut out.text, variant);
        out.text.push_str(":[");
        let (plan, bracket) = (plan.variant(variant), out.text.len() - 1);
        Self { out, plan, arrays: 1, depth, start, bracket, seen: 0, written: 0, missing: 0, wrapped: true }
    }

    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        self.seen += 1;
        let Some(plan) = self.plan else { return Ok(()) };
        if self.missing > 0 || self.out.is_full(self.bracket) {
            self.missing += 1;
            return Ok(());
        }
        let before = self.out.text.len();
        if self.written > 0 {
            self.out.text.push(',');
        }
        match value.serialize(Cursor { out: &mut *self.out, plan, arrays: self.arrays, depth: self.depth })? {
            Shown::Yes => self.written += 1,
            Shown::No(_) => self.out.truncate(before),
        }
        Ok(())
    }

    #[expect(clippy::unnecessary_wraps, reason = "every caller is a method of a serialiser")]
    fn close(self) -> Result<Shown, Fault> {
        let shape = if self.wrapped { "{}" } else { "[]" };
        let emptied = self.written == 0 && self.seen > 0;
        if self.plan.is_none() || emptied {
            self.out.truncate(self.start);
            return Ok(Shown::No(shape));
        }
        if self.missing > 0 {
            self.out.leave_out(self.bracket, self.missing);
        }
        self.out.text.push_str(if self.wrapped { "]}" } else { "]" });
        Ok(Shown::Yes)
    }
}

/// An object, or a value that `serde_json` serialises as one.
pub(in crate::redact) enum Members<'o, 'p> {
    Object(Object<'o, 'p>),
    /// A private struct of `serde_json`, whose only member contains JSON text.
    Text(Cursor<'o, 'p>, Shown),
}

/// An object that is being written, alone or inside `{"variant": {..}}`.
pub(in crate::redact) struct Object<'o, 'p> {
    out: &'o mut Out,
    /// `None` if nothing may be written here.
    plan: Option<&'p Plan>,
    depth: u8,
    /// The position at which its text begins.
    start: usize,
    /// The position of its brace, which is after `start` in `{"variant":{..}}`.
    brace: usize,
    /// The number of entries of a map that are not written.
    missing: usize,
    /// The text that closes the object.
    closing: &'static str,
    seen: bool,
    written: usize,
    /// A bit set of the plan's first 64 members that have occurred, by index.
    came: u64,
    /// The index of the member that is expected next.
    next: usize,
    /// The key of the entry whose value comes next.
    key: Option<String>,
}

impl<'o, 'p> Members<'o, 'p> {
    pub(super) fn new(Cursor { out, plan, depth, .. }: Cursor<'o, 'p>) -> Self {
        let start = out.text.len();
        out.text.push('{');
        Self::Object(Object::opened(out, Some(plan), depth, start, "}"))
    }

    pub(super) fn variant(Cursor { out, plan, depth, .. }: Cursor<'o, 'p>, variant: &str) -> Self {
        let start = out.text.len();
        out.text.push('{');
        quote(&mut out.text, variant);
        out.text.push_str(":{");
        let plan = plan.variant(variant);
        // A variant has at least its name, so it is not an empty object: without a written member, it is removed.
        Self::Object(Object { seen: true, ..Object::opened(out, plan, depth, start, "}}") })
    }

    pub(super) fn text(place: Cursor<'o, 'p>) -> Self {
        Self::Text(place, Shown::No("null"))
    }

    pub(super) fn member<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), Fault> {
        match self {
            Self::Object(object) => object.member(name, value),
            Self::Text(place, kept) => {
                // The text is parsed and filtered like any other value.
                let text = value.serialize(Key)?;
                let Cursor { plan, arrays, depth, .. } = *place;
                *kept = Cursor { out: &mut *place.out, plan, arrays, depth }.raw(&text)?;
                Ok(())
            }
        }
    }

    pub(super) fn close(self) -> Result<Shown, Fault> {
        match self {
            Self::Object(object) => object.close(),
            Self::Text(_, kept) => Ok(kept),
        }
    }
}

impl<'o, 'p> Object<'o, 'p> {
    fn opened(out: &'o mut Out, plan: Option<&'p Plan>, depth: u8, start: usize, closing: &'static str) -> Self {
        let next = plan.map_or(0, Plan::first);
        let brace = out.text.len() - 1;
        Self { out, plan, depth, start, brace, missing: 0, closing, seen: false, written: 0, came: 0, next, key: None }
    }

    fn member<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), Fault> {
        self.seen = true;
        let Some(found) = self.plan.and_then(|plan| plan.member(name, self.next)) else { return Ok(()) };
        let before = self.out.text.len();
        let plan = match found {
            MemberMatch::Named(at, member) => {
                if let Some(bit) = u32::try_from(at).ok().and_then(|at| 1_u64.checked_shl(at)) {
                    // A reader might take a second member of one name for the first.
                    if self.came & bit != 0 {
                        return Err(Fault::NotSchema);
                    }
                    self.came |= bit;
                }
                self.next = member.next;
                let first = usize::from(self.written == 0);
                self.out.text.push_str(member.quoted.get(first..).unwrap_or_default());
                &member.plan
            }
            MemberMatch::Any(_) if self.missing > 0 || self.out.is_full(self.brace) => {
                self.missing += 1;
                return Ok(());
            }
            MemberMatch::Any(plan) => {
                if self.written > 0 {
                    self.out.text.push(',');
                }
                quote(&mut self.out.text, name);
                self.out.text.push(':');
                plan
            }
        };
        match value.serialize(Cursor { out: &mut *self.out, plan, arrays: 0, depth: self.depth })? {
            Shown::Yes => self.written += 1,
            Shown::No(_) => self.out.truncate(before),
        }
        Ok(())
    }

    fn close(self) -> Result<Shown, Fault> {
        if let Some(Plan::Object { required, .. }) = self.plan
            && required & !self.came != 0
        {
            return Err(Fault::NotSchema);
        }
        let emptied = self.written == 0 && self.seen;
        if self.plan.is_none() || emptied {
            self.out.truncate(self.start);
            return Ok(Shown::No("{}"));
        }
        if self.missing > 0 {
            self.out.leave_out(self.brace, self.missing);
        }
        self.out.text.push_str(self.closing);
        Ok(Shown::Yes)
    }
}

macro_rules! elements {
    ($($tr:ident $serialize:ident;)*) => {
        $(impl ser::$tr for Compound<'_, '_> {
            type Ok = Shown;
            type Error = Fault;

            fn $serialize<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
                self.element(value)
            }

            fn end(self) -> Result<Shown, Fault> {
                self.close()
            }
        })*
    };
}

elements! {
    SerializeSeq serialize_element;
    SerializeTuple serialize_element;
    SerializeTupleStruct serialize_field;
    SerializeTupleVariant serialize_field;
}

macro_rules! members {
    ($($tr:ident)*) => {
        $(impl ser::$tr for Members<'_, '_> {
            type Ok = Shown;
            type Error = Fault;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Fault> {
                self.member(name, value)
            }

            fn end(self) -> Result<Shown, Fault> {
                self.close()
            }
        })*
    };
}

members!(SerializeStruct SerializeStructVariant);

impl ser::SerializeMap for Members<'_, '_> {
    type Ok = Shown;
    type Error = Fault;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Fault> {
        // `serde_json` does not serialise its private structs as maps.
        let Self::Object(object) = self else { return Err(Fault::Author) };
        object.key = Some(key.serialize(Key)?);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        let Self::Object(object) = self else { return Err(Fault::Author) };
        let key = object.key.take().ok_or(Fault::Author)?;
        object.member(&key, value)
    }

    fn end(self) -> Result<Shown, Fault> {
        self.close()
    }
}
