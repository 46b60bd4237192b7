//! Request settings: the fields that each format writes, the losses that it reports, and the refusals.

use serde_json::{Map, Value, json};
use tests::wire::{fixtures, read_json};
use tool_runtime::wire::{EncodeOptions, Format, ReasoningEffort, RequestSettings, ToolChoice, WireTool};

/// The body and the losses of each format, as `{format: {body, losses}}`.
fn written(settings: &RequestSettings, model: Option<&str>) -> Value {
    let each = Format::ALL.iter().map(|format| {
        let encoded = format.encode_settings(settings, model).unwrap();
        let losses: Vec<String> = encoded.losses.iter().map(|loss| format!("{}: {}", loss.path, loss.what)).collect();
        (format.as_str().to_owned(), json!({"body": encoded.body, "losses": losses}))
    });
    Value::Object(each.collect())
}

/// `REFRESH_SETTINGS=1` writes the bodies again; review the difference.
#[test]
fn each_format_writes_settings_as_its_provider_documents_them() {
    let folder = fixtures("settings");
    let mut cases = read_json(&folder.join("cases.json"));
    let refresh = std::env::var_os("REFRESH_SETTINGS").is_some();
    let list = cases.as_array_mut().unwrap();
    assert!(list.len() > 20);
    for case in list {
        let settings: RequestSettings = serde_json::from_value(case["settings"].clone()).unwrap();
        assert_eq!(serde_json::to_value(&settings).unwrap(), case["settings"], "a document stays what it was");
        let got = written(&settings, case["model"].as_str());
        if refresh {
            case["expected"] = got;
        } else {
            assert_eq!(got, case["expected"], "{}", case["name"]);
        }
    }
    if refresh {
        let mut text = serde_json::to_string_pretty(&cases).unwrap();
        text.push('\n');
        std::fs::write(folder.join("cases.json"), text).unwrap();
    }
}

#[test]
fn what_no_provider_takes_is_refused() {
    let new = RequestSettings::new;
    let refused = [
        (new().temperature(f64::NAN), "temperature"),
        (new().temperature(f64::INFINITY), "temperature"),
        (new().temperature(-0.1), "temperature"),
        (new().temperature(1e300), "temperature"),
        (new().top_p(f64::NAN), "top_p"),
        (new().top_p(1.01), "top_p"),
        (new().top_p(-1.0), "top_p"),
        (new().max_output_tokens(0), "max_output_tokens"),
        (new().stop("a").stop(""), "stop"),
        (new().tool_choice(ToolChoice::Allowed { names: Vec::new(), required: true }), "tool_choice"),
    ];
    for (settings, path) in refused {
        for format in Format::ALL {
            let error = format.encode_settings(&settings, None).unwrap_err().to_json();
            assert_eq!(error, json!({"error": {"kind": "invalid_setting", "path": path}}), "{format}");
        }
    }
    for wrong in [
        json!({"temprature": 1}),
        json!({"temperature": "hot"}),
        json!({"max_output_tokens": -1}),
        json!({"max_output_tokens": 1e99}),
        json!({"reasoning": "much"}),
        json!({"reasoning": {"tokens": -1}}),
        json!({"tool_choice": {"allowed": {"names": ["a"]}}}),
        json!({"extra": []}),
    ] {
        assert!(serde_json::from_value::<RequestSettings>(wrong.clone()).is_err(), "{wrong}");
    }
}

/// The error of an extra field, or `None`.
fn refusal(format: Format, extra: Value) -> Option<String> {
    let Value::Object(extra) = extra else { panic!("an object") };
    let mut settings = RequestSettings::new();
    settings.extra = extra;
    let error = format.encode_settings(&settings, None).err()?.to_json();
    Some(error["error"]["path"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn extra_fields_override_nothing() {
    let named =
        ["messages", "tools", "model", "stream", "tool_choice", "input", "contents", "system", "n", "functions"];
    for format in Format::ALL {
        for name in named {
            let extra = Value::Object(Map::from_iter([(name.to_owned(), json!([]))]));
            assert_eq!(refusal(*format, extra), Some(format!("extra.{name}")), "{format}");
        }
        // Servers that ignore case, or read both spellings, would take these for the real ones.
        for name in [
            "Messages",
            "MODEL",
            "extra_body",
            "toolChoice",
            "tool_config",
            "system_instruction",
            "Stream",
            "me\u{17f}\u{17f}ages",
            "tool\u{17f}",
            "cached_content",
        ] {
            let extra = Value::Object(Map::from_iter([(name.to_owned(), json!([]))]));
            assert_eq!(refusal(*format, extra), Some(format!("extra.{name}")), "{format}");
        }
        assert_eq!(refusal(*format, json!({"top_k": 40, "logprobs": true})), None, "{format}");
        let large = json!({"note": "x".repeat(65 << 10)});
        assert_eq!(refusal(*format, large), Some("extra".to_owned()), "{format}");
    }
    let nested = [
        (Format::Ollama, json!({"options": {"temperature": 1}}), Some("extra.options.temperature")),
        (Format::Ollama, json!({"options": {"Num_Predict": 1}}), Some("extra.options.Num_Predict")),
        (Format::Ollama, json!({"Options": {"num_ctx": 1}}), Some("extra.Options")),
        (Format::Ollama, json!({"options": 1}), Some("extra.options")),
        (Format::Ollama, json!({"options": {"num_ctx": 1}}), None),
        (Format::Gemini, json!({"generationConfig": {"topP": 1}}), Some("extra.generationConfig.topP")),
        (Format::Gemini, json!({"generationConfig": {"top_p": 1}}), Some("extra.generationConfig.top_p")),
        (Format::Gemini, json!({"generation_config": {"topK": 1}}), Some("extra.generation_config")),
        (
            Format::Gemini,
            json!({"generationConfig": {"candidateCount": 2}}),
            Some("extra.generationConfig.candidateCount"),
        ),
        (Format::Gemini, json!({"generationConfig": null}), Some("extra.generationConfig")),
        (Format::Gemini, json!({"generationConfig": {"thinkingConfig": {"includeThoughts": true}}}), None),
        (
            Format::Gemini,
            json!({"generationConfig": {"thinkingConfig": []}}),
            Some("extra.generationConfig.thinkingConfig"),
        ),
        (Format::Anthropic, json!({"thinking": {"budget_tokens": 1}}), Some("extra.thinking.budget_tokens")),
        (Format::Anthropic, json!({"thinking": {"display": "omitted"}, "top_k": 5}), None),
        (Format::Anthropic, json!({"metadata": {"user_id": "u"}}), Some("extra.metadata.user_id")),
        (Format::OpenAiChat, json!({"max_tokens": 1}), Some("extra.max_tokens")),
        (Format::OpenAiChat, json!({"stop": null}), Some("extra.stop")),
        (Format::OpenAiResponses, json!({"reasoning": {"effort": "low"}}), Some("extra.reasoning.effort")),
        (Format::OpenAiResponses, json!({"reasoning": {"summary": "auto"}, "include": []}), None),
    ];
    for (format, extra, path) in nested {
        assert_eq!(refusal(format, extra.clone()).as_deref(), path, "{format} {extra}");
    }
    // In addition to the fields that a setting writes into the same object.
    let settings =
        RequestSettings::new().reasoning(ReasoningEffort::Low).extra("reasoning", json!({"summary": "auto"}));
    let body = Format::OpenAiResponses.encode_settings(&settings, None).unwrap().body;
    assert_eq!(body["reasoning"], json!({"effort": "low", "summary": "auto"}));
}

#[test]
fn a_subset_of_tools_is_a_choice_or_what_is_offered() {
    let schema = r#"{"type":"object","properties":{}}"#;
    let tools = ["a", "b", "c"].map(|name| WireTool::new(name, "", schema));
    let offered = |format: Format, names: &[&str], required: bool| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let settings = RequestSettings::new().tool_choice(ToolChoice::Allowed { names, required });
        let encoded = format.encode_tools(tools, &EncodeOptions::default().with_settings(settings));
        encoded.map(|encoded| {
            let tools = encoded.tools().len();
            (tools, encoded.losses.len(), Value::Object(encoded.body))
        })
    };
    let (count, _, body) = offered(Format::OpenAiChat, &["a", "b"], true).unwrap();
    let function = |name: &str| json!({"type": "function", "function": {"name": name}});
    let choice = json!({"mode": "required", "tools": [function("a"), function("b")]});
    assert_eq!((count, &body["tool_choice"]), (3, &json!({"type": "allowed_tools", "allowed_tools": choice})));
    let (count, _, body) = offered(Format::OpenAiResponses, &["b"], false).unwrap();
    let choice = json!({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "b"}]});
    assert_eq!((count, &body["tool_choice"]), (3, &choice));
    for (required, mode) in [(true, "ANY"), (false, "VALIDATED")] {
        let (count, _, body) = offered(Format::Gemini, &["b"], required).unwrap();
        let choice = json!({"mode": mode, "allowedFunctionNames": ["b"]});
        assert_eq!((count, &body["toolConfig"]["functionCallingConfig"]), (3, &choice));
    }
    for (required, kind) in [(true, "any"), (false, "auto")] {
        let (count, losses, body) = offered(Format::Anthropic, &["a", "b"], required).unwrap();
        assert_eq!((count, losses, &body["tool_choice"]), (2, 1, &json!({"type": kind})));
    }
    assert_eq!(offered(Format::Ollama, &["a"], false).map(|(count, ..)| count), Ok(1));
    for format in Format::ALL {
        let error = offered(*format, &["a", "x"], false).unwrap_err().to_json();
        assert_eq!(error["error"], json!({"kind": "unknown_tool_choice", "tool": "x"}), "{format}");
    }
    assert!(offered(Format::Ollama, &["a"], true).is_err(), "nothing forces a call there");
}

#[test]
fn settings_of_a_message_win_one_by_one() {
    let agent = RequestSettings::new().temperature(0.2).seed(1).stop("A").extra("top_k", 1).metadata("a", "1");
    let message =
        RequestSettings::new().temperature(0.9).reasoning(ReasoningEffort::Low).metadata("a", "2").metadata("b", "3");
    let both = message.or(&agent);
    assert_eq!((both.temperature, both.seed, both.reasoning), (Some(0.9), Some(1), Some(ReasoningEffort::Low)));
    assert_eq!((both.stop.len(), both.extra.len(), both.metadata["a"].as_str()), (1, 1, "2"));
}
