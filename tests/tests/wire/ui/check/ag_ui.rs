//! Reads a stream of AG-UI by the order that its client verifies.

use serde_json::Value;

use super::{Checked, Seen, ensure, keys, text};

/// The open parts of a run.
#[derive(Default)]
struct Run {
    ids: Option<(String, String)>,
    texts: Vec<String>,
    reasoning: Vec<String>,
    spans: Vec<String>,
    /// Ids of messages that there were.
    used: Vec<String>,
}

pub(crate) fn read(stream: &str) -> Checked<Seen> {
    let body = stream.strip_suffix("\n\n").ok_or("an open frame")?;
    let (mut seen, mut run) = (Seen::default(), Run::default());
    for frame in body.split("\n\n") {
        let json = frame.strip_prefix("data: ").ok_or("U2 a line that is no data")?;
        let frame: Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
        keys(&frame)?;
        ensure(seen.finish.is_none() && seen.error.is_none(), "U8 an event after the end")?;
        event(&mut seen, &mut run, &frame)?;
    }
    seen.over()
}

fn open(list: &mut Vec<String>, id: &str) -> Checked {
    ensure(!list.iter().any(|open| open == id), "U8 already open")?;
    list.push(id.to_owned());
    Ok(())
}

fn close(list: &mut Vec<String>, id: &str) -> Checked {
    let before = list.len();
    list.retain(|open| open != id);
    ensure(list.len() < before, "U8 the end of what is not open")
}

fn event(seen: &mut Seen, run: &mut Run, frame: &Value) -> Checked {
    let message = || text(frame, "messageId");
    let call = || text(frame, "toolCallId");
    let kind = text(frame, "type")?;
    ensure(run.ids.is_some() != (kind == "RUN_STARTED"), "U8 the run begins the stream, once")?;
    match kind {
        "RUN_STARTED" => {
            run.ids = Some((text(frame, "threadId")?.to_owned(), text(frame, "runId")?.to_owned()));
            Ok(())
        }
        "STEP_STARTED" => {
            text(frame, "stepName")?;
            seen.step()
        }
        "STEP_FINISHED" => {
            text(frame, "stepName")?;
            seen.end_step()
        }
        "TEXT_MESSAGE_START" => {
            ensure(frame["role"] == "assistant", "no role")?;
            open(&mut run.used, message()?)?;
            open(&mut run.texts, message()?)?;
            seen.inside()
        }
        "TEXT_MESSAGE_CONTENT" => {
            ensure(run.texts.iter().any(|id| frame["messageId"] == *id), "U8 text without start")?;
            seen.text.push_str(text(frame, "delta")?);
            seen.inside()
        }
        "TEXT_MESSAGE_END" => close(&mut run.texts, message()?),
        "REASONING_START" => {
            open(&mut run.used, message()?)?;
            open(&mut run.spans, message()?)
        }
        "REASONING_END" => close(&mut run.spans, message()?),
        "REASONING_MESSAGE_START" => {
            ensure(frame["role"] == "reasoning" && !run.spans.is_empty(), "reasoning outside of its span")?;
            open(&mut run.reasoning, message()?)
        }
        "REASONING_MESSAGE_CONTENT" => {
            ensure(run.reasoning.iter().any(|id| frame["messageId"] == *id), "U8 reasoning without start")?;
            seen.reasoning.push_str(text(frame, "delta")?);
            seen.inside()
        }
        "REASONING_MESSAGE_END" => close(&mut run.reasoning, message()?),
        "TOOL_CALL_START" => {
            text(frame, "parentMessageId")?;
            seen.start(call()?, text(frame, "toolCallName")?, None)
        }
        "TOOL_CALL_ARGS" => {
            let call = seen.call(call()?)?;
            ensure(!call.closed, "U2 arguments after their end")?;
            call.arguments.push_str(text(frame, "delta")?);
            seen.inside()
        }
        "TOOL_CALL_END" => {
            let call = seen.call(call()?)?;
            ensure(!std::mem::replace(&mut call.closed, true), "U1 two ends of arguments")
        }
        "TOOL_CALL_RESULT" => {
            open(&mut run.used, message()?)?;
            let result = text(frame, "content")?;
            let result: Value = serde_json::from_str(result).map_err(|error| error.to_string())?;
            keys(&result)?;
            seen.settle(call()?, result, frame["metadata"]["isError"] == true)
        }
        "CUSTOM" => custom(seen, text(frame, "name")?, &frame["value"]),
        "RUN_FINISHED" => finished(seen, run, frame),
        "RUN_ERROR" => {
            seen.error = Some(text(frame, "message")?.to_owned());
            Ok(())
        }
        other => Err(format!("unknown event {other}")),
    }
}

fn custom(seen: &mut Seen, name: &str, value: &Value) -> Checked {
    match name {
        "status" => text(value, "text").map(drop),
        "source" if value["url"].is_null() => seen.extra("data", "source-document"),
        "source" => seen.extra("source", text(value, "url")?),
        "file" => seen.extra("file", text(value, "url")?),
        "data" => seen.extra("data", text(value, "name")?),
        _ => Err(format!("unknown data {name}")),
    }
}

fn finished(seen: &mut Seen, run: &Run, frame: &Value) -> Checked {
    let ids = (text(frame, "threadId")?.to_owned(), text(frame, "runId")?.to_owned());
    ensure(run.ids == Some(ids), "the end of another run")?;
    ensure(run.texts.is_empty() && run.reasoning.is_empty() && run.spans.is_empty(), "U8 an open message")?;
    ensure(seen.calls.iter().all(|call| call.closed), "U8 an open call")?;
    for usage in frame["usage"].as_array().into_iter().flatten() {
        ensure(usage["inputTokens"].as_u64().is_some_and(|tokens| tokens < 1 << 53), "tokens that nobody can read")?;
    }
    let open: Vec<_> = seen.calls.iter().filter(|call| call.result.is_none()).map(|call| call.id.clone()).collect();
    let outcome = &frame["outcome"];
    let named: Vec<_> = match text(outcome, "type")? {
        "interrupt" => {
            let interrupts = outcome["interrupts"].as_array().filter(|list| !list.is_empty()).ok_or("no interrupt")?;
            for interrupt in interrupts {
                let asked = (text(interrupt, "id")?.to_owned(), None);
                text(interrupt, "message")?;
                ensure(interrupt["reason"] == "tool_call", "an interrupt without a call")?;
                seen.call(text(interrupt, "toolCallId")?)?.approval = Some(asked);
            }
            interrupts.iter().filter_map(|interrupt| interrupt["toolCallId"].as_str()).collect()
        }
        "cancelled" => Vec::new(),
        "success" => {
            let named = outcome["pendingToolCallIds"].as_array().map(Vec::as_slice).unwrap_or_default();
            ensure(named.len() == open.len(), "calls are pending that are not named")?;
            named.iter().filter_map(Value::as_str).collect()
        }
        other => return Err(format!("unknown outcome {other}")),
    };
    ensure(named.iter().all(|id| open.iter().any(|open| open == id)), "a call that is not open is named")?;
    let reason = match text(&frame["metadata"], "finishReason")? {
        _ if !open.is_empty() => "tool-calls",
        reason @ ("stop" | "length" | "tool-calls" | "error") => reason,
        "tool_calls" => "tool-calls",
        _ => "other",
    };
    seen.end(reason)
}
