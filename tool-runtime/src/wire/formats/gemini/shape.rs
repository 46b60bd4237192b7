//! The responses of Gemini as borrowed types.

use crate::json::quote;
use crate::wire::Usage;
use crate::wire::decode::arguments::Piece;
use crate::wire::decode::cursor::{Invalid, Json};
use crate::wire::decode::fields::{Count, Field, Flag, Integer, List, Object, Raw, Text, Whole, shape};
use crate::wire::formats::gemini::partial;

shape! {
    pub(super) struct Response<'a> {
        "candidates" => pub(super) candidates: List<Candidate<'a>>,
        "promptFeedback" => prompt_feedback: Object<Box<PromptFeedback<'a>>>,
        "usageMetadata" => pub(super) usage: Object<Tokens>,
        "modelVersion" => pub(super) model: Text<'a>,
        "responseId" => pub(super) id: Text<'a>,
        "error" => pub(super) error: Raw<'a>,
    }
}

shape! {
    struct PromptFeedback<'a> {
        "blockReason" => block_reason: Text<'a>,
    }
}

shape! {
    pub(super) struct Candidate<'a> {
        "index" => pub(super) index: Integer,
        "content" => content: Object<Content<'a>>,
        "finishReason" => pub(super) finish_reason: Text<'a>,
        "groundingMetadata" => pub(super) grounding: Object<Box<Grounding<'a>>>,
        "citationMetadata" => pub(super) quoted: Object<Box<Quoted<'a>>>,
    }
}

shape! {
    struct Content<'a> {
        "parts" => parts: List<Part<'a>>,
    }
}

/// One part. Its unknown members are read from its JSON text.
#[derive(Default)]
pub(super) struct Part<'a> {
    pub(super) text: Text<'a>,
    pub(super) thought: Flag,
    pub(super) call: Object<Whole<'a, FunctionCall<'a>>>,
    pub(super) data: Object<Box<Blob<'a>>>,
    /// Whether the part has other members.
    pub(super) has_more: bool,
    whole: Option<Json<'a>>,
}

shape! {
    pub(super) struct FunctionCall<'a> {
        "id" => pub(super) id: Text<'a>,
        "name" => pub(super) name: Text<'a>,
        "args" => pub(super) args: Piece<'a>,
        "partialArgs" => pub(super) partial_args: List<partial::Value<'a>>,
        "willContinue" => pub(super) will_continue: Flag,
    }
}

shape! {
    pub(super) struct Blob<'a> {
        "mimeType" => pub(super) mime_type: Text<'a>,
        "data" => pub(super) data: Text<'a>,
    }
}

shape! {
    pub(super) struct Grounding<'a> {
        "groundingChunks" => pub(super) chunks: List<Chunk<'a>>,
    }
}

shape! {
    /// A source that the model quotes at length. The list has an older name in the Gemini API, and a newer one in
    /// Vertex AI.
    pub(super) struct Quoted<'a> {
        "citationSources" => pub(super) older: List<GroundingSource<'a>>,
        "citations" => pub(super) newer: List<GroundingSource<'a>>,
    }
}

shape! {
    pub(super) struct Chunk<'a> {
        "web" => pub(super) web: Object<GroundingSource<'a>>,
        "retrievedContext" => pub(super) retrieved: Object<GroundingSource<'a>>,
        "maps" => pub(super) maps: Object<GroundingSource<'a>>,
        "image" => pub(super) image: Object<GroundingSource<'a>>,
    }
}

shape! {
    pub(super) struct GroundingSource<'a> {
        "uri" => uri: Text<'a>,
        "sourceUri" => page: Text<'a>,
        "title" => pub(super) title: Text<'a>,
        "text" => pub(super) text: Text<'a>,
    }
}

shape! {
    pub(super) struct Tokens {
        "promptTokenCount" => prompt: Count,
        "candidatesTokenCount" => candidates: Count,
        "thoughtsTokenCount" => thoughts: Count,
        "toolUsePromptTokenCount" => tool_use_prompt: Count,
        "cachedContentTokenCount" => cached: Count,
    }
}

impl Response<'_> {
    pub(super) fn block_reason(&self) -> &str {
        self.prompt_feedback.0.as_ref().map_or("", |feedback| feedback.block_reason.get())
    }
}

impl<'a> Candidate<'a> {
    pub(super) fn parts(&self) -> impl Iterator<Item = &Part<'a>> {
        self.content.0.iter().flat_map(|content| content.parts.iter())
    }
}

impl<'a> Field<'a> for Part<'a> {
    fn read(&mut self, json: &mut Json<'a>) -> Result<(), Invalid> {
        self.whole = Some(json.clone());
        let mut seen = [false; 4];
        let mut once = |at: usize| match seen.get_mut(at).map(|seen| std::mem::replace(seen, true)) {
            Some(false) => Ok(()),
            _ => Err(Invalid),
        };
        json.object(|json, key| match key {
            "text" => once(0).and_then(|()| self.text.read(json)),
            "thought" => once(1).and_then(|()| self.thought.read(json)),
            "functionCall" => once(2).and_then(|()| self.call.read(json)),
            "inlineData" => once(3).and_then(|()| self.data.read(json)),
            _ => {
                self.has_more = true;
                json.skip()
            }
        })
    }
}

impl<'a> Part<'a> {
    /// The JSON text of the part.
    pub(super) fn whole(&self) -> Option<&'a str> {
        self.whole.clone()?.raw().ok()
    }

    /// An object of the members that are not in `but`; `null` members are left out.
    pub(super) fn rest(&self, but: &[&str]) -> String {
        let mut rest = String::from("{");
        if let Some(mut json) = self.whole.clone() {
            // The part was parsed before, so it is an object.
            let _ = json.object(|json, key| {
                let value = json.raw()?;
                if value != "null" && !but.contains(&key) {
                    if rest.len() > 1 {
                        rest.push(',');
                    }
                    quote(&mut rest, key);
                    rest.push(':');
                    rest.push_str(value);
                }
                Ok(())
            });
        }
        rest.push('}');
        rest
    }
}

impl GroundingSource<'_> {
    /// The URL of the source; for an image, the URL of the page that shows it.
    pub(super) fn address(&self) -> &str {
        if self.uri.get().is_empty() { self.page.get() } else { self.uri.get() }
    }
}

impl<'a> Chunk<'a> {
    pub(super) fn source(&self) -> Option<&GroundingSource<'a>> {
        [&self.web, &self.retrieved, &self.maps, &self.image].into_iter().find_map(|source| source.0.as_ref())
    }
}

impl Tokens {
    /// The tokens read and written; `None` if there is no count. The prompt's tokens include those from the cache. The
    /// candidates' tokens do not include thoughts. The model reads results of the provider's own tools in a separate
    /// pass.
    pub(super) fn usage(&self) -> Option<Usage> {
        let counts = [self.prompt, self.candidates, self.thoughts, self.tool_use_prompt];
        let [prompt, candidates, thoughts, tool_use_prompt] = counts.map(|count| count.count().unwrap_or(0));
        if counts.iter().all(|count| count.count().is_none()) {
            return None;
        }
        Some(Usage {
            cache_read_tokens: self.cached.count().unwrap_or(0),
            reasoning_tokens: thoughts,
            earlier_input_tokens: tool_use_prompt,
            ..Usage::new(prompt, candidates.saturating_add(thoughts))
        })
    }
}
