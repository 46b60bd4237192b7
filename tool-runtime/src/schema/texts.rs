//! Schema values to the text that is kept: keys sorted, no white space, within the size cap.

use serde_json::Value;

use crate::schema::SchemaProblem;
use crate::tool::Schema;

/// The largest schema that is accepted, in bytes of its text. The largest real one seen has 13 KiB.
pub(crate) const MAX_BYTES: usize = 64 * 1024;

/// Writes a schema, whoever made it.
pub(crate) fn schema_text(value: &Value) -> Result<Schema, SchemaProblem> {
    let text = to_text(value);
    if text.len() > MAX_BYTES {
        return Err(too_large(text.len()));
    }
    Ok(Schema::from_text(text))
}

/// Keys sorted, no white space, numbers exact.
pub(crate) fn to_text(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by(|a, b| a.0.encode_utf16().cmp(b.0.encode_utf16()));
            out.push('{');
            for (at, (key, member)) in sorted.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write(member, out);
            }
            out.push('}');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

/// The problem of a schema whose text is over the cap.
pub(crate) fn too_large(bytes: usize) -> SchemaProblem {
    SchemaProblem::new(
        "",
        format!("the schema has {bytes} bytes, over the limit of {MAX_BYTES}"),
        "split the tool, or shorten the lists and descriptions in its types",
    )
}
