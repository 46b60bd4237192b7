//! Reads a UI stream by the rules U1 to U8 and refuses a stream that breaks one.

mod ag_ui;

use serde_json::Value;
use tool_runtime::wire::ui::Protocol;

/// The content of a stream.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Seen {
    pub(crate) text: String,
    pub(crate) reasoning: String,
    /// Sources, files and data: their kind, and their address or name.
    pub(crate) extras: Vec<String>,
    pub(crate) calls: Vec<Call>,
    pub(crate) steps: usize,
    pub(crate) finish: Option<String>,
    pub(crate) error: Option<String>,
    in_step: bool,
}

/// The content of a stream for one call.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) parent: Option<String>,
    pub(crate) arguments: String,
    pub(crate) input: Option<Value>,
    pub(crate) closed: bool,
    pub(crate) approval: Option<(String, Option<bool>)>,
    pub(crate) result: Option<Value>,
    pub(crate) failed: bool,
    /// Its part ended.
    ended: bool,
}

type Checked<T = ()> = Result<T, String>;

fn ensure(holds: bool, rule: &str) -> Checked {
    if holds { Ok(()) } else { Err(rule.to_owned()) }
}

fn text<'a>(frame: &'a Value, key: &str) -> Checked<&'a str> {
    frame[key].as_str().ok_or_else(|| format!("no text `{key}` in {frame}"))
}

/// U7: no key that the packages refuse.
fn keys(value: &Value) -> Checked {
    match value {
        Value::Array(items) => items.iter().try_for_each(keys),
        Value::Object(members) => members.iter().try_for_each(|(key, value)| {
            ensure(key != "__proto__", "U7 __proto__")?;
            ensure(key != "constructor" || value.get("prototype").is_none(), "U7 prototype")?;
            keys(value)
        }),
        _ => Ok(()),
    }
}

impl Seen {
    fn call(&mut self, id: &str) -> Checked<&mut Call> {
        self.calls.iter_mut().find(|call| call.id == id).ok_or_else(|| format!("U2 unknown call {id}"))
    }

    fn extra(&mut self, kind: &str, what: &str) -> Checked {
        self.extras.push(format!("{kind} {what}"));
        self.inside()
    }

    fn start(&mut self, id: &str, name: &str, parent: Option<&str>) -> Checked {
        ensure(self.calls.iter().all(|call| call.id != id), "U2 duplicate start")?;
        let parent = parent.map(str::to_owned);
        self.calls.push(Call { id: id.to_owned(), name: name.to_owned(), parent, ..Call::default() });
        self.inside()
    }

    fn inside(&self) -> Checked {
        ensure(self.in_step && self.finish.is_none() && self.error.is_none(), "outside of a step")
    }

    fn step(&mut self) -> Checked {
        ensure(!self.in_step && self.finish.is_none(), "a step inside of a step")?;
        self.in_step = true;
        self.steps += 1;
        Ok(())
    }

    fn end_step(&mut self) -> Checked {
        self.inside()?;
        self.in_step = false;
        Ok(())
    }

    fn end(&mut self, reason: &str) -> Checked {
        let known = ["stop", "length", "tool-calls", "content-filter", "error", "other"];
        ensure(known.contains(&reason), "U1 finish reason")?;
        ensure(!self.in_step && self.finish.is_none() && self.error.is_none(), "finish in the wrong place")?;
        self.finish = Some(reason.to_owned());
        Ok(())
    }

    fn settle(&mut self, id: &str, result: Value, failed: bool) -> Checked {
        self.inside()?;
        let call = self.call(id)?;
        ensure(call.closed && call.result.is_none(), "U1 one result, after the arguments")?;
        (call.result, call.failed) = (Some(result), failed);
        Ok(())
    }

    /// The rules that hold at the end of every stream.
    fn over(self) -> Checked<Self> {
        ensure(self.finish.is_some() != self.error.is_some(), "U1 one end")?;
        for call in &self.calls {
            ensure(call.closed, "U1 arguments end")?;
            if let Ok(value) = serde_json::from_str(&call.arguments) {
                keys(&value)?;
            }
            let open = call.result.is_none() && self.error.is_none();
            ensure(!open || self.finish.as_deref() == Some("tool-calls"), "U3 open calls end with tool-calls")?;
        }
        Ok(self)
    }
}

/// Reads a whole stream.
pub(crate) fn check(protocol: Protocol, bytes: &[u8]) -> Checked<Seen> {
    let stream = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    match protocol {
        Protocol::DataStream => return data_stream(stream),
        Protocol::AgUi => return ag_ui::read(stream),
        _ => {}
    }
    let body = stream.strip_suffix("data: [DONE]\n\n").ok_or("U1 no [DONE]")?;
    let body = body.strip_suffix("\n\n").ok_or("an open frame")?;
    let mut seen = Seen::default();
    let (mut paths, mut open_texts) = (Vec::new(), Vec::new());
    for frame in body.split("\n\n") {
        let json = frame.strip_prefix("data: ").ok_or("U2 a line that is no data")?;
        let frame: Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
        keys(&frame)?;
        if protocol == Protocol::UiMessageStream {
            message_stream(&mut seen, &mut open_texts, &frame)?;
        } else {
            transport(&mut seen, &mut paths, &frame)?;
        }
    }
    ensure(open_texts.is_empty(), "a text without end")?;
    ensure(paths.iter().all(|part| matches!(part, Part::Ended)), "a part without end")?;
    seen.over()
}

fn data_stream(stream: &str) -> Checked<Seen> {
    let body = stream.strip_suffix('\n').ok_or("U1 no newline at the end")?;
    let mut seen = Seen::default();
    for line in body.split('\n') {
        let (kind, json) = line.split_once(':').ok_or("no kind")?;
        let value: Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
        keys(&value)?;
        match kind {
            "f" => seen.step()?,
            "0" => {
                seen.inside()?;
                seen.text.push_str(value.as_str().ok_or("no text")?);
            }
            "b" => {
                ensure(seen.calls.iter().all(|call| call.closed), "U6 arguments of another call are open")?;
                seen.start(text(&value, "toolCallId")?, text(&value, "toolName")?, value["parentId"].as_str())?;
            }
            "c" => {
                seen.inside()?;
                let call = seen.call(text(&value, "toolCallId")?)?;
                ensure(!call.closed && call.result.is_none(), "U2 arguments after their end")?;
                call.arguments.push_str(text(&value, "argsTextDelta")?);
                call.closed = value["isFinal"] == true;
            }
            "a" => seen.settle(text(&value, "toolCallId")?, value["result"].clone(), value["isError"] == true)?,
            "e" => {
                text(&value, "finishReason")?;
                seen.end_step()?;
            }
            "d" => seen.end(text(&value, "finishReason")?)?,
            "g" => {
                seen.inside()?;
                seen.reasoning.push_str(value.as_str().ok_or("no text")?);
            }
            "h" => {
                ensure(value["sourceType"] == "url", "a source without an address")?;
                text(&value, "id")?;
                seen.extra("source", text(&value, "url")?)?;
            }
            "k" => {
                text(&value, "mimeType")?;
                seen.extra("file", text(&value, "data")?)?;
            }
            "aui-data" => seen.extra("data", text(&value, "name")?)?,
            "2" => {}
            "3" => seen.error = Some(value.as_str().ok_or("no text")?.to_owned()),
            _ => return Err(format!("unknown line {kind}")),
        }
    }
    seen.over()
}

enum Part {
    Text,
    Reasoning,
    Whole,
    Call(String),
    Ended,
}

fn transport(seen: &mut Seen, parts: &mut Vec<Part>, frame: &Value) -> Checked {
    let path = frame["path"].as_array().ok_or("no path")?;
    let index = path.first().and_then(Value::as_u64).and_then(|index| usize::try_from(index).ok());
    let part = index.and_then(|index| parts.get_mut(index));
    match (text(frame, "type")?, part) {
        ("step-start", None) => seen.step(),
        ("part-start", None) => {
            let part = &frame["part"];
            seen.inside()?;
            parts.push(match text(part, "type")? {
                "text" => Part::Text,
                "reasoning" => Part::Reasoning,
                "tool-call" => {
                    let id = text(part, "toolCallId")?;
                    seen.start(id, text(part, "toolName")?, part["parentId"].as_str())?;
                    Part::Call(id.to_owned())
                }
                kind => {
                    let what = match kind {
                        "source" => text(part, "url")?,
                        "file" => text(part, "data")?,
                        "data" => text(part, "name")?,
                        _ => return Err(format!("unknown part {kind}")),
                    };
                    seen.extra(kind, what)?;
                    Part::Whole
                }
            });
            Ok(())
        }
        ("text-delta", Some(Part::Reasoning)) => {
            seen.reasoning.push_str(text(frame, "textDelta")?);
            seen.inside()
        }
        ("text-delta", Some(Part::Text)) => {
            seen.text.push_str(text(frame, "textDelta")?);
            seen.inside()
        }
        ("text-delta", Some(Part::Call(id))) => {
            let call = seen.call(id)?;
            ensure(!call.closed, "U2 arguments after their end")?;
            call.arguments.push_str(text(frame, "textDelta")?);
            seen.inside()
        }
        ("tool-call-args-text-finish", Some(Part::Call(id))) => {
            let call = seen.call(id)?;
            ensure(!std::mem::replace(&mut call.closed, true), "U1 two ends of arguments")
        }
        ("result", Some(Part::Call(id))) => {
            let id = id.clone();
            seen.settle(&id, frame["result"].clone(), frame["isError"] == true)
        }
        ("part-finish", Some(part)) => {
            if let Part::Call(id) = part {
                let call = seen.call(id)?;
                ensure(!std::mem::replace(&mut call.ended, true), "two ends of a part")?;
            }
            *part = Part::Ended;
            Ok(())
        }
        ("step-finish", None) => {
            text(frame, "finishReason")?;
            seen.end_step()
        }
        ("message-finish", None) => seen.end(text(frame, "finishReason")?),
        ("data", None) => Ok(()),
        ("error", None) => {
            seen.error = Some(text(frame, "error")?.to_owned());
            Ok(())
        }
        _ => Err(format!("U2 {frame}")),
    }
}

fn message_stream(seen: &mut Seen, texts: &mut Vec<String>, frame: &Value) -> Checked {
    let id = || text(frame, "toolCallId");
    match text(frame, "type")? {
        "start" => text(frame, "messageId").map(drop),
        "start-step" => seen.step(),
        "finish-step" => seen.end_step(),
        "finish" => seen.end(text(frame, "finishReason")?),
        "data-status" => ensure(frame["transient"] == true, "a status is no part"),
        "error" => {
            seen.error = Some(text(frame, "errorText")?.to_owned());
            Ok(())
        }
        "text-start" | "reasoning-start" => {
            ensure(texts.is_empty(), "text within reasoning, or reasoning within text")?;
            texts.push(text(frame, "id")?.to_owned());
            seen.inside()
        }
        kind @ ("text-delta" | "reasoning-delta") => {
            ensure(texts.iter().any(|id| frame["id"] == *id), "U2 text without start")?;
            let words = if kind == "text-delta" { &mut seen.text } else { &mut seen.reasoning };
            words.push_str(text(frame, "delta")?);
            seen.inside()
        }
        "source-url" => {
            text(frame, "sourceId")?;
            seen.extra("source", text(frame, "url")?)
        }
        "source-document" => {
            text(frame, "mediaType")?;
            text(frame, "title")?;
            text(frame, "sourceId")?;
            seen.extra("data", "source-document")
        }
        "file" => {
            text(frame, "mediaType")?;
            seen.extra("file", text(frame, "url")?)
        }
        "text-end" | "reasoning-end" => {
            let open = texts.len();
            texts.retain(|id| frame["id"] != *id);
            ensure(texts.len() < open, "U2 end of no text")
        }
        "tool-input-start" => seen.start(id()?, text(frame, "toolName")?, None),
        "tool-input-delta" => {
            let call = seen.call(id()?)?;
            ensure(!call.closed, "U2 arguments after their end")?;
            call.arguments.push_str(text(frame, "inputTextDelta")?);
            seen.inside()
        }
        "tool-input-available" | "tool-input-error" => {
            let call = seen.call(id()?)?;
            ensure(!std::mem::replace(&mut call.closed, true), "U1 two ends of arguments")?;
            ensure(frame["toolName"] == call.name, "another name")?;
            call.input = Some(frame["input"].clone());
            ensure(frame["type"] != "tool-input-error" || frame["input"] == serde_json::json!({}), "U4 raw arguments")
        }
        "tool-approval-request" => {
            let call = seen.call(id()?)?;
            ensure(call.closed && call.approval.is_none() && call.result.is_none(), "an approval in the wrong place")?;
            call.approval = Some((text(frame, "approvalId")?.to_owned(), None));
            Ok(())
        }
        "tool-approval-response" => {
            let approval = text(frame, "approvalId")?;
            let asked =
                seen.calls.iter_mut().filter_map(|call| call.approval.as_mut()).find(|asked| asked.0 == approval);
            let answer = &mut asked.ok_or("U2 an answer without a question")?.1;
            ensure(answer.replace(frame["approved"].as_bool().ok_or("no answer")?).is_none(), "two answers")
        }
        "tool-output-available" | "tool-output-error" => {
            // `validateUIMessages` takes a result next to a question only with its answer.
            let asked = &seen.call(id()?)?.approval;
            ensure(!matches!(asked, Some((_, None))), "a result next to an open question")?;
            if frame["type"] == "tool-output-available" {
                return seen.settle(id()?, frame["output"].clone(), false);
            }
            ensure(!matches!(asked, Some((_, Some(false)))), "a failure of a call that was denied")?;
            seen.settle(id()?, text(frame, "errorText")?.into(), true)
        }
        "tool-output-denied" => {
            let call = seen.call(id()?)?;
            ensure(matches!(call.approval, Some((_, Some(false)))), "a refusal without an answer that denies")?;
            seen.settle(id()?, Value::Null, true)
        }
        other => match other.strip_prefix("data-") {
            Some(name) => seen.extra("data", name),
            None => Err(format!("unknown frame {other}")),
        },
    }
}
