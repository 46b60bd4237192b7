//! Tokens by kind: budgets and prices apply to the counts of each provider.

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

    // Gemini counts thoughts in addition to the visible output, and the results of its own tools in addition to the
    // prompt.
    let gemini = json!({"candidates": [{"finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 90,
        "cachedContentTokenCount": 60, "toolUsePromptTokenCount": 10, "candidatesTokenCount": 8,
        "thoughtsTokenCount": 12, "totalTokenCount": 120}});
    assert_eq!(counted(Format::Gemini, &gemini), [100, 20, 60, 0, 12, 40]);
}

/// The counts of the message cover only the model that answers. Tokens of compaction, an advisor or a model that
/// declined are in the passes only. The passes of a loop of the provider's own tools are in both.
#[test]
fn passes_beyond_the_counts_of_the_message_are_counted_by_kind() {
    let pass = |kind: &str, [input, read, write, output]: [u64; 4]| {
        json!({"type": kind, "input_tokens": input, "cache_read_input_tokens": read,
            "cache_creation_input_tokens": write, "output_tokens": output})
    };
    let total = |[input, read, write, output]: [u64; 4], passes: &[Value]| {
        json!({"input_tokens": input, "cache_read_input_tokens": read, "cache_creation_input_tokens": write,
            "output_tokens": output, "iterations": passes})
    };
    let compacted =
        total([181, 0, 0, 8], &[pass("compaction", [100, 55_000, 96, 83]), pass("message", [181, 0, 0, 8])]);
    let looped =
        [pass("message", [10, 5, 0, 3]), pass("advisor_message", [7, 2, 1, 4]), pass("message", [20, 5, 0, 6])];
    let looped = total([30, 10, 0, 9], &looped);
    let declined =
        total([412, 0, 0, 264], &[pass("message", [535, 0, 0, 0]), pass("fallback_message", [412, 0, 0, 264])]);
    let cases = [
        (compacted, [55_377, 91, 55_000, 96, 0, 281]),
        (looped, [50, 13, 12, 1, 0, 37]),
        (declined, [947, 264, 0, 0, 0, 947]),
        (total([30, 10, 0, 9], &[]), [40, 9, 10, 0, 0, 30]),
        // Passes with lower counts than the message change nothing.
        (total([30, 10, 0, 9], &[pass("message", [1, 1, 0, 1])]), [40, 9, 10, 0, 0, 30]),
    ];
    for (usage, expected) in cases {
        let body = json!({"type": "message", "content": [], "stop_reason": "end_turn", "usage": usage});
        assert_eq!(counted(Format::Anthropic, &body), expected, "{usage}");
        // A stream can count twice, the second time without its cache and its output.
        let mut less = usage.clone();
        less.as_object_mut().unwrap().retain(|name, _| !name.starts_with("cache") && name != "output_tokens");
        let events = [
            json!({"type": "message_start", "message": {"usage": {"input_tokens": 1, "output_tokens": 1}}}),
            json!({"type": "message_delta", "delta": {}, "usage": usage}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": less}),
        ];
        let stream: String =
            events.iter().fold(String::new(), |text, event| text + format!("data: {event}\n\n").as_str());
        for cut in [usize::MAX, 1, 7] {
            let counted = decode(Format::Anthropic, stream.as_bytes(), cut).usage.unwrap();
            let got =
                [counted.total_input(), counted.total_output(), counted.cache_read_tokens, counted.cache_write_tokens];
            assert_eq!(got, expected[..4], "{usage}");
        }
    }
}

#[test]
fn each_kind_has_its_price() {
    let prices = Prices::new(10.0, 100.0);
    let mut usage = Usage::new(1_000_000, 1_000_000);
    usage.cache_read_tokens = 500_000;
    usage.cache_write_tokens = 100_000;
    usage.reasoning_tokens = 200_000;
    let cost = |prices: Prices| (prices.cost(&usage) * 1e6).round() / 1e6;
    assert_eq!(cost(prices).to_string(), "110", "without its own price a kind costs what it is a part of");
    assert_eq!(cost(prices.cache_read(1.0)).to_string(), "105.5");
    assert_eq!(cost(prices.cache_read(1.0).cache_write(20.0)).to_string(), "106.5");
    assert_eq!(cost(prices.reasoning(50.0)).to_string(), "100");
}
