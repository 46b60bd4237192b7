//! Arrays and objects while they are written: what turns out empty is taken back.

use serde::ser::{self, Serialize};

use crate::json::quote;
use crate::redact::key::Key;
use crate::redact::plan::Plan;
use crate::redact::writer::{Fault, Kept, Out, Place};

/// An array. Its elements have the plan of the array itself.
pub(in crate::redact) struct Compound<'o, 'p> {
    out: &'o mut Out,
    /// Nothing: the array stands where nothing may be written.
    plan: Option<&'p Plan>,
    depth: u8,
    start: usize,
    seen: usize,
    written: usize,
    missing: usize,
    /// The array stands inside `{"variant": ..}`.
    wrapped: bool,
}

impl<'o, 'p> Compound<'o, 'p> {
    pub(super) fn array(place: Place<'o, 'p>) -> Self {
        let Place { out, plan, depth, .. } = place;
        let start = out.text.len();
        out.text.push('[');
        Self { out, plan: Some(plan), depth, start, seen: 0, written: 0, missing: 0, wrapped: false }
    }

    pub(super) fn variant(place: Place<'o, 'p>, variant: &str) -> Self {
        let Place { out, plan, depth, .. } = place;
        let start = out.text.len();
        out.text.push('{');
        quote(&mut out.text, variant);
        out.text.push_str(":[");
        let plan = plan.member(variant).map(|(plan, _)| plan);
        Self { out, plan, depth, start, seen: 0, written: 0, missing: 0, wrapped: true }
    }

    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        self.seen += 1;
        let Some(plan) = self.plan else { return Ok(()) };
        if self.missing > 0 || (self.written > 0 && self.out.is_full()) {
            self.missing += 1;
            return Ok(());
        }
        let before = self.out.text.len();
        if self.written > 0 {
            self.out.text.push(',');
        }
        match value.serialize(Place { out: &mut *self.out, plan, in_array: true, depth: self.depth })? {
            Kept::Yes => self.written += 1,
            Kept::No(_) => self.out.text.truncate(before),
        }
        Ok(())
    }

    #[expect(clippy::unnecessary_wraps, reason = "every caller is a method of a serialiser")]
    fn close(self) -> Result<Kept, Fault> {
        let shape = if self.wrapped { "{}" } else { "[]" };
        let emptied = self.written == 0 && self.seen > 0;
        if self.plan.is_none() || emptied {
            self.out.text.truncate(self.start);
            return Ok(Kept::No(shape));
        }
        if self.missing > 0 {
            self.out.text.push(',');
            self.out.mark_items(self.missing);
        }
        self.out.text.push_str(if self.wrapped { "]}" } else { "]" });
        Ok(Kept::Yes)
    }
}

/// An object.
pub(in crate::redact) struct Members<'o, 'p> {
    out: &'o mut Out,
    plan: Option<&'p Plan>,
    depth: u8,
    start: usize,
    seen: usize,
    written: usize,
    /// Which of the plan's first 64 members came, by place.
    came: u64,
    key: Option<String>,
    wrapped: bool,
    /// `serde_json`'s own: the one member holds JSON text.
    private: Option<Kept>,
    is_private: bool,
}

impl<'o, 'p> Members<'o, 'p> {
    pub(super) fn new(place: Place<'o, 'p>) -> Self {
        place.out.text.push('{');
        let mut members = Self::private(place);
        members.start -= 1;
        members.is_private = false;
        members
    }

    pub(super) fn variant(place: Place<'o, 'p>, variant: &str) -> Self {
        let start = place.out.text.len();
        place.out.text.push('{');
        quote(&mut place.out.text, variant);
        place.out.text.push_str(":{");
        let plan = place.plan.member(variant).map(|(plan, _)| plan);
        Self { plan, start, wrapped: true, is_private: false, ..Self::private(place) }
    }

    pub(super) fn private(place: Place<'o, 'p>) -> Self {
        let Place { out, plan, depth, .. } = place;
        let start = out.text.len();
        Self {
            out,
            plan: Some(plan),
            depth,
            start,
            seen: 0,
            written: 0,
            came: 0,
            key: None,
            wrapped: false,
            private: None,
            is_private: true,
        }
    }

    pub(super) fn member<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), Fault> {
        self.seen += 1;
        if self.is_private {
            // The text goes through a string first: whatever it is, it is filtered as data.
            let text = value.serialize(Key)?;
            let Some(plan) = self.plan else { return Ok(()) };
            let place = Place { out: &mut *self.out, plan, in_array: false, depth: self.depth };
            self.private = Some(place.raw(&text)?);
            return Ok(());
        }
        let Some((plan, at)) = self.plan.and_then(|plan| plan.member(name)) else { return Ok(()) };
        if let Some(bit) = at.and_then(|at| 1_u64.checked_shl(u32::try_from(at).ok()?)) {
            // A second member of one name could stand for the first.
            if self.came & bit != 0 {
                return Err(Fault::NotSchema);
            }
            self.came |= bit;
        }
        let before = self.out.text.len();
        if self.written > 0 {
            self.out.text.push(',');
        }
        quote(&mut self.out.text, name);
        self.out.text.push(':');
        match value.serialize(Place { out: &mut *self.out, plan, in_array: false, depth: self.depth })? {
            Kept::Yes => self.written += 1,
            Kept::No(_) => self.out.text.truncate(before),
        }
        Ok(())
    }

    pub(super) fn close(self) -> Result<Kept, Fault> {
        if self.is_private {
            return Ok(self.private.unwrap_or(Kept::No("null")));
        }
        if let Some(Plan::Object { required, .. }) = self.plan
            && required & !self.came != 0
        {
            return Err(Fault::NotSchema);
        }
        let emptied = self.written == 0 && (self.seen > 0 || self.wrapped);
        if self.plan.is_none() || emptied {
            self.out.text.truncate(self.start);
            return Ok(Kept::No("{}"));
        }
        self.out.text.push_str(if self.wrapped { "}}" } else { "}" });
        Ok(Kept::Yes)
    }
}

impl ser::SerializeSeq for Compound<'_, '_> {
    type Ok = Kept;
    type Error = Fault;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        self.element(value)
    }

    fn end(self) -> Result<Kept, Fault> {
        self.close()
    }
}

impl ser::SerializeTuple for Compound<'_, '_> {
    type Ok = Kept;
    type Error = Fault;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        self.element(value)
    }

    fn end(self) -> Result<Kept, Fault> {
        self.close()
    }
}

macro_rules! fields {
    ($($ty:ident: $($tr:ident)*;)*) => {
        $($(impl ser::$tr for $ty<'_, '_> {
            type Ok = Kept;
            type Error = Fault;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
                self.element(value)
            }

            fn end(self) -> Result<Kept, Fault> {
                self.close()
            }
        })*)*
    };
}

fields! {
    Compound: SerializeTupleStruct SerializeTupleVariant;
}

macro_rules! members {
    ($($tr:ident)*) => {
        $(impl ser::$tr for Members<'_, '_> {
            type Ok = Kept;
            type Error = Fault;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Fault> {
                self.member(name, value)
            }

            fn end(self) -> Result<Kept, Fault> {
                self.close()
            }
        })*
    };
}

members!(SerializeStruct SerializeStructVariant);

impl ser::SerializeMap for Members<'_, '_> {
    type Ok = Kept;
    type Error = Fault;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Fault> {
        self.key = Some(key.serialize(Key)?);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        let key = self.key.take().ok_or(Fault::Author)?;
        self.member(&key, value)
    }

    fn end(self) -> Result<Kept, Fault> {
        self.close()
    }
}
