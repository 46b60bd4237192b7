//! Strict copies, null removal, history and recorded responses beyond the fixtures.

use serde_json::{Value, json};
use tool_runtime::call::{CallId, Suspension};
use tool_runtime::error::ParseError;
use tool_runtime::wire::history::{CallMessage, ResultMessage};
use tool_runtime::wire::ui::ChatReader;
use tool_runtime::wire::{EncodeOptions, Format, Message, RequestSettings, ToolChoice, WireTool};

/// The closed copy, or the pointer to the part that cannot be closed.
#[track_caller]
fn check_close(schema: &str, expected: &str) {
    let options = EncodeOptions::default().with_strict(true);
    let got = match Format::OpenAiChat.encode_tools([WireTool::new("a__b", "", schema)], &options) {
        Ok(encoded) => encoded.body["tools"][0]["function"]["parameters"].clone(),
        Err(error) => Value::String(error.path.unwrap_or_default()),
    };
    assert_eq!(got, serde_json::from_str::<Value>(expected).unwrap_or_else(|_| expected.into()), "{schema}");
}

#[test]
fn strict_copies() {
    let property = |schema: &str| {
        format!("{{\"type\":\"object\",\"properties\":{{\"z\":{schema},\"a~/b\":{{\"type\":\"null\"}}}}}}")
    };
    let closed = |schema: &str| {
        format!(
            "{{\"type\":\"object\",\"properties\":{{\"z\":{schema},\"a~/b\":{{\"type\":\"null\"}}}},\
             \"required\":[\"z\",\"a~/b\"],\"additionalProperties\":false}}"
        )
    };
    for (optional, nullable) in [
        (r#"{"type":"string","enum":["a",null]}"#, r#"{"type":["string","null"],"enum":["a",null]}"#),
        (r#"{"type":["string","null"],"enum":["a"]}"#, r#"{"type":["string","null"],"enum":["a",null]}"#),
        (r#"{"enum":["a"]}"#, r#"{"enum":["a",null]}"#),
        (r#"{"const":"a"}"#, r#"{"enum":["a",null]}"#),
        (
            r#"{"anyOf":[{"type":"string"},{"type":"integer"}]}"#,
            r#"{"anyOf":[{"type":"string"},{"type":"integer"},{"type":"null"}]}"#,
        ),
        (r#"{"anyOf":[{"type":"string"},{"type":"null"}]}"#, r#"{"anyOf":[{"type":"string"},{"type":"null"}]}"#),
        (r#"{"type":"array","items":{"type":"string"}}"#, r#"{"type":["array","null"],"items":{"type":"string"}}"#),
        // A property may be called like a keyword.
        (
            r#"{"type":"object","properties":{"default":{"type":"string"},"oneOf":{"type":"string"}},"required":["oneOf","default"]}"#,
            r#"{"type":["object","null"],"properties":{"default":{"type":"string"},"oneOf":{"type":"string"}},"required":["oneOf","default"],"additionalProperties":false}"#,
        ),
    ] {
        check_close(&property(optional), &closed(nullable));
    }
    for (schema, path) in [
        ("{}", "/properties/z"),
        ("true", "/properties/z"),
        (r#"{"type":"object"}"#, "/properties/z"),
        (r#"{"type":"object","properties":{},"additionalProperties":true}"#, "/properties/z"),
        (r#"{"type":"array"}"#, "/properties/z"),
        (
            r#"{"type":"array","items":{"type":"object","patternProperties":{}}}"#,
            "/properties/z/items/patternProperties",
        ),
        (r#"{"anyOf":[{"type":"string"},{"not":{}}]}"#, "/properties/z/anyOf/1/not"),
        (r##"{"$ref":"#/$defs/None"}"##, "/properties/z/$ref"),
        (r#"{"$ref":"https://example.com/schema"}"#, "/properties/z/$ref"),
    ] {
        check_close(&property(schema), path);
    }
    check_close(
        r#"{"type":"object"}"#,
        r#"{"type":"object","properties":{},"required":[],"additionalProperties":false}"#,
    );
    check_close(r#"{"type":"object","anyOf":[]}"#, "/anyOf");
    // Required ones keep their order, the others follow in theirs; a circle of references ends.
    check_close(
        r##"{"type":"object","properties":{"z":{"$ref":"#"},"m":{"$ref":"#/properties/m"},"b":{"type":"string"}},"required":["b"]}"##,
        r##"{"type":"object","properties":{"z":{"anyOf":[{"$ref":"#"},{"type":"null"}]},"m":{"$ref":"#/properties/m"},"b":{"type":"string"}},"required":["b","z","m"],"additionalProperties":false}"##,
    );
    let deep = format!(
        "{}{}{}",
        r#"{"type":"object","properties":{"a":"#.repeat(300),
        r#"{"type":"string"}"#,
        "}}".repeat(300)
    );
    let options = EncodeOptions::default().with_strict(true);
    assert!(Format::OpenAiChat.encode_tools([WireTool::new("a__b", "", &deep)], &options).is_err());
}

#[test]
fn strict_nulls_keep_everything_else_digit_for_digit() {
    let schema = r##"{"type":"object","properties":{"a":{"type":"string"},"b":{"$ref":"#/$defs/B"},"c":{"anyOf":[{"$ref":"#/$defs/B"},{"type":"null"}]},"any":{}},"required":["a"],
        "$defs":{"B":{"type":"object","properties":{"x":{"type":"integer"},"b":{"$ref":"#/$defs/B"}}}}}"##;
    for (arguments, expected) in [
        (r#"{"a":null,"b":null,"n":18446744073709551616.10}"#, r#"{"a":null,"n":18446744073709551616.10}"#),
        (
            r#"{"b":{"x":null,"b":{"b":null,"x":1}},"c":{"x":null},"any":null}"#,
            r#"{"b":{"b":{"x":1}},"c":{},"any":null}"#,
        ),
        (r#"{"c":null, "other":null}"#, r#"{"c":null, "other":null}"#),
        (r#"{"b":null,"b":null}"#, "{}"),
        ("not json", "not json"),
        ("[null]", "[null]"),
    ] {
        assert_eq!(WireTool::new("", "", schema).remove_nulls(arguments), expected);
    }
}

fn chosen(name: &str) -> RequestSettings {
    RequestSettings::new().tool_choice(ToolChoice::Named(name.to_owned()))
}

#[test]
fn choices_without_tools_and_unknown_ones() {
    let tools = [WireTool::new("a", "", r#"{"type":"object","properties":{}}"#)];
    for format in Format::ALL {
        let encode = |tools: &[WireTool<'_>], options| {
            format
                .encode_tools(tools.iter().copied(), &options)
                .map_err(|error| error.to_json()["error"]["kind"].clone())
        };
        let named = || EncodeOptions::default().with_settings(chosen("b"));
        assert_eq!(encode(&tools, named()).unwrap_err(), "unknown_tool_choice", "{format}");
        let auto = EncodeOptions::default()
            .with_settings(RequestSettings::new().tool_choice(ToolChoice::Auto).parallel_calls(false));
        assert!(encode(&[], auto).unwrap().body.is_empty(), "{format}");
        let strict = encode(&tools, EncodeOptions::default().with_strict(true)).unwrap();
        assert_eq!(strict.losses.is_empty(), !matches!(format, Format::Ollama | Format::Gemini), "{format}");
    }
}

fn call(id: &str) -> CallMessage {
    CallMessage::new(id, "a__b", r#"{ "x": 1.50, "s": " \" " }"#)
}

fn turn(ids: &[&str]) -> Message {
    tests::wire::turn("", ids.iter().map(|id| call(id)).collect())
}

fn answer(id: &str) -> Message {
    Message::Result(ResultMessage::new(id, format!("result of {id}")))
}

#[test]
fn client_history_is_checked() {
    let own = [turn(&["c", "d", "s", "p"]), answer("s")];
    let waiting = || {
        let waiting = [("c", Suspension::Client), ("d", Suspension::Client), ("p", Suspension::Approval)];
        waiting.map(|(id, suspension)| (CallId::new(id), suspension))
    };
    let user = || Message::user("hello");
    let other = tests::wire::turn("", vec![CallMessage::new("c", "a__b", r#"{"x":2}"#)]);
    let reordered = CallMessage::new("c", "a__b", r#"{"s":" \" ","x":1.5}"#);
    let reordered = tests::wire::turn("", vec![reordered]);
    for (history, expected) in [
        (vec![user(), turn(&["c", "s"]), answer("s"), answer("c"), user()], None),
        (vec![reordered, answer("c")], None),
        (vec![turn(&["c", "d"]), answer("c")], None),
        (vec![answer("c")], Some(("history_orphan", "/0"))),
        (vec![turn(&["c"]), user(), answer("c")], Some(("history_orphan", "/2"))),
        (vec![turn(&["c"]), turn(&["d"]), answer("c")], Some(("history_orphan", "/2"))),
        (vec![turn(&["c"]), answer("c"), answer("c")], Some(("history_duplicate", "/2"))),
        (vec![turn(&["c"]), answer("c"), turn(&["c"])], Some(("history_duplicate", "/2"))),
        (vec![turn(&["c", "c"])], Some(("history_duplicate", "/0"))),
        (vec![turn(&["x"]), answer("x")], Some(("history_forged", "/0"))),
        (vec![other, answer("c")], Some(("history_forged", "/0"))),
        (vec![turn(&["p"]), answer("p")], Some(("history_forged", "/1"))),
        (vec![turn(&["s"]), Message::Result(ResultMessage::new("s", "better"))], Some(("history_forged", "/1"))),
    ] {
        let got = ChatReader::check(&own, waiting(), &history).err();
        let got = got.as_ref().map(|error| (error.code(), error.pointer().unwrap_or_default()));
        assert_eq!(got, expected, "{history:?}");
    }
}

#[test]
fn client_history_has_limits() {
    let check = |history: &[Message]| {
        let place = |error: ParseError| (error.code(), error.pointer().unwrap_or_default().to_owned());
        ChatReader::check(&[], [], history).map_err(place)
    };
    let long = |bytes: usize| Message::user("a".repeat(bytes));
    assert_eq!(check(&[long(32 << 10)]), Ok(()));
    assert_eq!(check(&[long((32 << 10) + 1)]), Err(("history_too_large", String::new())));
    let thinks: Message =
        serde_json::from_value(json!({ "assistant": [{ "reasoning": { "text": "a".repeat(32 << 10) } }] })).unwrap();
    assert_eq!(check(std::slice::from_ref(&thinks)), Ok(()));
    let thinks: Message =
        serde_json::from_value(json!({ "assistant": [{ "reasoning": { "text": "a".repeat((32 << 10) + 1) } }] }))
            .unwrap();
    assert_eq!(check(&[thinks]), Err(("history_too_large", String::new())));
    assert_eq!(check(&vec![long(1); 2048]), Ok(()));
    assert_eq!(check(&vec![long(1); 2049]), Err(("history_too_large", String::new())));
}

#[test]
fn own_history_is_repaired() {
    let user = Message::user("hello");
    let history =
        [answer("x"), turn(&["a", "b", "c"]), user.clone(), answer("c"), answer("a"), answer("a"), turn(&["d"])];
    let missing = |id: &CallId| id.as_str() == "d";
    let repaired = Message::repair(&history, missing);
    let cancelled = Message::Result(ResultMessage::cancelled("b"));
    let unknown = Message::Result(ResultMessage::outcome_unknown("d"));
    let expected = vec![turn(&["a", "b", "c"]), answer("a"), cancelled, answer("c"), user, turn(&["d"]), unknown];
    assert_eq!(repaired, expected);
    assert_eq!(Message::repair(&repaired, missing), repaired);
    // Every format writes every call with one result, arguments as they were written.
    let body = serde_json::to_value(Format::OpenAiChat.encode_messages(&history, None).body).unwrap();
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(messages.iter().filter(|message| message["role"] == "tool").count(), 4);
    assert_eq!(messages[0]["tool_calls"][0]["function"]["arguments"], r#"{ "x": 1.50, "s": " \" " }"#);
    assert!(messages[2]["content"].as_str().unwrap().contains("\"errorCode\":\"outcome_unknown\""));
}

#[test]
fn blank_text_is_left_out_where_it_is_refused() {
    let history = [Message::user(" "), tests::wire::turn("\n", vec![]), Message::System("s".into())];
    let body = serde_json::to_value(Format::Anthropic.encode_messages(&history, None).body).unwrap();
    assert_eq!(body, json!({ "messages": [], "system": "s" }));
}

#[test]
fn arguments_that_the_gate_cannot_read_go_back_empty() {
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(200), "]".repeat(200));
    for arguments in [deep.as_str(), r#"{"s":"a \ud800 b"}"#, r#"{"a":1,"a":2}"#, "[1]", "{\"a\":", "not json"] {
        let calls = vec![CallMessage::new("c", "a__b", arguments)];
        let history = [tests::wire::turn("", calls)];
        for format in Format::ALL {
            let text = serde_json::to_value(format.encode_messages(&history, None).body).unwrap().to_string();
            let empty = [r#""arguments":"{}""#, r#""arguments":{}"#, r#""input":{}"#, r#""args":{}"#];
            assert!(empty.iter().any(|empty| text.contains(empty)), "{format}: {text}");
            assert!(!text.contains("ud800") && !text.contains("[["), "{format}: {text}");
        }
    }
}

#[test]
fn a_tool_that_a_provider_refuses_does_not_block_the_others() {
    let bad = r#"{"type":"object","properties":{"ok":{"type":"object","properties":{"bad name":{}}}}}"#;
    let good = r#"{"type":"object","properties":{}}"#;
    let tools = || [WireTool::new("a__bad", "", bad), WireTool::new("a__good", "", good)];
    let error = Format::Anthropic.encode_tools(tools(), &EncodeOptions::default()).unwrap_err();
    let expected = json!({ "error": { "kind": "unsupported_schema", "tool": "a__bad", "path": "/properties/ok/properties/bad name" } });
    assert_eq!(error.to_json(), expected);
    let options = EncodeOptions::default().with_leave_out_unsupported(true);
    let encoded = Format::Anthropic.encode_tools(tools(), &options).unwrap();
    assert_eq!(encoded.tools().map(|(name, _)| name).collect::<Vec<_>>(), ["a__good"]);
    let losses: Vec<_> = encoded.losses.iter().map(ToString::to_string).collect();
    assert_eq!(losses, ["a__bad: the provider does not take this input schema at /properties/ok/properties/bad name"]);
    // A choice of a tool that was left out is refused, and other formats carry the name.
    let named = options.clone().with_settings(chosen("a__bad"));
    assert!(Format::Anthropic.encode_tools(tools(), &named).is_err());
    assert_eq!(Format::Gemini.encode_tools(tools(), &options).unwrap().tools().len(), 2);
}

#[test]
fn strict_schemas_of_openai_have_ten_levels_of_objects() {
    let nested = |levels: usize| {
        let open = r#"{"type":"object","additionalProperties":false,"required":["a"],"properties":{"a":"#;
        format!("{}{}{}", open.repeat(levels), r#"{"type":"string"}"#, "}}".repeat(levels))
    };
    let strict = EncodeOptions::default().with_strict(true);
    for format in [Format::OpenAiChat, Format::OpenAiResponses] {
        assert!(format.encode_tools([WireTool::new("a__b", "", &nested(10))], &strict).is_ok());
        let error = format.encode_tools([WireTool::new("a__b", "", &nested(11))], &strict).unwrap_err();
        let path = "/properties/a".repeat(10);
        let expected = json!({ "error": { "kind": "strict_unsupported", "tool": "a__b", "path": path } });
        assert_eq!(error.to_json(), expected);
    }
}

#[test]
fn strict_tools_of_anthropic() {
    let strict = EncodeOptions::default().with_strict(true);
    let schema = r#"{"type":"object","properties":{"a":{"type":"string","minLength":1},"n":{"type":["integer","null"],"minimum":0,"default":1}},"required":["a"]}"#;
    let encoded = Format::Anthropic.encode_tools([WireTool::new("a__b", "", schema)], &strict).unwrap();
    let expected = json!([{
        "name": "a__b",
        "input_schema": {
            "type": "object",
            "properties": { "a": { "type": "string" }, "n": { "type": ["integer", "null"] } },
            "required": ["a"],
            "additionalProperties": false,
        },
        "strict": true,
    }]);
    assert_eq!(encoded.body["tools"], expected);
    assert_eq!(encoded.tools().collect::<Vec<_>>(), [("a__b", "closed")]);
    let lost: Vec<_> = encoded.losses.iter().map(|loss| loss.path.as_str()).collect();
    assert_eq!(lost, ["/properties/a/minLength", "/properties/n/default", "/properties/n/minimum"]);
    // A schema that refers to itself cannot be strict; other references can.
    let refers = |to: &str| {
        format!(
            r##"{{"type":"object","properties":{{"a":{{"$ref":"{to}"}}}},"required":["a"],"$defs":{{
            "T":{{"type":"object","properties":{{"t":{{"$ref":"#/$defs/T"}}}}}},"S":{{"type":"string"}}}}}}"##
        )
    };
    for (to, path) in [("#/$defs/T", "/properties/a/$ref"), ("#", "/properties/a/$ref")] {
        let error = Format::Anthropic.encode_tools([WireTool::new("a__b", "", &refers(to))], &strict).unwrap_err();
        assert_eq!(error.path.as_deref(), Some(path));
    }
    // Beyond the provider's limits a tool is sent as it is, and that is reported.
    let optional = r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}"#;
    let union = r#"{"type":"object","properties":{"a":{"type":["string","null"]}},"required":["a"]}"#;
    let plain = r#"{"type":"object","properties":{}}"#;
    for (schema, limit, what) in
        [(plain, 20, "20 strict tools"), (optional, 12, "24 optional"), (union, 16, "16 union")]
    {
        let names: Vec<_> = (0..=limit).map(|at| format!("a__{at:02}")).collect();
        let tools = names.iter().map(|name| WireTool::new(name, "", schema));
        let encoded = Format::Anthropic.encode_tools(tools, &strict).unwrap();
        let strict = encoded.body["tools"].as_array().unwrap().iter().filter(|tool| tool["strict"] == true).count();
        assert_eq!(strict, limit);
        assert_eq!(encoded.losses.len(), 1);
        assert!(encoded.losses[0].what.contains(what), "{}", encoded.losses[0]);
    }
}
