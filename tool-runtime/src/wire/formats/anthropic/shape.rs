//! The events, messages and blocks of Anthropic as borrowed types, and functions that rewrite blocks.

use crate::json::quote;
use crate::wire::decode::cursor::{Invalid, Json};
use crate::wire::decode::fields::{Field, Integer, MAX_LIST, Object, Raw, Text, shape};
use crate::wire::formats::anthropic::usage::Tokens;
use crate::wire::history::Citation;

/// The type of the block that marks where another model takes over from a model that declined.
pub(super) const FALLBACK: &str = "fallback";

shape! {
    pub(super) struct Event<'a> {
        "type" => pub(super) kind: Text<'a>,
        "index" => pub(super) index: Integer,
        "message" => pub(super) message: Raw<'a>,
        "content_block" => pub(super) content_block: Raw<'a>,
        "delta" => pub(super) delta: Object<Delta<'a>>,
        "usage" => pub(super) usage: Raw<'a>,
        "error" => pub(super) error: Raw<'a>,
    }
}

shape! {
    pub(super) struct Delta<'a> {
        "type" => pub(super) kind: Text<'a>,
        "text" => pub(super) text: Text<'a>,
        "partial_json" => pub(super) partial_json: Text<'a>,
        "thinking" => pub(super) thinking: Text<'a>,
        "signature" => pub(super) signature: Text<'a>,
        "citation" => pub(super) citation: Raw<'a>,
        "stop_reason" => pub(super) stop_reason: Text<'a>,
        "container" => pub(super) container: Raw<'a>,
    }
}

shape! {
    pub(super) struct Message<'a> {
        "type" => pub(super) kind: Text<'a>,
        "id" => pub(super) id: Text<'a>,
        "model" => pub(super) model: Text<'a>,
        "content" => pub(super) content: Blocks<'a>,
        "stop_reason" => pub(super) stop_reason: Text<'a>,
        "container" => pub(super) container: Raw<'a>,
        "usage" => pub(super) usage: Object<Tokens>,
        "error" => pub(super) error: Raw<'a>,
    }
}

shape! {
    pub(super) struct ContentBlock<'a> {
        "type" => pub(super) kind: Text<'a>,
        "id" => pub(super) id: Text<'a>,
        "name" => pub(super) name: Text<'a>,
        "input" => pub(super) input: Raw<'a>,
        "text" => pub(super) text: Text<'a>,
        "thinking" => pub(super) thinking: Text<'a>,
        "signature" => pub(super) signature: Text<'a>,
        "citations" => pub(super) citations: Raw<'a>,
        "to" => pub(super) to: Object<Served<'a>>,
    }
}

shape! {
    /// The model that continues after another one declined.
    pub(super) struct Served<'a> {
        "model" => pub(super) model: Text<'a>,
    }
}

shape! {
    /// An event with the JSON text of its delta, for fields that only one kind of block has.
    pub(super) struct Whole<'a> {
        "delta" => pub(super) delta: Raw<'a>,
    }
}

/// The JSON texts of the blocks of a message.
#[derive(Default)]
pub(super) struct Blocks<'a>(pub(super) Vec<&'a str>);

impl<'a> Field<'a> for Blocks<'a> {
    fn read(&mut self, json: &mut Json<'a>) -> Result<(), Invalid> {
        if json.peek() != b'[' {
            return json.skip();
        }
        json.array(|json| {
            if self.0.len() == MAX_LIST {
                return Err(Invalid);
            }
            self.0.push(json.raw()?);
            Ok(())
        })
    }
}

shape! {
    struct Entry<'a> {
        "title" => title: Text<'a>,
        "document_title" => document_title: Text<'a>,
        "url" => url: Text<'a>,
        "source" => source: Text<'a>,
        "cited_text" => cited_text: Text<'a>,
    }
}

/// The JSON texts of the entries of a list.
pub(super) fn entries(list: &str) -> Vec<&str> {
    let mut blocks = Blocks::default();
    if blocks.read(&mut Json::new(list)).is_ok() { blocks.0 } else { Vec::new() }
}

/// The sources in a list of citations; entries that are not objects are skipped.
pub(super) fn sources(list: &str) -> Vec<Citation> {
    let kept = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let sources = entries(list).into_iter().filter_map(|entry| Raw(Some(entry)).object::<Entry<'_>>());
    let citations = sources.map(|source| {
        // The application can use any text as the source of a search result; only text with `://` is a URL.
        let address = kept(source.source.get()).filter(|source| source.contains("://"));
        Citation {
            title: kept(source.title.get()).or_else(|| kept(source.document_title.get())),
            url: kept(source.url.get()).or(address),
            quote: kept(source.cited_text.get()),
        }
    });
    citations.collect()
}

/// The members of an object with their JSON texts; empty if it is not an object.
pub(super) fn members(object: &str) -> Vec<(String, &str)> {
    let mut members = Vec::new();
    let read = Json::new(object).object(|json, key| {
        members.push((key.to_owned(), json.raw()?));
        Ok(())
    });
    if read.is_ok() { members } else { Vec::new() }
}

/// Rewrites an object: drops the members in `without` and sets those in `set` to JSON values. `None` if no member
/// remains.
pub(super) fn rewritten(object: &str, without: &[&str], mut set: Vec<(&str, String)>) -> Option<String> {
    let mut out = String::with_capacity(object.len());
    let mut write = |key: &str, value: &str| {
        out.push(if out.is_empty() { '{' } else { ',' });
        quote(&mut out, key);
        out.push(':');
        out.push_str(value);
    };
    for (key, value) in members(object).iter().filter(|(key, _)| !without.contains(&key.as_str())) {
        match set.iter().position(|(name, _)| name == key) {
            Some(at) => {
                let (_, value) = set.remove(at);
                write(key, &value);
            }
            None => write(key, value),
        }
    }
    for (key, value) in set {
        write(key, &value);
    }
    (!out.is_empty()).then(|| out + "}")
}

/// A string as JSON text.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    quote(&mut out, text);
    out
}
