//! [`JsonText`]: JSON that was checked once and is passed on without parsing it again.

use std::fmt;
use std::sync::Arc;

use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// The name under which `serde_json` serialises its raw text.
pub(crate) const RAW: &str = "$serde_json::private::RawValue";

/// One JSON value as text: arguments, results, and their forms for display. Cheap to clone.
///
/// It is written into other JSON unchanged. Convert text from outside by way of a [`RawValue`], which checks that the
/// text is JSON.
///
/// ```
/// use serde_json::value::to_raw_value;
/// use tool_runtime::call::JsonText;
///
/// let text = JsonText::from(to_raw_value(&[1, 2])?);
/// assert_eq!(text.get(), "[1,2]");
/// assert_eq!(serde_json::to_string(&text)?, "[1,2]");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct JsonText(Arc<str>);

impl JsonText {
    /// Takes text that this crate wrote or parsed. Parsing it again for a `RawValue` would take a fifth of the time of
    /// a small call.
    pub(crate) fn known(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// Returns the value `null`.
    pub(crate) fn null() -> Self {
        Self::known("null")
    }

    /// Returns the text.
    #[must_use]
    pub fn get(&self) -> &str {
        &self.0
    }
}

impl From<Box<RawValue>> for JsonText {
    fn from(raw: Box<RawValue>) -> Self {
        Self(raw.get().into())
    }
}

impl fmt::Display for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("JsonText").field(&format_args!("{}", self.0)).finish()
    }
}

impl Serialize for JsonText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut raw = serializer.serialize_struct(RAW, 1)?;
        raw.serialize_field(RAW, &*self.0)?;
        raw.end()
    }
}

impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_written_and_read_as_it_is() {
        for text in ["{}", r#"{"a":[1,2.50,"\u00e9"]}"#, "null", "12345678901234567890", "1e2"] {
            let known = JsonText::known(text);
            assert_eq!(serde_json::to_string(&[&known]).unwrap(), format!("[{text}]"));
            assert_eq!(serde_json::value::to_raw_value(&known).unwrap().get(), text, "`serde_json` has another name");
            assert_eq!(serde_json::from_str::<JsonText>(text).unwrap(), known);
            assert_eq!(serde_json::to_value(&known).unwrap(), serde_json::from_str::<serde_json::Value>(text).unwrap());
        }
        assert!(serde_json::from_str::<JsonText>("{").is_err());
    }
}
