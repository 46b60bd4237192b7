//! The wire fixtures and the transcripts of real servers: the decoders and encoders of all formats give the expected
//! results. Streams are decoded whole and in pieces.

use serde_json::{Value, json};
use tests::wire::{cases, decode, each_case, expected, fixtures, input, raw, read_json, recorded, result, turn};
use tool_runtime::wire::history::{CallMessage, ResultMessage};
use tool_runtime::wire::{DecodedCall, EncodeOptions, Format, Message, RequestSettings, ToolChoice, WireTool};

#[test]
fn streams_decode_the_same_in_every_cut() {
    each_case("stream", |format, case| {
        let bytes = std::fs::read(fixtures("wire").join(case["input"].as_str().unwrap())).unwrap();
        let cuts = [usize::MAX, 1, 7, 64];
        cuts.map(|cut| (format!("cut {cut}"), result(&decode(format, &bytes, cut)), case["expected"].clone())).into()
    });
}

#[test]
fn no_prefix_of_a_stream_panics_or_runs_a_call_it_did_not_finish() {
    for (format, case) in cases("stream") {
        let bytes = std::fs::read(fixtures("wire").join(case["input"].as_str().unwrap())).unwrap();
        let whole = decode(format, &bytes, usize::MAX);
        // Every seventh byte, from another one in each case, reaches all kinds of places.
        for end in (bytes.len() % 7..bytes.len()).step_by(7) {
            let part = decode(format, &bytes[..end], usize::MAX);
            for call in part.calls.iter().filter(|call| call.is_executable()) {
                let known = whole
                    .calls
                    .iter()
                    .any(|other| other.call.name == call.call.name && other.call.arguments() == call.call.arguments());
                assert!(known, "{} at {end}", case["id"]);
            }
        }
    }
}

#[test]
fn requests() {
    #[derive(serde::Deserialize)]
    struct Input<'a> {
        #[serde(borrow)]
        tools: Vec<Tool<'a>>,
        tool_choice: Option<Value>,
        parallel: Option<bool>,
        #[serde(default)]
        strict: bool,
    }
    #[derive(serde::Deserialize)]
    struct Tool<'a> {
        name: String,
        description: String,
        #[serde(borrow)]
        input_schema: &'a serde_json::value::RawValue,
    }
    each_case("request", |format, case| {
        let raw = raw(case);
        let input: Input<'_> = serde_json::from_str(raw.get()).unwrap();
        let mut settings = RequestSettings::new();
        settings.parallel_calls = input.parallel;
        settings.tool_choice = input.tool_choice.map(|choice| match choice.as_str() {
            Some("auto") => ToolChoice::Auto,
            Some("required") => ToolChoice::Required,
            Some("none") => ToolChoice::None,
            _ => ToolChoice::Named(choice["name"].as_str().unwrap().to_owned()),
        });
        let options = EncodeOptions::default().with_strict(input.strict).with_settings(settings);
        let tools =
            input.tools.iter().map(|tool| WireTool::new(&tool.name, &tool.description, tool.input_schema.get()));
        let got = match format.encode_tools(tools, &options) {
            Ok(encoded) => {
                assert_eq!(encoded.tools().len(), input.tools.len());
                Value::Object(encoded.body)
            }
            Err(error) => error.to_json(),
        };
        vec![(String::new(), got, expected(case))]
    });
}

#[test]
fn results() {
    each_case("result", |format, case| {
        let input = input(case);
        let mut history = Vec::new();
        let listed = input["calls"].as_array().unwrap();
        let arguments = |call: &Value| match &call["arguments"] {
            Value::Null => "not json".to_owned(),
            object => object.to_string(),
        };
        let name = |call: &Value| call["name"].as_str().unwrap().to_owned();
        let id = |call: &Value| call["id"].as_str().unwrap().to_owned();
        let calls =
            listed.iter().map(|call| CallMessage::new(id(call).as_str(), name(call), &arguments(call))).collect();
        let text = input["text"].as_str().unwrap_or_default().to_owned();
        history.push(turn(&text, calls));
        // M1 orders the results, however they came.
        for call in listed.iter().rev() {
            let content = call["content"].as_str().unwrap();
            let failed = call["is_error"].as_bool().unwrap_or(false);
            let result = if failed { ResultMessage::failed } else { ResultMessage::new };
            history.push(Message::Result(result(id(call).as_str(), content)));
        }
        if let Some(text) = input["user_text_after"].as_str() {
            history.insert(1, Message::user(text));
        }
        vec![(
            String::new(),
            serde_json::to_value(format.encode_messages(&history, None).body).unwrap(),
            expected(case),
        )]
    });
}

#[test]
fn turns_go_back_in_the_next_request() {
    each_case("turn", |format, case| {
        let bytes = std::fs::read(fixtures("wire").join(case["input"].as_str().unwrap())).unwrap();
        let model = case["model"].as_str();
        let sent = |cut| {
            let decoded = decode(format, &bytes, cut);
            let done = |call: &DecodedCall| Message::Result(ResultMessage::new(call.call.id.clone(), "done"));
            let mut history = vec![Message::user("Hello"), Message::Assistant(decoded.parts())];
            history.extend(decoded.calls.iter().map(done));
            let encoded = format.encode_messages(&history, model);
            assert!(encoded.losses.is_empty(), "{}: {:?}", case["id"], encoded.losses);
            serde_json::to_value(encoded.body).unwrap()
        };
        [usize::MAX, 1, 7].map(|cut| (format!("cut {cut}"), sent(cut), expected(case))).into()
    });
}

#[test]
fn strict_nulls() {
    each_case("strict_null", |_, case| {
        let input = input(case);
        let arguments = input["arguments"].to_string();
        let schema = input["input_schema"].to_string();
        let less = WireTool::new("", "", &schema).remove_nulls(&arguments).into_owned();
        let got = json!({ "arguments": serde_json::from_str::<Value>(&less).unwrap() });
        vec![(String::new(), got, expected(case))]
    });
}

#[test]
fn transcripts_decode_to_their_index() {
    let index = read_json(&fixtures("transcripts").join("index.json"));
    let mut seen = 0;
    for case in index.as_array().unwrap() {
        let format = match case["api"].as_str().unwrap() {
            "chat" => "openai_chat",
            "messages" => "anthropic",
            _ => "openai_responses",
        };
        let Ok(format) = format.parse::<Format>() else { continue };
        seen += 1;
        let id = case["id"].as_str().unwrap();
        let bytes = std::fs::read(fixtures("transcripts").join(case["response"].as_str().unwrap())).unwrap();
        let (status, body) = recorded(&bytes);
        assert_eq!(u64::from(status), case["status"].as_u64().unwrap(), "{id}");
        let decoded = decode(format, &body, usize::MAX);
        assert_eq!(result(&decoded), result(&decode(format, &body, 1)), "{id}");
        let got: Vec<Value> =
            decoded.calls.iter().map(|call| json!([call.call.id, call.call.name, call.call.arguments()])).collect();
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_else(|_| text.into());
        let expected = case["calls"].as_array().unwrap();
        assert_eq!(got.len(), expected.len(), "{id}");
        for (got, expected) in got.iter().zip(expected) {
            assert_eq!([&got[0], &got[1]], [&expected["id"], &expected["name"]], "{id}");
            let (got, expected) = (got[2].as_str().unwrap(), expected["arguments"].as_str().unwrap());
            assert!(got == expected || read(got) == read(expected), "{id}: {got} {expected}");
        }
        assert_eq!(decoded.text, case["text"].as_str().unwrap_or_default(), "{id}");
        let finish = case["finish"].as_str();
        assert_eq!(decoded.error.is_some(), !case["error"].is_null(), "{id}: {:?}", decoded.error);
        if let Some(message) = case["error"]["message"].as_str() {
            assert_eq!(decoded.error.as_ref().unwrap().message.as_deref(), Some(message), "{id}");
        }
        let clean = matches!(finish, Some("tool_calls" | "stop" | "tool_use" | "end_turn" | "completed"));
        assert_eq!(decoded.ended_well(), clean && case["error"].is_null(), "{id}");
        for call in &decoded.calls {
            assert!(decoded.ended_well() || !(call.is_executable() || call.call.is_complete()), "{id}");
        }
    }
    assert_eq!(seen, 197);
}
