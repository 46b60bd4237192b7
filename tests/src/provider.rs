//! The bytes that a provider streams for a turn, in each format that can be decoded.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tool_runtime::wire::Format;

/// One turn of a model: its text, and its calls as id, name and argument text.
#[derive(Debug, Clone, Default)]
pub struct Turn {
    /// The text.
    pub text: String,
    /// The calls.
    pub calls: Vec<(String, String, String)>,
}

impl Turn {
    /// A turn of text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self { text: text.to_owned(), calls: Vec::new() }
    }

    /// A turn of calls.
    #[must_use]
    pub fn calls<const N: usize>(calls: [(&str, &str, &str); N]) -> Self {
        let own = |(id, name, arguments): (&str, &str, &str)| (id.to_owned(), name.to_owned(), arguments.to_owned());
        Self { text: String::new(), calls: calls.map(own).to_vec() }
    }

    /// The body of a streamed response.
    #[must_use]
    pub fn stream(&self, format: Format) -> String {
        match format {
            Format::OpenAiChat => self.openai_chat(),
            Format::OpenAiResponses => self.openai_responses(),
            Format::Anthropic => self.anthropic(),
            Format::Ollama => self.ollama(),
            Format::Gemini => self.gemini(),
            _ => String::new(),
        }
    }

    fn openai_chat(&self) -> String {
        let frame = |delta: &Value, finish: &Value| {
            json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m",
                "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
        };
        let mut out = Events::default();
        out.data(&frame(&json!({"role": "assistant", "content": self.text}), &Value::Null));
        for (index, (id, name, arguments)) in self.calls.iter().enumerate() {
            let start =
                json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}});
            out.data(&frame(&json!({"tool_calls": [start]}), &Value::Null));
            for piece in pieces(arguments) {
                let delta = json!({"index": index, "function": {"arguments": piece}});
                out.data(&frame(&json!({"tool_calls": [delta]}), &Value::Null));
            }
        }
        let finish = if self.calls.is_empty() { "stop" } else { "tool_calls" };
        out.data(&frame(&json!({}), &json!(finish)));
        let usage = json!({"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13});
        out.data(&json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [], "usage": usage}));
        out.0 + "data: [DONE]\n\n"
    }

    fn openai_responses(&self) -> String {
        let mut out = Events::default();
        out.event(&json!({"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}}));
        let mut items = Vec::new();
        if !self.text.is_empty() {
            let part = json!({"type": "output_text", "text": self.text, "annotations": []});
            let item = json!({"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]});
            let open =
                json!({"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []});
            out.event(&json!({"type": "response.output_item.added", "output_index": 0, "item": open}));
            let delta = json!({"type": "response.output_text.delta", "output_index": 0, "item_id": "msg_1",
                "content_index": 0, "delta": self.text});
            out.event(&delta);
            out.event(&json!({"type": "response.output_item.done", "output_index": 0, "item": item}));
            items.push(item);
        }
        for (id, name, arguments) in &self.calls {
            let (index, item_id) = (items.len(), format!("fc_{id}"));
            let item = |arguments: &str, status: &str| {
                json!({"id": item_id, "type": "function_call", "call_id": id, "name": name, "arguments": arguments,
                    "status": status})
            };
            out.event(
                &json!({"type": "response.output_item.added", "output_index": index, "item": item("", "in_progress")}),
            );
            for piece in pieces(arguments) {
                out.event(&json!({"type": "response.function_call_arguments.delta", "output_index": index,
                    "item_id": item_id, "delta": piece}));
            }
            out.event(&json!({"type": "response.function_call_arguments.done", "output_index": index,
                "item_id": item_id, "arguments": arguments}));
            let done = item(arguments, "completed");
            out.event(&json!({"type": "response.output_item.done", "output_index": index, "item": done}));
            items.push(done);
        }
        let usage = json!({"input_tokens": 9, "output_tokens": 4, "total_tokens": 13});
        let response = json!({"id": "resp_1", "status": "completed", "output": items, "usage": usage});
        out.event(&json!({"type": "response.completed", "response": response}));
        out.0
    }

    fn anthropic(&self) -> String {
        let mut out = Events::default();
        let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
            "stop_reason": null, "usage": {"input_tokens": 9, "output_tokens": 1}});
        out.event(&json!({"type": "message_start", "message": message}));
        let mut index = 0;
        let mut block = |out: &mut Events, start: Value, deltas: Vec<Value>| {
            out.event(&json!({"type": "content_block_start", "index": index, "content_block": start}));
            for delta in deltas {
                out.event(&json!({"type": "content_block_delta", "index": index, "delta": delta}));
            }
            out.event(&json!({"type": "content_block_stop", "index": index}));
            index += 1;
        };
        if !self.text.is_empty() {
            let delta = json!({"type": "text_delta", "text": self.text});
            block(&mut out, json!({"type": "text", "text": ""}), vec![delta]);
        }
        for (id, name, arguments) in &self.calls {
            let deltas = pieces(arguments).map(|piece| json!({"type": "input_json_delta", "partial_json": piece}));
            block(&mut out, json!({"type": "tool_use", "id": id, "name": name, "input": {}}), deltas.collect());
        }
        let reason = if self.calls.is_empty() { "end_turn" } else { "tool_use" };
        let delta = json!({"stop_reason": reason, "stop_sequence": null});
        out.event(&json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 4}}));
        out.event(&json!({"type": "message_stop"}));
        out.0
    }

    /// In this format arguments are objects, so malformed ones are sent as a string.
    fn ollama(&self) -> String {
        let calls: Vec<_> = self
            .calls
            .iter()
            .map(|(id, name, arguments)| {
                let arguments = serde_json::from_str(arguments).unwrap_or_else(|_| Value::from(arguments.as_str()));
                json!({"id": id, "function": {"name": name, "arguments": arguments}})
            })
            .collect();
        let mut message = json!({"role": "assistant", "content": self.text});
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
        }
        let head = json!({"model": "m", "created_at": "2026-01-01T00:00:00Z", "message": message, "done": false});
        let end = json!({"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": true, "done_reason": "stop",
            "message": {"role": "assistant", "content": ""}, "prompt_eval_count": 9, "eval_count": 4});
        format!("{head}\n{end}\n")
    }

    /// In this format arguments are objects, too.
    fn gemini(&self) -> String {
        let chunk = |parts: Vec<Value>, word: &Value| {
            let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
            if !word.is_null() {
                candidate["finishReason"] = word.clone();
            }
            json!({"candidates": [candidate], "modelVersion": "m", "responseId": "r1",
                "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 4, "totalTokenCount": 13}})
        };
        let mut out = Events::default();
        if !self.text.is_empty() {
            out.data(&chunk(vec![json!({"text": self.text})], &Value::Null));
        }
        for (id, name, arguments) in &self.calls {
            let arguments = serde_json::from_str(arguments).unwrap_or_else(|_| Value::from(arguments.as_str()));
            let call = json!({"functionCall": {"id": id, "name": name, "args": arguments}});
            out.data(&chunk(vec![call], &Value::Null));
        }
        out.data(&chunk(vec![json!({"text": ""})], &json!("STOP")));
        out.0
    }
}

/// Server-sent events.
#[derive(Default)]
struct Events(String);

impl Events {
    fn data(&mut self, data: &Value) {
        let _ = write!(self.0, "data: {data}\n\n");
    }

    fn event(&mut self, data: &Value) {
        let name = data["type"].as_str().unwrap_or_default();
        let _ = write!(self.0, "event: {name}\ndata: {data}\n\n");
    }
}

/// Argument text as models write it, a few characters at a time.
fn pieces(text: &str) -> impl Iterator<Item = String> {
    let characters: Vec<_> = text.chars().collect();
    characters.chunks(5).map(|piece| piece.iter().collect()).collect::<Vec<String>>().into_iter()
}
