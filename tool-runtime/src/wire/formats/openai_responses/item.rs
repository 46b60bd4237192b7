//! An output item as a borrowed type, and the kinds of items that wait for the client.

use crate::wire::decode::arguments::Piece;
use crate::wire::decode::fields::{List, Text, shape};
use crate::wire::history::Citation;

shape! {
    /// One output item.
    pub(super) struct Item<'a> {
        "type" => pub(super) kind: Text<'a>,
        "id" => pub(super) id: Text<'a>,
        "call_id" => pub(super) call_id: Text<'a>,
        "name" => pub(super) name: Text<'a>,
        "arguments" => pub(super) arguments: Piece<'a>,
        "input" => pub(super) input: Text<'a>,
        "execution" => pub(super) execution: Text<'a>,
        "content" => pub(super) content: List<Part<'a>>,
        "summary" => pub(super) summary: List<Part<'a>>,
        "encrypted_content" => encrypted: Text<'a>,
        "result" => pub(super) result: Text<'a>,
        "output_format" => pub(super) output_format: Text<'a>,
    }
}

shape! {
    pub(super) struct Part<'a> {
        "type" => pub(super) kind: Text<'a>,
        "text" => pub(super) text: Text<'a>,
        "refusal" => pub(super) refusal: Text<'a>,
        "annotations" => pub(super) annotations: List<Annotation<'a>>,
    }
}

shape! {
    pub(super) struct Annotation<'a> {
        "title" => title: Text<'a>,
        "filename" => filename: Text<'a>,
        "url" => url: Text<'a>,
    }
}

impl Annotation<'_> {
    /// The source that the annotation names; `None` if it names none.
    pub(super) fn citation(&self) -> Option<Citation> {
        let named = |text: &Text<'_>| Some(text.get()).filter(|text| !text.is_empty()).map(str::to_owned);
        let citation = Citation {
            title: named(&self.title).or_else(|| named(&self.filename)),
            url: named(&self.url),
            quote: None,
        };
        (citation != Citation::default()).then_some(citation)
    }
}

/// The kinds of items that the client has to act on, other than calls. The provider handles all other items.
const WAITING: &[&str] = &[
    "apply_patch_call",
    "computer_call",
    "local_shell_call",
    "mcp_approval_request",
    "shell_call",
    "tool_search_call",
];

impl Item<'_> {
    pub(super) fn is_call(&self) -> bool {
        matches!(self.kind.get(), "function_call" | "custom_tool_call")
    }

    /// The kind of the item, if the client has to act on it and it is not a call.
    pub(super) fn waits(&self) -> Option<&'static str> {
        let kind = WAITING.iter().find(|known| **known == self.kind.get())?;
        // The provider executes the search unless `execution` names the client.
        (*kind != "tool_search_call" || self.execution.get() == "client").then_some(*kind)
    }

    /// Whether the item is the provider's answer to an item that waited.
    pub(super) fn answers(&self) -> bool {
        self.kind.get().ends_with("_output")
    }

    /// Whether the item comes from a provider's tool, so that any model of the provider can read it.
    pub(super) fn is_of_server_tool(&self) -> bool {
        matches!(self.kind.get(), "web_search_call" | "file_search_call" | "code_interpreter_call" | "mcp_call")
    }

    /// Whether reasoning is complete in itself, so that the provider can read it without the stored response.
    pub(super) fn is_self_contained(&self) -> bool {
        !self.encrypted.get().is_empty() || !self.content.is_empty()
    }

    /// The reasoning to show: its summary, or its text if there is no summary.
    pub(super) fn reasoning(&self) -> String {
        let texts = |list: &List<Part<'_>>| {
            let texts = list.iter().map(|part| part.text.get()).filter(|text| !text.is_empty());
            texts.collect::<Vec<_>>().join("\n\n")
        };
        let summary = texts(&self.summary);
        if summary.is_empty() { texts(&self.content) } else { summary }
    }
}
