//! Tests that equal tools are encoded once and unchanged, and that the cache is bounded.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::*;
use crate::call::ToolContext;
use crate::error::ToolError;
use crate::registration::{DynamicHandler, DynamicTool};
use crate::wire::{Format, Message, RequestSettings, ToolChoice, WireTool};
use crate::{Run, RunOptions, ToolCatalog, ToolEffect, ToolPolicy, ToolRunner};

struct Nothing;

#[async_trait]
impl DynamicHandler for Nothing {
    async fn call(&self, _: &Value, _: &ToolContext) -> Result<Value, ToolError> {
        Ok(Value::Null)
    }
}

fn runner() -> ToolRunner {
    let schema = |count: usize| {
        json!({"type": "object", "properties": {"text": {"type": "string", "maxLength": count}, "count": {"type": "integer"}},
            "required": ["text"], "additionalProperties": false})
    };
    let open = json!({"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]});
    let tools = [("texts__a", schema(3)), ("texts__b", schema(5)), ("texts__odd", open), ("texts__z", schema(7))];
    let tool = |(name, schema)| DynamicTool::new(name, "Does \"it\".", schema, ToolEffect::ReadOnly, Arc::new(Nothing));
    let catalog = tools.map(tool).into_iter().fold(ToolCatalog::builder(), |all, tool| all.dynamic(tool.redact(["$"])));
    let policy = ToolPolicy::allow(["texts__a", "texts__b", "texts__odd", "texts__z"]);
    ToolRunner::builder(catalog.build().unwrap(), policy).build().unwrap()
}

fn settings(format: Format, strict: bool) -> Settings {
    Settings { strict, ..Settings::new(format, "m".to_owned()) }
}

fn request<'a>(run: &'a Run, settings: &'a RequestSettings, messages: &'a [Message]) -> ModelRequest<'a> {
    ModelRequest::new(messages, run.catalog(), settings)
}

/// Returns the body that is sent, and the tools as the encoder writes them.
fn bodies(of: &Settings, request: &ModelRequest<'_>) -> (Value, Value) {
    let tools = Texts::default().of(of, request).unwrap();
    let (body, offered) = endpoint::body(of, request, &tools, false).unwrap();
    let options = endpoint::options(of).with_settings(request.settings.clone());
    let encoded = of.format.encode_tools(request.tools.specs(), &options).unwrap();
    assert!(encoded.tools.iter().all(|(name, sent)| tools.sent(name) == Some(*sent) && offered.contains(name)));
    // A warning names the tools that the format cannot carry, not those that the choice excludes.
    let choice = request.settings.tool_choice.as_ref();
    let names = request.tools.specs().map(|spec| spec.name.as_str());
    let left_out =
        names.filter(|name| !encoded.tools.contains_key(*name) && choice.is_none_or(|choice| choice.allows(name)));
    assert!(left_out.eq(tools.left_out()));
    (serde_json::from_slice(&body).unwrap(), encoded.body.get("tools").cloned().unwrap_or_default())
}

#[test]
fn the_tools_are_those_that_the_encoder_writes() {
    let (runner, messages) = (runner(), [Message::user("Hello.")]);
    let runs = [RunOptions::new(), RunOptions::new().tools(["texts__b"]), RunOptions::new().tools([""; 0])];
    for run in runs.map(|options| runner.run(options)) {
        for (format, strict) in Format::ALL.iter().flat_map(|format| [(*format, false), (*format, true)]) {
            let of = settings(format, strict);
            for cache in [Some(false), None] {
                let settings = RequestSettings { cache, ..RequestSettings::new() };
                let (body, mut tools) = bodies(&of, &request(&run, &settings, &messages));
                if let (Format::Anthropic, None, Some(last)) =
                    (format, cache, tools.as_array_mut().and_then(|tools| tools.last_mut()))
                {
                    last["cache_control"] = json!({"type": "ephemeral"});
                }
                assert_eq!(body.get("tools").unwrap_or(&Value::Null), &tools, "{format} {strict} {cache:?}");
            }
        }
    }
}

#[test]
fn a_tool_for_the_answer_comes_last_and_has_the_mark() {
    let (runner, messages, asked) = (runner(), [Message::user("Hello.")], RequestSettings::new());
    let run = runner.run(RunOptions::new().tools(["texts__a"]));
    let mut request = request(&run, &asked, &messages);
    request.answer = Some(WireTool::new("answer", "The answer.", r#"{"type":"object","properties":{}}"#));
    let of = Settings { answers: crate::wire::AnswerMode::Tool, ..settings(Format::Anthropic, false) };
    let tools = Texts::default().of(&of, &request).unwrap();
    let (body, offered) = endpoint::body(&of, &request, &tools, false).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let marks: Vec<_> =
        body["tools"].as_array().unwrap().iter().map(|tool| tool.get("cache_control").is_some()).collect();
    assert_eq!((marks, body["tools"][1]["name"].as_str()), (vec![false, true], Some("answer")));
    assert!(offered.contains("answer") && offered.contains("texts__a") && tools.sent("answer").is_none());
}

#[test]
fn a_view_is_written_once_and_a_narrowing_choice_each_time() {
    let (runner, messages, any) = (runner(), [Message::user("Hello.")], RequestSettings::new());
    let (one, other) = (runner.run(RunOptions::new()), runner.run(RunOptions::new().principal("ada")));
    let narrow = runner.run(RunOptions::new().tools(["texts__a"]));
    let (of, texts) = (settings(Format::Anthropic, false), Texts::default());
    let tools = |run: &Run, settings: &RequestSettings| texts.of(&of, &request(run, settings, &messages)).unwrap();
    let first = tools(&one, &any);
    assert!(Arc::ptr_eq(&first, &tools(&other, &any)) && !Arc::ptr_eq(&first, &tools(&narrow, &any)));
    let choice = ToolChoice::Allowed { names: vec!["texts__b".to_owned()], required: true };
    let only = RequestSettings { tool_choice: Some(choice), ..RequestSettings::new() };
    let narrowed = tools(&one, &only);
    assert_eq!((narrowed.sent("texts__a").is_some(), narrowed.sent("texts__b").is_some()), (false, true));
    assert!(Arc::ptr_eq(&first, &tools(&one, &any)));
    // Chat Completions names the tools in the choice, and still offers all of them.
    let of = settings(Format::OpenAiChat, false);
    let shared = Texts::default();
    let all = shared.of(&of, &request(&one, &only, &messages)).unwrap();
    assert!(Arc::ptr_eq(&all, &shared.of(&of, &request(&one, &any, &messages)).unwrap()));
}

#[test]
fn what_is_kept_is_bounded() {
    let (runner, messages, any) = (runner(), [Message::user("Hello.")], RequestSettings::new());
    let (of, texts) = (settings(Format::OpenAiChat, false), Texts::default());
    let run = runner.run(RunOptions::new());
    let first = texts.of(&of, &request(&run, &any, &messages)).unwrap();
    for _ in 0..2 * MOST_VIEWS {
        let view = run.catalog().only(["texts__a"].into_iter());
        texts.of(&of, &ModelRequest::new(&messages, &view, &any)).unwrap();
        // Entries in use stay.
        assert!(Arc::ptr_eq(&first, &texts.of(&of, &request(&run, &any, &messages)).unwrap()));
    }
    let kept = texts.kept();
    assert_eq!(kept.views.len(), MOST_VIEWS);
    assert_eq!(kept.bytes, kept.views.iter().map(|(_, tools)| tools.size()).sum::<usize>());
}
