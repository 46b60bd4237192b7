//! [`Node`]: JSON to write, which can contain a provider's text unchanged.

use std::borrow::Cow;

use crate::json::quote;

/// JSON to write.
pub(crate) enum Node<'a> {
    Null,
    Bool(bool),
    Text(Cow<'a, str>),
    /// Valid JSON text, written unchanged.
    Raw(Cow<'a, str>),
    List(Vec<Node<'a>>),
    Object(Object<'a>),
}

/// A JSON object to write: the encoder's own fields, followed by those of provider state.
#[derive(Default)]
pub(crate) struct Object<'a> {
    fields: Vec<(&'static str, Node<'a>)>,
    provider_state: Option<Cow<'a, str>>,
}

impl<'a> Object<'a> {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Creates an object with the field `type`, as in most blocks and items.
    pub(crate) fn of_type(kind: &'a str) -> Self {
        Self::new().with("type", kind)
    }

    /// Adds a field.
    pub(crate) fn with(mut self, key: &'static str, value: impl Into<Node<'a>>) -> Self {
        self.fields.push((key, value.into()));
        self
    }

    /// Adds the fields of provider state. Their keys must differ from those already added.
    pub(crate) fn with_provider_state(self, object: Option<&'a str>) -> Self {
        self.with_members(object.map(Cow::Borrowed))
    }

    /// Like [`with_provider_state`](Self::with_provider_state), but also accepts an owned object.
    pub(crate) fn with_members(mut self, object: Option<Cow<'a, str>>) -> Self {
        self.provider_state = object;
        self
    }

    pub(super) fn get_mut(&mut self, key: &str) -> Option<&mut Node<'a>> {
        self.fields.iter_mut().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// Adds a field to an object that is already part of a list.
    pub(crate) fn add(&mut self, key: &'static str, value: impl Into<Node<'a>>) {
        self.fields.push((key, value.into()));
    }

    /// The last block of a message, if the message has this role and the encoder built the block.
    pub(crate) fn last_block(&mut self, role: &str, key: &str) -> Option<&mut Self> {
        let same = matches!(self.get_mut("role"), Some(Node::Text(own)) if *own == role);
        match self.get_mut(key).filter(|_| same)? {
            Node::List(blocks) => match blocks.last_mut()? {
                Node::Object(block) => Some(block),
                _ => None,
            },
            _ => None,
        }
    }

    fn write(&self, out: &mut String) {
        out.push('{');
        for (at, (key, value)) in self.fields.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            quote(out, key);
            out.push(':');
            value.write(out);
        }
        let members =
            self.provider_state.as_deref().and_then(|object| object.trim().strip_prefix('{')?.strip_suffix('}'));
        if let Some(members) = members.filter(|members| !members.trim().is_empty()) {
            if !self.fields.is_empty() {
                out.push(',');
            }
            out.push_str(members);
        }
        out.push('}');
    }
}

impl Node<'_> {
    /// Writes the JSON text.
    pub(crate) fn write(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Self::Text(text) => quote(out, text),
            Self::Raw(json) => out.push_str(json),
            Self::List(list) => {
                out.push('[');
                for (at, value) in list.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    value.write(out);
                }
                out.push(']');
            }
            Self::Object(object) => object.write(out),
        }
    }
}

impl<'a> From<&'a str> for Node<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Node<'_> {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl<'a> From<Cow<'a, str>> for Node<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for Node<'_> {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl<'a> From<Object<'a>> for Node<'a> {
    fn from(object: Object<'a>) -> Self {
        Self::Object(object)
    }
}

impl<'a, N: Into<Node<'a>>> From<Vec<N>> for Node<'a> {
    fn from(list: Vec<N>) -> Self {
        Self::List(list.into_iter().map(Into::into).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::{Node, Object};

    #[test]
    fn carried_fields_are_written_as_they_came() {
        let written = |object: Object<'_>| {
            let mut out = String::new();
            Node::from(object).write(&mut out);
            out
        };
        let text = || Object::of_type("text").with("text", "a\"b");
        assert_eq!(
            written(text().with_provider_state(Some(r#"{"n":1.0e400}"#))),
            r#"{"type":"text","text":"a\"b","n":1.0e400}"#
        );
        assert_eq!(written(text().with_provider_state(Some(" { } "))), r#"{"type":"text","text":"a\"b"}"#);
        assert_eq!(written(Object::new().with_provider_state(Some(r#"{"a":[]}"#))), r#"{"a":[]}"#);
        assert_eq!(
            written(Object::new().with("list", vec!["a", "b"]).with("no", false)),
            r#"{"list":["a","b"],"no":false}"#
        );
    }
}
