//! Strict copies, null removal, history and recorded responses beyond the fixtures.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tool_runtime::call::CallId;
use tool_runtime::wire::history::{self, Answer, CallMessage, HistoryErrorKind, Issued, Message, ResultMessage};
use tool_runtime::wire::{EncodeOptions, Format, ToolChoice, WireTool, strict};

/// The closed copy, or the pointer of what cannot be closed.
#[track_caller]
fn check_close(schema: &str, expected: &str) {
    let got = match strict::close(schema) {
        Ok(closed) => closed.schema,
        Err(path) => Value::String(path),
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
    assert!(strict::close(&deep).is_err());
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
        assert_eq!(strict::remove_nulls(schema, arguments), expected);
    }
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
        let named = || EncodeOptions::default().with_choice(ToolChoice::Named("b".to_owned()));
        assert_eq!(encode(&tools, named()).unwrap_err(), "unknown_tool_choice", "{format}");
        let auto = EncodeOptions::default().with_choice(ToolChoice::Auto).with_parallel(false);
        assert!(encode(&[], auto).unwrap().body.is_empty(), "{format}");
        let strict = encode(&tools, EncodeOptions::default().with_strict(true)).unwrap();
        assert_eq!(strict.losses.is_empty(), format.as_str().starts_with("openai"), "{format}");
    }
}

fn call(id: &str) -> CallMessage {
    CallMessage::new(id, "a__b", r#"{ "x": 1.50, "s": " \" " }"#)
}

fn turn(ids: &[&str]) -> Message {
    Message::Assistant { text: String::new(), calls: ids.iter().map(|id| call(id)).collect() }
}

fn answer(id: &str) -> Message {
    Message::Result(ResultMessage::new(id, format!("result of {id}"), false))
}

#[test]
fn client_history_is_checked() {
    use HistoryErrorKind::{Duplicate, Forged, Orphan};
    let given = Answer::Given(ResultMessage::new("s", "result of s", false));
    let issued: BTreeMap<CallId, Issued> =
        [("c", Answer::Client), ("d", Answer::Client), ("s", given), ("p", Answer::Pending)]
            .into_iter()
            .map(|(id, answer)| (CallId::new(id), Issued::new(call(id), answer)))
            .collect();
    let user = || Message::User("hello".to_owned());
    let other = Message::Assistant { text: String::new(), calls: vec![CallMessage::new("c", "a__b", r#"{"x":2}"#)] };
    let reordered = CallMessage::new("c", "a__b", r#"{"s":" \" ","x":1.5}"#);
    let reordered = Message::Assistant { text: String::new(), calls: vec![reordered] };
    for (history, expected) in [
        (vec![user(), turn(&["c", "s"]), answer("s"), answer("c"), user()], None),
        (vec![reordered, answer("c")], None),
        (vec![turn(&["c", "d"]), answer("c")], None),
        (vec![answer("c")], Some((Orphan, "c"))),
        (vec![turn(&["c"]), user(), answer("c")], Some((Orphan, "c"))),
        (vec![turn(&["c"]), turn(&["d"]), answer("c")], Some((Orphan, "c"))),
        (vec![turn(&["c"]), answer("c"), answer("c")], Some((Duplicate, "c"))),
        (vec![turn(&["c"]), answer("c"), turn(&["c"])], Some((Duplicate, "c"))),
        (vec![turn(&["c", "c"])], Some((Duplicate, "c"))),
        (vec![turn(&["x"]), answer("x")], Some((Forged, "x"))),
        (vec![other, answer("c")], Some((Forged, "c"))),
        (vec![turn(&["p"]), answer("p")], Some((Forged, "p"))),
        (vec![turn(&["s"]), Message::Result(ResultMessage::new("s", "better", false))], Some((Forged, "s"))),
    ] {
        let got = history::check(&history, &issued).err();
        assert_eq!(got.as_ref().map(|error| (error.kind, error.id.as_str())), expected, "{history:?}");
    }
}

#[test]
fn own_history_is_repaired() {
    let user = Message::User("hello".to_owned());
    let history =
        [answer("x"), turn(&["a", "b", "c"]), user.clone(), answer("c"), answer("a"), answer("a"), turn(&["d"])];
    let repaired = history::repair(&history);
    let cancelled = |id: &str| Message::Result(ResultMessage::cancelled(CallId::new(id)));
    let expected =
        vec![turn(&["a", "b", "c"]), answer("a"), cancelled("b"), answer("c"), user, turn(&["d"]), cancelled("d")];
    assert_eq!(repaired, expected);
    assert_eq!(history::repair(&repaired), repaired);
    // Every format writes every call with one result, arguments digit for digit.
    let body = Format::OpenAiChat.encode_messages(&history);
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(messages.iter().filter(|message| message["role"] == "tool").count(), 4);
    assert_eq!(messages[0]["tool_calls"][0]["function"]["arguments"], r#"{"x":1.50,"s":" \" "}"#);
    assert!(messages[2]["content"].as_str().unwrap().contains("\"errorCode\":\"cancelled\""));
}

#[test]
fn blank_text_is_left_out_where_it_is_refused() {
    let history = [
        Message::User(" ".into()),
        Message::Assistant { text: "\n".into(), calls: vec![] },
        Message::System("s".into()),
    ];
    let body = Format::Anthropic.encode_messages(&history);
    assert_eq!(Value::Object(body), json!({ "messages": [], "system": "s" }));
}
