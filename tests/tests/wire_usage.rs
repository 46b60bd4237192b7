//! Tokens by kind: what each provider counts is what budgets and prices are applied to.

#![allow(clippy::unwrap_used, reason = "a test that cannot read its fixture has nothing to say")]

use serde_json::{Value, json};
use tests::wire::decode;
use tool_runtime::agent::Prices;
use tool_runtime::wire::{Format, Usage};

/// Decodes a whole body and returns input, output, cache read, cache write, reasoning, and input that was not cached.
fn counted(format: Format, body: &Value) -> [u64; 6] {
    let usage = decode(format, body.to_string().as_bytes(), usize::MAX).usage.unwrap();
    let (input, output) = (usage.total_input(), usage.total_output());
    let (read, write) = (usage.cache_read_tokens, usage.cache_write_tokens);
    [input, output, read, write, usage.reasoning_tokens, usage.uncached_input()]
}

#[test]
fn each_format_counts_every_kind() {
    let chat = |usage: Value| {
        let message = json!({"message": {"content": "Hi"}, "finish_reason": "stop"});
        counted(Format::OpenAiChat, &json!({"choices": [message], "usage": usage}))
    };
    let details = |read: Value, written: Value| {
        json!({"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": read,
            "completion_tokens_details": written})
    };
    let cached = details(json!({"cached_tokens": 60, "audio_tokens": 0}), json!({"reasoning_tokens": 12}));
    assert_eq!(chat(cached), [100, 20, 60, 0, 12, 40]);
    // OpenRouter and LiteLLM.
    let written = details(json!({"cached_tokens": 60, "cache_write_tokens": 30}), json!(null));
    assert_eq!(chat(written), [100, 20, 60, 30, 0, 10]);
    let gateway = json!({"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 0},
        "cache_read_input_tokens": 60, "cache_creation_input_tokens": 30});
    assert_eq!(chat(gateway), [100, 20, 60, 30, 0, 10]);
    let deepseek = json!({"prompt_tokens": 100, "completion_tokens": 20, "prompt_cache_hit_tokens": 64,
        "prompt_cache_miss_tokens": 36});
    assert_eq!(chat(deepseek), [100, 20, 64, 0, 0, 36]);
    // Words that are no counts, and a cache that is larger than the prompt.
    let odd = details(json!({"cached_tokens": "many"}), json!([]));
    assert_eq!(chat(odd), [100, 20, 0, 0, 0, 100]);
    let larger = details(json!({"cached_tokens": 101}), json!({"reasoning_tokens": -1}));
    assert_eq!(chat(larger), [100, 20, 101, 0, 0, 0]);

    let responses = json!({"object": "response", "status": "completed", "output": [], "usage": {"input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30}, "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 12}, "total_tokens": 120}});
    assert_eq!(counted(Format::OpenAiResponses, &responses), [100, 20, 60, 30, 12, 10]);

    let anthropic = json!({"type": "message", "content": [], "stop_reason": "end_turn", "usage": {"input_tokens": 10,
        "cache_read_input_tokens": 60, "cache_creation_input_tokens": 30, "output_tokens": 20,
        "output_tokens_details": {"thinking_tokens": 12}}});
    assert_eq!(counted(Format::Anthropic, &anthropic), [100, 20, 60, 30, 12, 10]);

    let ollama = json!({"message": {"content": "Hi"}, "done": true, "prompt_eval_count": 100, "eval_count": 20});
    assert_eq!(counted(Format::Ollama, &ollama), [100, 20, 0, 0, 0, 100]);

    // Gemini counts thoughts beside what it shows, and the results of its own tools beside the prompt.
    let gemini = json!({"candidates": [{"finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 90,
        "cachedContentTokenCount": 60, "toolUsePromptTokenCount": 10, "candidatesTokenCount": 8,
        "thoughtsTokenCount": 12, "totalTokenCount": 120}});
    assert_eq!(counted(Format::Gemini, &gemini), [100, 20, 60, 0, 12, 40]);
}

#[test]
fn each_kind_has_its_price() {
    let prices = Prices::new(10.0, 100.0);
    let mut usage = Usage::new(1_000_000, 1_000_000);
    usage.cache_read_tokens = 500_000;
    usage.cache_write_tokens = 100_000;
    usage.reasoning_tokens = 200_000;
    let cost = |prices: Prices| (prices.cost(&usage) * 1e6).round() / 1e6;
    assert_eq!(cost(prices).to_string(), "110", "without a price of its own a kind costs what it is a part of");
    assert_eq!(cost(prices.cache_read(1.0)).to_string(), "105.5");
    assert_eq!(cost(prices.cache_read(1.0).cache_write(20.0)).to_string(), "106.5");
    assert_eq!(cost(prices.reasoning(50.0)).to_string(), "100");
}
