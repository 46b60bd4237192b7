//! Field types that ignore values of an unexpected type, so that one odd field does not make a frame unreadable.

use std::borrow::Cow;

use crate::wire::decode::cursor::{Invalid, Json};

/// The maximum number of entries of one list of a frame; no model writes more.
pub(crate) const MAX_LIST: usize = 1 << 16;

/// A value that is read in place, because moving the fields of many small frames would cost more than reading them.
pub(crate) trait Field<'a>: Default {
    fn read(&mut self, json: &mut Json<'a>) -> Result<(), Invalid>;
}

/// Defines the known members of a provider's object: for each key, the field and its type. Other keys are skipped (rule
/// R6 of `wire`). A frame that repeats one of the known keys is ambiguous and refused.
macro_rules! shape {
    ($(#[$about:meta])* $sight:vis struct $name:ident<$life:lifetime> { $($fields:tt)* }) => {
        shape!(@ [$(#[$about])* $sight struct $name<$life>] [impl<$life> $crate::wire::decode::fields::Field<$life> for $name<$life>] $life $($fields)*);
    };
    ($(#[$about:meta])* $sight:vis struct $name:ident { $($fields:tt)* }) => {
        shape!(@ [$(#[$about])* $sight struct $name] [impl<'a> $crate::wire::decode::fields::Field<'a> for $name] 'a $($fields)*);
    };
    (@ [$($head:tt)*] [$($implement:tt)*] $life:lifetime
        $($(#[$doc:meta])* $key:literal => $seen:vis $field:ident: $type:ty,)*
        $(rare $rare:ident: [$($name:literal),* $(,)?] $(and all but [$($but:literal),* $(,)?])?,)?) => {
        #[derive(Default)]
        #[allow(clippy::struct_field_names, reason = "the names of the format")]
        $($head)* {
            $($(#[$doc])* $seen $field: $type,)*
            $(pub(crate) $rare: $crate::wire::decode::rare::Rare<$life>,)?
        }
        $($implement)* {
            fn read(
                &mut self,
                json: &mut $crate::wire::decode::cursor::Json<$life>,
            ) -> Result<(), $crate::wire::decode::cursor::Invalid> {
                #[derive(Default)]
                #[allow(clippy::struct_excessive_bools, reason = "one for each key")]
                struct Seen {
                    $($field: bool,)*
                }
                let mut seen = Seen::default();
                json.object(|json, key| match key {
                    $($key if std::mem::replace(&mut seen.$field, true) => Err($crate::wire::decode::cursor::Invalid),
                    $key => $crate::wire::decode::fields::Field::read(&mut self.$field, json),)*
                    $($($name => self.$rare.read($name, json),)*)?
                    $($($($but => json.skip(),)* other => self.$rare.read_other(other, json),)?)?
                    #[allow(unreachable_patterns, reason = "some shapes keep unknown members")]
                    _ => json.skip(),
                })
            }
        }
    };
}
pub(crate) use shape;

/// Reads a document that is one object of a known shape.
pub(crate) fn read<'a, T: Field<'a>>(text: &'a str) -> Result<T, Invalid> {
    let mut object = T::default();
    fill(&mut object, text)?;
    Ok(object)
}

/// Like [`read`], but in place: returning a line of Ollama by value takes 130 instructions.
pub(crate) fn fill<'a, T: Field<'a>>(object: &mut T, text: &'a str) -> Result<(), Invalid> {
    let mut json = Json::new(text);
    object.read(&mut json)?;
    json.end()
}

/// A string. Values of other types, and the empty string, are absent (R2).
#[derive(Default)]
pub(crate) struct Text<'a>(Option<Cow<'a, str>>);

impl Text<'_> {
    /// The text; empty if it is absent.
    pub(crate) fn get(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    /// Whether the frame has a string for this field, even an empty one.
    pub(crate) const fn came(&self) -> bool {
        self.0.is_some()
    }
}

impl<'a> Field<'a> for Text<'a> {
    fn read(&mut self, json: &mut Json<'a>) -> Result<(), Invalid> {
        if json.peek() != b'"' {
            return json.skip();
        }
        self.0 = Some(json.string()?);
        Ok(())
    }
}

/// An integer; values of other types are absent.
#[derive(Default, Clone, Copy)]
pub(crate) struct Integer(pub(crate) Option<i64>);

/// A count of tokens: an integer, or a whole number written as `12.0` or as a string, as some servers do. Negative
/// numbers, numbers above `i64::MAX` and all other values are absent.
#[derive(Default, Clone, Copy)]
pub(crate) struct Count(Option<u64>);

impl Count {
    /// The count; `None` if it is absent.
    pub(crate) const fn count(self) -> Option<u64> {
        self.0
    }
}

impl<'a> Field<'a> for Count {
    fn read(&mut self, json: &mut Json<'a>) -> Result<(), Invalid> {
        match json.peek() {
            b'-' | b'0'..=b'9' => {
                let start = json.clone();
                self.0 = match json.integer()? {
                    Some(number) => u64::try_from(number).ok(),
                    None => whole(json.since(&start)),
                };
            }
            b'"' => self.0 = whole(&json.string()?),
            _ => json.skip()?,
        }
        Ok(())
    }
}

/// The value of a whole number that is not written as an integer.
#[cold]
fn whole(text: &str) -> Option<u64> {
    let number: f64 = text.trim().parse().ok()?;
    // Rounded text parses as an integer, unless the number is too large, infinite or not a number.
    let whole: i64 = format!("{number:.0}").parse().ok().filter(|_| number.fract() == 0.0)?;
    u64::try_from(whole).ok()
}

impl<'a> Field<'a> for Integer {
    fn read(&mut self, json: &mut Json<'a>) -> Result<(), Invalid> {
        if !matches!(json.peek(), b'-' | b'0'..=b'9') {
            return json.skip();
        }
        self.0 = json.integer()?;
        Ok(())
    }
}

/// Whether the value is `true`; every other value is read as `false`.
#[derive(Default, Clone, Copy)]
pub(crate) struct Flag(pub(crate) bool);

impl<'a> Field<'a> for Flag {
    fn read(&mut self, json: &mut Json<'a>) -> Result<(), Invalid> {
        // Skipping the word also checks it.
        self.0 = json.peek() == b't';
        json.skip()
    }
}

/// The JSON text of any value except null, to be parsed later or never.
#[derive(Default, Clone, Copy)]
pub(crate) struct Raw<'a>(pub(crate) Option<&'a str>);

impl<'a> Raw<'a> {
    /// Reads the value as an object; `None` for other JSON types.
    pub(crate) fn object<T: Field<'a>>(self) -> Option<T> {
        self.0.and_then(|text| read(text).ok())
    }

    /// Reads the value as an object of a known shape, like a field of type [`Object`].
    pub(crate) fn known<T: Field<'a>>(self) -> Result<Object<T>, Invalid> {
        self.0.filter(|text| text.starts_with('{')).map_or_else(|| Ok(Object::default()), read)
    }
}

impl<'a> Field<'a> for Raw<'a> {
    fn read(&mut self, json: &mut Json<'a>) -> Result<(), Invalid> {
        self.0 = Some(json.raw()?).filter(|text| *text != "null");
        Ok(())
    }
}

/// An object of a known shape; values of other types are absent.
pub(crate) struct Object<T>(pub(crate) Option<T>);

impl<T> Default for Object<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'a, T: Field<'a>> Field<'a> for Object<T> {
    fn read(&mut self, json: &mut Json<'a>) -> Result<(), Invalid> {
        if json.peek() != b'{' {
            return json.skip();
        }
        self.0.insert(T::default()).read(json)
    }
}

/// A large field that few frames have, boxed so that the other frames do not pay for its size.
impl<'a, T: Field<'a>> Field<'a> for Box<T> {
    fn read(&mut self, json: &mut Json<'a>) -> Result<(), Invalid> {
        (**self).read(json)
    }
}

/// An object of a known shape, with its JSON text.
#[derive(Default)]
pub(crate) struct Whole<'a, T> {
    pub(crate) value: T,
    pub(crate) text: &'a str,
}

impl<'a, T: Field<'a>> Field<'a> for Whole<'a, T> {
    fn read(&mut self, json: &mut Json<'a>) -> Result<(), Invalid> {
        json.peek();
        let start = json.clone();
        self.value.read(json)?;
        self.text = json.since(&start);
        Ok(())
    }
}

/// A list of objects; other entries are left out. Most lists have one entry, which needs no allocation.
pub(crate) struct List<T> {
    first: Option<T>,
    rest: Vec<T>,
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self { first: None, rest: Vec::new() }
    }
}

impl<T> List<T> {
    pub(crate) const fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(&self.rest)
    }
}

impl<'a, T: Field<'a>> Field<'a> for List<T> {
    fn read(&mut self, json: &mut Json<'a>) -> Result<(), Invalid> {
        if json.peek() != b'[' {
            return json.skip();
        }
        json.array(|json| {
            if json.peek() != b'{' {
                return json.skip();
            }
            if self.first.is_none() {
                return self.first.insert(T::default()).read(json);
            }
            if self.rest.len() == MAX_LIST {
                return Err(Invalid);
            }
            let mut entry = T::default();
            entry.read(json)?;
            self.rest.push(entry);
            Ok(())
        })
    }
}

/// Text that is either a string or a list of pieces.
#[derive(Default)]
pub(crate) struct Content<'a> {
    pub(crate) text: Text<'a>,
    /// The JSON text of the list; `None` for a string.
    pub(crate) list: Option<&'a str>,
}

impl<'a> Field<'a> for Content<'a> {
    fn read(&mut self, json: &mut Json<'a>) -> Result<(), Invalid> {
        if json.peek() != b'[' {
            return self.text.read(json);
        }
        self.list = Some(json.raw()?);
        Ok(())
    }
}
