//! An answer without an end: its beginning is kept, and later requests contain it only as a text that was cut.

use serde_json::json;
use tool_runtime::agent::Agent;

use super::*;

/// The maximum size of the part that is kept of an answer that was too large.
const KEPT: usize = 64 << 10;

/// Frames to repeat without end: text, reasoning, or the arguments of a call.
fn frames(format: Format, what: &str) -> (String, String) {
    let piece = "all work and no play ".repeat(100);
    let data = |value: Value| format!("data: {value}\n\n");
    let (start, delta) = match (format, what) {
        (Format::OpenAiChat, "text") => {
            (String::new(), json!({"choices": [{"index": 0, "delta": {"content": piece}}]}))
        }
        (Format::OpenAiChat, "reasoning") => {
            (String::new(), json!({"choices": [{"index": 0, "delta": {"reasoning_content": piece}}]}))
        }
        (Format::OpenAiChat, _) => {
            let call = json!({"index": 0, "id": "c1", "function": {"name": "rig__double", "arguments": "{\"n\":\""}});
            let more = json!({"index": 0, "function": {"arguments": piece}});
            let delta = |call: Value| json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]});
            (data(delta(call)), delta(more))
        }
        (Format::OpenAiResponses, _) => (
            data(json!({"type": "response.created", "response": {"id": "r"}})),
            json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": piece}),
        ),
        (Format::Anthropic, _) => {
            let (kind, empty) = if what == "text" { ("text", "text") } else { ("thinking", "thinking") };
            let message = json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1}}});
            let block = json!({"type": "content_block_start", "index": 0, "content_block": {"type": kind, empty: ""}});
            let delta = json!({"type": format!("{kind}_delta"), empty: piece});
            ([data(message), data(block)].concat(), json!({"type": "content_block_delta", "index": 0, "delta": delta}))
        }
        (Format::Ollama, _) => {
            (String::new(), json!({"message": {"role": "assistant", "content": piece}, "done": false}))
        }
        (_, _) => (
            String::new(),
            json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": piece}]}}]}),
        ),
    };
    let delta = if format == Format::Ollama { format!("{delta}\n") } else { data(delta) };
    (start, delta)
}

#[tokio::test]
async fn the_beginning_of_an_endless_response_is_kept() {
    let cases = Format::ALL.iter().map(|format| (*format, "text"));
    let more = [(Format::OpenAiChat, "reasoning"), (Format::OpenAiChat, "call"), (Format::Anthropic, "thinking")];
    for (format, what) in cases.chain(more) {
        let (start, delta) = frames(format, what);
        let body = [start, delta.repeat((4 << 20) / delta.len())].concat();
        let server = Server::start([Reply::stream(&body), Reply::stream(&Turn::text("Yes.").stream(format))]).unwrap();
        let model = client(format, &server).max_response_bytes(2 << 20).build().unwrap();
        let catalog = tests::world::tools().build().unwrap();
        let policy =
            ToolPolicy::from_toml("allowed_tools = [\"rig__double\"]\n[budgets.run]\ntokens = 10_000_000").unwrap();
        let runner = ToolRunner::builder(catalog, policy).build().unwrap();
        let mut conversation = Agent::new(model).converse(runner.run(RunOptions::new()));
        let ended = conversation.send("Write.").await;
        let TurnOutcome::Stopped { text, .. } = &ended else { panic!("{format} {what}: {ended:?}") };
        assert!(text.len() < KEPT, "{format} {what}");
        if what == "text" {
            assert!(text.starts_with("all work and no play"), "{format}: something of it is kept");
        }
        // It was paid for: about as many tokens as there were bytes, divided by three.
        let usage = conversation.run().summary().usage;
        assert!(
            usage.estimated && usage.output_tokens > 400_000 && usage.output_tokens < 800_000,
            "{format} {what} {usage:?}"
        );
        let saved = serde_json::to_string(&conversation.save().await.unwrap()).unwrap();
        assert!(saved.len() < KEPT, "{format} {what}: {}", saved.len());
        assert!(matches!(conversation.send("Again?").await, TurnOutcome::Answered { .. }), "{format} {what}");
        let body = server.asked().pop().unwrap().body;
        assert!(body.len() < KEPT && body.contains("Again?"), "{format} {what}: {}", body.len());
    }
}
