//! [`Listed`]: one tool in a server's list. Each is parsed separately, so that an invalid one does not affect the
//! others.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::catalog::look_alike;
use crate::error::{ParseError, Problem};
use crate::json::{self, Limits};
use crate::mcp::source::http::headers::{self, ParamHeader};
use crate::mcp::source::message;
use crate::mcp::source::result::plain;
use crate::mcp::source::slug;
use crate::schema;
use crate::text::sentence;
use crate::tool::Hash;

/// The longest definition, in bytes.
const MAX_BYTES: usize = 64 * 1024;

/// The deepest nesting of a definition's JSON; its schemas have other limits.
const MAX_DEPTH: usize = 110;

/// The longest name of a tool that is displayed, in bytes.
const MAX_SHOWN_NAME: usize = 128;

/// Returns the error that rejects a tool of a server, regardless of the policy.
fn rejection(code: &'static str, message: impl Into<String>) -> ParseError {
    ParseError::formatted(code, message.into())
}

/// One tool in a server's list.
#[derive(Debug, Clone)]
pub(super) struct Listed {
    /// The server's own name of the tool; empty if the name cannot be read.
    pub(super) raw: String,
    /// The definition, or the reason for its rejection.
    pub(super) admitted: Result<Definition, ParseError>,
}

/// The definition of a tool that a catalog can contain.
#[derive(Debug, Clone)]
pub(super) struct Definition {
    /// The name of the tool in this library.
    pub(super) name: String,
    pub(super) pin: Hash,
    pub(super) title: Option<String>,
    pub(super) description: String,
    pub(super) input: Value,
    pub(super) output: Option<Value>,
    /// The arguments that are also sent as headers. Empty for a server that runs as a process.
    pub(super) headers: Vec<ParamHeader>,
    /// The whole definition, as the server published it.
    pub(super) published: Value,
}

impl Listed {
    /// Reads one entry of a server's list.
    pub(super) fn read(server: &str, text: &str, is_http: bool) -> Self {
        #[derive(Deserialize)]
        struct Named<'a> {
            #[serde(borrow)]
            name: Option<&'a RawValue>,
        }
        let named = serde_json::from_str::<Named<'_>>(text).ok().and_then(|named| named.name);
        let shown = named.and_then(|name| message::string(name.get())).unwrap_or_default();
        let admitted = admit(server, text, is_http);
        let raw = match &admitted {
            Ok(_) => shown,
            Err(_) => sentence(&shown, MAX_SHOWN_NAME),
        };
        Self { raw, admitted }
    }
}

fn admit(server: &str, text: &str, is_http: bool) -> Result<Definition, ParseError> {
    let malformed = |message: &str| rejection("malformed", message);
    if text.len() > MAX_BYTES {
        return Err(rejection("too_large", format!("the definition is longer than {MAX_BYTES} bytes")));
    }
    let tree = json::parse_value(text, &Limits { bytes: MAX_BYTES, depth: MAX_DEPTH })
        .map_err(|error| rejection("malformed", format!("the definition cannot be read: {error}")))?;
    let published = tree.to_value();
    let Value::Object(members) = &published else { return Err(malformed("the definition is not an object")) };
    let raw = members.get("name").and_then(Value::as_str).ok_or_else(|| malformed("`name` is not text"))?;
    let name = slug::name(server, raw).map_err(|message| rejection("illegal_name", message))?;
    let text_of = |value: Option<&Value>, key: &str| match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(malformed(&format!("`{key}` is not text"))),
    };
    let annotations = members.get("annotations").filter(|annotations| !annotations.is_null());
    if annotations.is_some_and(|annotations| !annotations.is_object()) {
        return Err(malformed("`annotations` is not an object"));
    }
    let title = text_of(members.get("title"), "title")?;
    let title = match title {
        None => text_of(annotations.and_then(|annotations| annotations.get("title")), "annotations.title")?,
        title => title,
    };
    let description = text_of(members.get("description"), "description")?.unwrap_or_default();
    let input = members.get("inputSchema").ok_or_else(|| malformed("`inputSchema` is missing"))?.clone();
    if input.get("type").and_then(Value::as_str) != Some("object") {
        return Err(rejection("input_schema", "`inputSchema` lacks `\"type\": \"object\"`"));
    }
    checked("input_schema", &input)?;
    let output = members.get("outputSchema").filter(|schema| !schema.is_null()).cloned();
    if let Some(output) = &output {
        if !output.is_object() {
            return Err(rejection("output_schema", "`outputSchema` is not an object"));
        }
        checked("output_schema", output)?;
    }
    let support = members.get("execution").and_then(|execution| execution.get("taskSupport"));
    if support.and_then(Value::as_str) == Some("required") {
        return Err(rejection("unsupported_execution", "the server runs the tool only as a task"));
    }
    let headers = if is_http { headers::read(&input) } else { Ok(Vec::new()) };
    let headers = headers.map_err(|message| rejection("illegal_header", sentence(&message, 512)))?;
    let description = match description.trim() {
        "" => format!("The tool `{}` of the server `{server}`, which does not describe it.", raw.escape_debug()),
        _ => description,
    };
    let (title, description) = (title.as_deref().map(plain), plain(&description));
    let (input, output) = (readable(input), output.map(readable));
    Ok(Definition { name, pin: schema::pin(&published), title, description, input, output, headers, published })
}

/// Removes invisible characters from the descriptions of a schema: a model would read them, but the person who pins the
/// definition would not see them.
fn readable(mut schema: Value) -> Value {
    describe(&mut schema);
    schema
}

fn describe(schema: &mut Value) {
    match schema {
        Value::Array(schemas) => schemas.iter_mut().for_each(describe),
        Value::Object(members) => {
            for (key, member) in members.iter_mut() {
                match (&**key, member) {
                    ("title" | "description" | "$comment", Value::String(text)) => *text = plain(text),
                    // These keywords hold values, which stay unchanged.
                    ("const" | "enum" | "default" | "examples", _) => {}
                    (
                        "properties" | "patternProperties" | "dependentSchemas" | "$defs" | "definitions",
                        Value::Object(named),
                    ) => {
                        named.values_mut().for_each(describe);
                    }
                    (_, schema) => describe(schema),
                }
            }
        }
        _ => {}
    }
}

fn checked(code: &'static str, schema: &Value) -> Result<(), ParseError> {
    schema::check_foreign(schema).map(drop).map_err(|problems| {
        let shown: Vec<_> = problems.iter().take(3).map(Problem::to_string).collect();
        rejection(code, sentence(&shown.join("; "), 512))
    })
}

/// Rejects tools that have the same name, or names that a model could confuse, because it is unknown which of them is
/// the right one. A definition that is listed several times, for example because a server repeats a page, is treated as
/// one tool.
pub(super) fn set_apart(listed: &mut Vec<Listed>) {
    let mut pins = HashSet::new();
    listed.retain(|one| one.admitted.as_ref().ok().is_none_or(|definition| pins.insert(definition.pin)));
    let (mut raws, mut names) = (HashMap::<&str, usize>::new(), HashMap::<String, usize>::new());
    for one in listed.iter() {
        *raws.entry(&one.raw).or_default() += 1;
        if let Ok(definition) = &one.admitted {
            *names.entry(look_alike(&definition.name)).or_default() += 1;
        }
    }
    let apart: Vec<_> = listed
        .iter()
        .map(|one| {
            let definition = one.admitted.as_ref().ok()?;
            if raws.get(one.raw.as_str()).is_some_and(|count| *count > 1) {
                return Some(rejection("duplicate_name", "the server lists several tools with this name"));
            }
            let alike = names.get(&look_alike(&definition.name)).is_some_and(|count| *count > 1);
            alike.then(|| {
                let message = format!("another tool of the server has the name `{}` or a similar one", definition.name);
                rejection("colliding_name", message)
            })
        })
        .collect();
    for (one, why) in listed.iter_mut().zip(apart) {
        if let Some(why) = why {
            one.admitted = Err(why);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_model_reads_no_character_that_a_reviewer_does_not_see() {
        let hidden = "Reads.\u{202e}\u{e0049}\u{200b}";
        let published = json!({
            "name": "read", "title": hidden, "description": hidden,
            "inputSchema": {"type": "object", "title": hidden, "properties": {
                "title": {"type": "string", "description": hidden, "enum": ["a\u{200b}"]},
                "default": {"anyOf": [{"type": "string", "description": hidden}], "default": {"title": "b\u{200b}"}},
            }},
            "outputSchema": {"type": "object", "description": hidden},
        });
        let definition = Listed::read("s", &published.to_string(), false).admitted.unwrap();
        assert_eq!((definition.title.as_deref(), definition.description.as_str()), (Some("Reads."), "Reads."));
        let schemas = format!("{}{}", definition.input, definition.output.unwrap());
        assert!(!schemas.contains('\u{202e}') && !schemas.contains('\u{e0049}'), "{schemas}");
        assert_eq!(schemas.matches("\"Reads.\"").count(), 4, "{schemas}");
        // Values keep their invisible characters, because the server compares them. The published definition keeps them
        // because the pin covers it.
        assert_eq!(schemas.matches('\u{200b}').count(), 2, "{schemas}");
        assert_eq!((definition.pin, definition.published), (schema::pin(&published), published));
    }
}
