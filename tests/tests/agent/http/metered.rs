//! Budgets of tokens and cost hold whatever counts of tokens a provider reports.

use std::sync::{Arc, Mutex};

use serde_json::json;
use tool_runtime::Event;
use tool_runtime::agent::{Agent, Conversation, Prices, StopReason};
use tool_runtime::wire::Usage;

use super::*;

/// The keys of counts in all formats.
const COUNTS: [&str; 9] = [
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "input_tokens",
    "output_tokens",
    "prompt_eval_count",
    "eval_count",
    "promptTokenCount",
    "candidatesTokenCount",
];

/// A turn with each count replaced; `None` leaves the counts out.
fn counting(format: Format, turn: &Turn, stream: bool, count: Option<&str>) -> String {
    let mut body = if stream { turn.stream(format) } else { whole(format, turn).to_string() };
    for key in COUNTS {
        for number in [9, 4, 1, 13] {
            let new = count.map_or("\"odd\":0".to_owned(), |count| format!("\"{key}\":{count}"));
            body = body.replace(&format!("\"{key}\":{number},"), &format!("{new},"));
            body = body.replace(&format!("\"{key}\":{number}}}"), &format!("{new}}}"));
        }
    }
    body
}

/// A response that is not streamed.
fn whole(format: Format, turn: &Turn) -> Value {
    let calls = |call: fn(&str, &str, Value) -> Value| -> Vec<_> {
        let read = |text: &str| serde_json::from_str(text).unwrap();
        turn.calls.iter().map(|(id, name, arguments)| call(id, name, read(arguments))).collect()
    };
    match format {
        Format::OpenAiChat => {
            let calls = calls(
                |id, name, arguments| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments.to_string()}}),
            );
            let message = json!({"role": "assistant", "content": turn.text, "tool_calls": calls});
            json!({"model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
                "usage": {"prompt_tokens": 9, "completion_tokens": 4}})
        }
        Format::OpenAiResponses => {
            let mut items = calls(|id, name, arguments| {
                json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name,
                    "arguments": arguments.to_string(), "status": "completed"})
            });
            if !turn.text.is_empty() {
                let part = json!({"type": "output_text", "text": turn.text, "annotations": []});
                items.push(json!({"type": "message", "id": "m1", "role": "assistant", "content": [part]}));
            }
            json!({"id": "r1", "status": "completed", "output": items, "usage": {"input_tokens": 9, "output_tokens": 4}})
        }
        Format::Anthropic => {
            let mut blocks =
                calls(|id, name, input| json!({"type": "tool_use", "id": id, "name": name, "input": input}));
            if !turn.text.is_empty() {
                blocks.push(json!({"type": "text", "text": turn.text}));
            }
            json!({"type": "message", "id": "m1", "role": "assistant", "model": "m", "content": blocks,
                "stop_reason": "end_turn", "usage": {"input_tokens": 9, "output_tokens": 4}})
        }
        Format::Ollama => {
            let calls =
                calls(|id, name, arguments| json!({"id": id, "function": {"name": name, "arguments": arguments}}));
            json!({"model": "m", "done": true, "done_reason": "stop", "prompt_eval_count": 9, "eval_count": 4,
                "message": {"role": "assistant", "content": turn.text, "tool_calls": calls}})
        }
        _ => {
            let mut parts = calls(|id, name, args| json!({"functionCall": {"id": id, "name": name, "args": args}}));
            parts.push(json!({"text": turn.text}));
            json!({"candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": parts}}],
                "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 4}})
        }
    }
}

/// Runs six turns under a budget, and returns the number of requests, the end of the turn, and the usage and cost.
async fn held(
    format: Format,
    stream: bool,
    budget: &str,
    reply: impl Fn(&Turn) -> Reply,
) -> (usize, TurnOutcome, Usage, f64) {
    let arguments = (1..7).map(|n| format!("{{\"n\":{n}}}")).collect::<Vec<_>>();
    let turns = arguments.iter().map(|text| Turn::calls([("c1", "rig__double", text)])).chain([Turn::text("Done.")]);
    let server = Server::start(turns.map(|turn| reply(&turn))).unwrap();
    let policy = format!("allowed_tools = [\"rig__double\"]\n[budgets.run]\n{budget}");
    let catalog = tests::world::tools().build().unwrap();
    let runner = ToolRunner::builder(catalog, ToolPolicy::from_toml(&policy).unwrap()).build().unwrap();
    let agent = Agent::new(client(format, &server).stream(stream).build().unwrap()).prices(Prices::new(1e6, 1e6));
    let mut conversation = agent.converse(runner.run(RunOptions::new()));
    let ended = conversation.send("Double it.").await;
    let summary = conversation.run().summary();
    (server.asked().len(), ended, summary.usage, summary.cost)
}

fn reply(body: &str, stream: bool) -> Reply {
    if stream {
        Reply::stream(body)
    } else {
        Reply::body("200 OK", "content-type: application/json\r\n", body.as_bytes())
    }
}

#[tokio::test]
async fn counts_that_are_missing_or_unreadable_are_estimated() {
    let unreadable =
        ["null", "-1000", "1.5", "\"many\"", "9223372036854775808", "18446744073709551616", "1e300", "{}", "0"];
    for &format in Format::ALL {
        for stream in [true, false] {
            for count in unreadable.map(Some).into_iter().chain([None]) {
                for budget in ["tokens = 10", "cost = 10"] {
                    let turn = |turn: &Turn| reply(&counting(format, turn, stream, count), stream);
                    let (asked, ended, usage, cost) = held(format, stream, budget, turn).await;
                    let case = format!("{format} {stream} {count:?} {budget}: {ended:?}");
                    assert!(matches!(&ended, TurnOutcome::Stopped { reason: StopReason::Budget(_), .. }), "{case}");
                    assert_eq!(asked, 1, "{case}");
                    assert!(usage.estimated && usage.input_tokens > 10 && usage.output_tokens > 0, "{case} {usage:?}");
                    assert!(cost > 10.0, "{case}");
                }
            }
        }
    }
}

#[tokio::test]
async fn whole_floats_and_texts_are_counts() {
    for &format in Format::ALL {
        for stream in [true, false] {
            for count in ["1000", "1000.0", "1e3", "\"1000\"", "\" 1000.0 \""] {
                let turn = |turn: &Turn| reply(&counting(format, turn, stream, Some(count)), stream);
                let (asked, _, usage, _) = held(format, stream, "tokens = 2000", turn).await;
                let counted = (asked, usage.input_tokens, usage.output_tokens, usage.estimated);
                assert_eq!(counted, (1, 1000, 1000, false), "{format} {stream} {count}");
            }
        }
    }
}

#[tokio::test]
async fn without_a_budget_of_tokens_nothing_is_estimated() {
    for budget in ["turns = 100", "calls = 100"] {
        let turn = |turn: &Turn| reply(&counting(Format::OpenAiChat, turn, true, None), true);
        let (asked, ended, usage, _) = held(Format::OpenAiChat, true, budget, turn).await;
        assert!(matches!(ended, TurnOutcome::Answered { .. }));
        assert_eq!((asked, usage), (7, Usage::default()), "{budget}");
    }
}

/// A conversation under a budget, whose model writes long text, and the events that it emits.
fn conversation(format: Format, server: &Server, budget: &str) -> (Conversation, Arc<Mutex<Vec<Event>>>) {
    let policy = ToolPolicy::from_toml(&format!("[budgets.run]\n{budget}")).unwrap();
    let runner = ToolRunner::builder(ToolCatalog::builder().build().unwrap(), policy).build().unwrap();
    let seen = Arc::<Mutex<Vec<Event>>>::default();
    let sink = Arc::clone(&seen);
    let options = RunOptions::new().events(move |event| sink.lock().unwrap().push(event));
    (Agent::new(client(format, server).build().unwrap()).converse(runner.run(options)), seen)
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_estimated() {
    for &format in Format::ALL {
        // The text comes whole, and then the connection ends before the counts.
        let body = Turn::text(&"word ".repeat(3000)).stream(format);
        let cut = body.find("word word").unwrap() + 14_900;
        let end = cut + body[cut..].find('\n').unwrap() + if format == Format::Ollama { 1 } else { 2 };
        let server = Server::start([Reply::stream(&body[..end])]).unwrap();
        let (mut conversation, seen) = conversation(format, &server, "tokens = 1_000_000");
        let ended = conversation.send("Write.").await;
        assert!(matches!(ended, TurnOutcome::Stopped { .. }), "{format}");
        let usage = conversation.run().summary().usage;
        assert!(usage.estimated && usage.output_tokens >= 5000 && usage.output_tokens < 12_000, "{format} {usage:?}");
        assert!(usage.input_tokens > 0);
        assert_eq!(conversation.turns()[0].usage.map(|usage| usage.estimated), Some(true), "{format}");
        let told = seen.lock().unwrap();
        let told = told.iter().filter(|event| matches!(event, Event::Usage { estimated: true, .. }));
        assert_eq!(told.count(), 1, "{format}");
    }
}

#[tokio::test]
async fn an_answer_that_is_not_waited_for_is_booked() {
    let budgets = ["tokens = 1_000_000", "turns = 1"];
    for (&format, budget) in Format::ALL.iter().flat_map(|format| budgets.map(|budget| (format, budget))) {
        let body = Turn::text(&"word ".repeat(3000)).stream(format);
        let cut = body.find("word word").unwrap() + 14_900;
        let end = cut + body[cut..].find('\n').unwrap() + if format == Format::Ollama { 1 } else { 2 };
        let server = Server::start([Reply::stream(&body[..end]).and_hang()]).unwrap();
        let (mut conversation, seen) = conversation(format, &server, budget);
        let run = conversation.run().clone();
        {
            let mut asks = std::pin::pin!(conversation.send("Write."));
            loop {
                tokio::select! {
                    _ = &mut asks => panic!("it hangs"),
                    () = tokio::task::yield_now() => {}
                }
                let is_shown = |event: &Event| matches!(event, Event::TextDelta { .. });
                if seen.lock().unwrap().iter().any(is_shown) {
                    break;
                }
            }
        }
        let usage = run.summary().usage;
        if budget.starts_with("tokens") {
            assert!(usage.estimated && usage.output_tokens >= 5000 && usage.input_tokens > 0, "{format} {usage:?}");
        } else {
            assert_eq!(usage, Usage::default(), "{format}");
            let ended = conversation.send("Again.").await;
            assert!(matches!(ended, TurnOutcome::Stopped { reason: StopReason::Budget(_), .. }), "{format} {ended:?}");
        }
    }
}
