//! [`Rare`]: the members of an object that few frames have, and members that no shape knows.

use std::borrow::Cow;

use crate::wire::decode::cursor::{Invalid, Json};
use crate::wire::decode::fields::{Field as _, Raw};

/// Members that few frames have; frames without them pay no cost. A null is absent.
#[derive(Default)]
pub(crate) struct Rare<'a>(Vec<(Cow<'static, str>, Raw<'a>)>);

/// The maximum number of unknown members of one object that are kept.
const MAX_OTHERS: usize = 64;

impl<'a> Rare<'a> {
    pub(crate) fn read(&mut self, name: &'static str, json: &mut Json<'a>) -> Result<(), Invalid> {
        self.keep(Cow::Borrowed(name), json)
    }

    /// Keeps a member that the shape does not name.
    pub(crate) fn read_other(&mut self, name: &str, json: &mut Json<'a>) -> Result<(), Invalid> {
        if json.peek() == b'n' || self.0.len() >= MAX_OTHERS {
            return json.skip();
        }
        self.keep(Cow::Owned(name.to_owned()), json)
    }

    /// The unknown members, each with its JSON text.
    pub(crate) fn others(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.0.iter().filter_map(|(name, value)| match name {
            Cow::Owned(name) => Some((name.as_str(), value.0?)),
            Cow::Borrowed(_) => None,
        })
    }

    #[cold]
    fn keep(&mut self, name: Cow<'static, str>, json: &mut Json<'a>) -> Result<(), Invalid> {
        if self.0.iter().any(|(known, _)| *known == name) {
            return Err(Invalid);
        }
        let mut value = Raw::default();
        value.read(json)?;
        self.0.push((name, value));
        Ok(())
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The JSON text of a member.
    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(known, _)| *known == name).and_then(|(_, value)| value.0)
    }
}
