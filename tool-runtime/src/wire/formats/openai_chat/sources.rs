//! Reads the sources of a message, inside and outside it.

use serde_json::Value;

use crate::wire::decode::fields::{List, MAX_LIST, Text, read, shape};
use crate::wire::decode::turn::Writer;
use crate::wire::history::Citation;

shape! {
    pub(super) struct CitedSource<'a> {
        "title" => title: Text<'a>,
        "url" => pub(super) url: Text<'a>,
        "content" => content: Text<'a>,
        "snippet" => snippet: Text<'a>,
    }
}

impl CitedSource<'_> {
    pub(super) fn citation(&self) -> Citation {
        let named = |text: &Text<'_>| Some(text.get()).filter(|text| !text.is_empty()).map(str::to_owned);
        let quote = named(&self.content).or_else(|| named(&self.snippet));
        Citation { title: named(&self.title), url: named(&self.url), quote }
    }
}

/// Adds the sources that some servers list outside the message. Without such a list, adds their URLs: older answers of
/// Perplexity, and Grok, have only `citations` (`perplexityResponseSchema` in `@ai-sdk/perplexity`). No server accepts
/// them in a request.
pub(super) fn beside(list: &str, addresses: &str, turn: &mut Writer<'_>) {
    let list: List<CitedSource<'_>> = read(list).unwrap_or_default();
    list.iter().for_each(|source| turn.citation(source.citation()));
    if list.is_empty() {
        let addresses: Vec<Value> = serde_json::from_str(addresses).unwrap_or_default();
        let named = addresses.iter().filter_map(Value::as_str).filter(|address| !address.is_empty());
        for address in named.take(MAX_LIST) {
            turn.citation(Citation { url: Some(address.to_owned()), ..Citation::default() });
        }
    }
}
