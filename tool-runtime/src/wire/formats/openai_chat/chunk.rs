//! The chunks and whole bodies of Chat Completions as borrowed types.

use crate::wire::decode::arguments::Piece;
use crate::wire::decode::fields::{Content, Integer, List, Object, Raw, Text, shape};

shape! {
    pub(super) struct Chunk<'a> {
        "id" => pub(super) id: Text<'a>,
        "model" => pub(super) model: Text<'a>,
        "choices" => pub(super) choices: List<Choice<'a>>,
        "usage" => pub(super) usage: Raw<'a>,
        "error" => pub(super) error: Raw<'a>,
        "object" => pub(super) object: Text<'a>,
        "search_results" => pub(super) sources: Raw<'a>,
        "citations" => pub(super) addresses: Raw<'a>,
    }
}

shape! {
    pub(super) struct Choice<'a> {
        "index" => pub(super) index: Integer,
        "delta" => pub(super) delta: Object<Delta<'a>>,
        /// Parsed only for whole bodies, because small structs make small frames cheap.
        "message" => pub(super) message: Raw<'a>,
        "finish_reason" => pub(super) finish_reason: Text<'a>,
        "error" => pub(super) error: Raw<'a>,
    }
}

shape! {
    pub(super) struct Delta<'a> {
        "content" => pub(super) content: Content<'a>,
        "refusal" => pub(super) refusal: Text<'a>,
        "tool_calls" => pub(super) tool_calls: List<ToolDelta<'a>>,
        "function_call" => pub(super) function_call: Raw<'a>,
        "reasoning_content" => pub(super) reasoning_content: Text<'a>,
        "reasoning" => pub(super) reasoning: Text<'a>,
        rare rare: [
            "reasoning_details",
            "thinking_blocks",
            "extra_content",
            "thought_signature",
            "provider_specific_fields",
            "annotations",
            "audio",
            "images",
        ] and all but ["role"],
    }
}

shape! {
    pub(super) struct ToolDelta<'a> {
        "index" => pub(super) index: Integer,
        "id" => pub(super) id: Text<'a>,
        "function" => pub(super) function: Object<Function<'a>>,
        rare rare: ["custom", "extra_content", "provider_specific_fields"] and all but ["type"],
    }
}

shape! {
    /// A call of a tool that takes free text instead of arguments.
    pub(super) struct Custom<'a> {
        "name" => pub(super) name: Text<'a>,
        "input" => pub(super) input: Text<'a>,
    }
}

shape! {
    pub(super) struct Function<'a> {
        "name" => pub(super) name: Text<'a>,
        "arguments" => pub(super) arguments: Piece<'a>,
    }
}

impl<'a> ToolDelta<'a> {
    /// The call of a free-form tool. Some servers send this member with every call.
    pub(super) fn custom(&self) -> Option<Custom<'a>> {
        let custom = Raw(self.rare.get("custom")).object::<Custom<'a>>().filter(|_| self.function.0.is_none())?;
        (!custom.name.get().is_empty() || !custom.input.get().is_empty()).then_some(custom)
    }

    pub(super) fn named<'s>(&'s self, custom: Option<&'s Custom<'a>>) -> (&'s str, &'s Piece<'a>) {
        match custom {
            Some(custom) => (custom.name.get(), &Piece::Nothing),
            None => self.function.0.as_ref().map_or(("", &Piece::Nothing), Function::parts),
        }
    }
}

impl<'a> Function<'a> {
    pub(super) fn parts(&self) -> (&str, &Piece<'a>) {
        (self.name.get(), &self.arguments)
    }

    /// Some servers send an empty legacy field in every message: `"function_call": {"name": "", "arguments": ""}` (rule
    /// R2 of `wire`).
    pub(super) fn is_empty(&self) -> bool {
        self.name.get().is_empty() && self.arguments.is_empty()
    }
}
