//! Masks the sensitive arguments of a call, for records, events and approvals.

use serde::Serialize;
use serde::ser::SerializeMap;

use crate::call::JsonText;
use crate::json::Tree;

/// The text that replaces a sensitive argument.
pub(crate) const MASK: &str = "[sensitive]";

/// Returns the arguments as JSON, with `"[sensitive]"` in place of each sensitive argument.
#[must_use]
pub(crate) fn mask_arguments(arguments: &Tree<'_>, sensitive: &[String]) -> JsonText {
    serde_json::to_string(&Masked { arguments, sensitive }).map_or_else(|_| JsonText::null(), JsonText::known)
}

struct Masked<'a> {
    arguments: &'a Tree<'a>,
    sensitive: &'a [String],
}

impl Serialize for Masked<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Tree::Object(members) = self.arguments else {
            return self.arguments.serialize(serializer);
        };
        let mut map = serializer.serialize_map(Some(members.len()))?;
        for (name, value) in members {
            if self.sensitive.iter().any(|one| **one == **name) {
                map.serialize_entry(name, MASK)?;
            } else {
                map.serialize_entry(name, value)?;
            }
        }
        map.end()
    }
}
