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
    start: usize,
    seen: usize,
    written: usize,
    missing: usize,
    /// The array stands inside `{"variant": ..}`.
    wrapped: bool,
}

impl<'o, 'p> Compound<'o, 'p> {
    pub(super) fn array(out: &'o mut Out, plan: &'p Plan) -> Self {
        let start = out.text.len();
        out.text.push('[');
        Self { out, plan: Some(plan), start, seen: 0, written: 0, missing: 0, wrapped: false }
    }

    pub(super) fn variant(out: &'o mut Out, plan: &'p Plan, variant: &str) -> Self {
        let start = out.text.len();
        out.text.push('{');
        quote(&mut out.text, variant);
        out.text.push_str(":[");
        Self { out, plan: plan.member(variant), start, seen: 0, written: 0, missing: 0, wrapped: true }
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
        match value.serialize(Place { out: &mut *self.out, plan })? {
            Kept::Yes => self.written += 1,
            Kept::No(_) => self.out.text.truncate(before),
        }
        Ok(())
    }

    fn close(self) -> Kept {
        let shape = if self.wrapped { "{}" } else { "[]" };
        let emptied = self.written == 0 && self.seen > 0;
        if self.plan.is_none() || emptied {
            self.out.text.truncate(self.start);
            return Kept::No(shape);
        }
        if self.missing > 0 {
            self.out.text.push(',');
            self.out.mark_items(self.missing);
        }
        self.out.text.push_str(if self.wrapped { "]}" } else { "]" });
        Kept::Yes
    }
}

/// An object.
pub(in crate::redact) struct Members<'o, 'p> {
    out: &'o mut Out,
    plan: Option<&'p Plan>,
    start: usize,
    seen: usize,
    written: usize,
    key: Option<String>,
    wrapped: bool,
    /// `serde_json`'s own: the one member holds JSON text.
    private: Option<Kept>,
    is_private: bool,
}

impl<'o, 'p> Members<'o, 'p> {
    pub(super) fn new(out: &'o mut Out, plan: &'p Plan) -> Self {
        let start = out.text.len();
        out.text.push('{');
        Self {
            out,
            plan: Some(plan),
            start,
            seen: 0,
            written: 0,
            key: None,
            wrapped: false,
            private: None,
            is_private: false,
        }
    }

    pub(super) fn variant(out: &'o mut Out, plan: &'p Plan, variant: &str) -> Self {
        let start = out.text.len();
        out.text.push('{');
        quote(&mut out.text, variant);
        out.text.push_str(":{");
        let plan = plan.member(variant);
        Self { out, plan, start, seen: 0, written: 0, key: None, wrapped: true, private: None, is_private: false }
    }

    pub(super) fn private(out: &'o mut Out, plan: &'p Plan) -> Self {
        let start = out.text.len();
        Self {
            out,
            plan: Some(plan),
            start,
            seen: 0,
            written: 0,
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
            self.private = Some(Place { out: &mut *self.out, plan }.raw(&text)?);
            return Ok(());
        }
        let Some(plan) = self.plan.and_then(|plan| plan.member(name)) else { return Ok(()) };
        let before = self.out.text.len();
        if self.written > 0 {
            self.out.text.push(',');
        }
        quote(&mut self.out.text, name);
        self.out.text.push(':');
        match value.serialize(Place { out: &mut *self.out, plan })? {
            Kept::Yes => self.written += 1,
            Kept::No(_) => self.out.text.truncate(before),
        }
        Ok(())
    }

    pub(super) fn close(self) -> Kept {
        if self.is_private {
            return self.private.unwrap_or(Kept::No("null"));
        }
        let emptied = self.written == 0 && (self.seen > 0 || self.wrapped);
        if self.plan.is_none() || emptied {
            self.out.text.truncate(self.start);
            return Kept::No("{}");
        }
        self.out.text.push_str(if self.wrapped { "}}" } else { "}" });
        Kept::Yes
    }
}

impl ser::SerializeSeq for Compound<'_, '_> {
    type Ok = Kept;
    type Error = Fault;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        self.element(value)
    }

    fn end(self) -> Result<Kept, Fault> {
        Ok(self.close())
    }
}

impl ser::SerializeTuple for Compound<'_, '_> {
    type Ok = Kept;
    type Error = Fault;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        self.element(value)
    }

    fn end(self) -> Result<Kept, Fault> {
        Ok(self.close())
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
                Ok(self.close())
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
                Ok(self.close())
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
        Ok(self.close())
    }
}
