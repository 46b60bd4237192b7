//! JSON text that this crate wrote, as `serde_json`'s raw values.

use serde::ser::{Serialize, SerializeStruct, Serializer};
use serde_json::value::{RawValue, to_raw_value};

/// The name under which `serde_json` serialises its raw text.
pub(crate) const RAW: &str = "$serde_json::private::RawValue";

/// Wraps text that is known to be JSON without reading it again. `None` if it is not.
pub(crate) fn raw(text: &str) -> Option<Box<RawValue>> {
    let verbatim = to_raw_value(&Verbatim(text)).ok().filter(|raw| raw.get().len() == text.len());
    // Only if `serde_json` changes that name.
    verbatim.or_else(|| RawValue::from_string(text.to_owned()).ok())
}

struct Verbatim<'t>(&'t str);

impl Serialize for Verbatim<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut raw = serializer.serialize_struct(RAW, 1)?;
        raw.serialize_field(RAW, self.0)?;
        raw.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_as_it_is() {
        for text in ["{}", r#"{"a":[1,2.50,"\u00e9"]}"#, "null", "12345678901234567890"] {
            assert_eq!(raw(text).unwrap().get(), text);
            assert_eq!(to_raw_value(&Verbatim(text)).unwrap().get(), text, "`serde_json` has another name for it");
        }
    }
}
