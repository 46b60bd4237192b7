//! Typed answers over HTTP: the provider's mode for schemas where the request allows it, a tool in its place elsewhere.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tool_runtime::agent::{Agent, AnswerError};

use super::*;

#[derive(Debug, Deserialize, PartialEq, JsonSchema)]
struct Sum {
    /// The number.
    total: u32,
    /// What to say of it.
    note: Option<String>,
}

type Configured = fn(HttpModelBuilder) -> HttpModelBuilder;

/// Asks over loopback and returns the answer with the bodies of the requests.
async fn asked<T: serde::de::DeserializeOwned + JsonSchema>(
    format: Format,
    allowed: &[&str],
    configure: Configured,
    settings: RequestSettings,
    turns: Vec<Turn>,
) -> (Result<T, AnswerError>, Vec<Value>) {
    let server = Server::start(turns.iter().map(|turn| Reply::stream(&turn.stream(format)))).unwrap();
    let policy = ToolPolicy::allow(allowed.iter().copied());
    let runner = ToolRunner::builder(tests::world::tools().build().unwrap(), policy).build().unwrap();
    let model = configure(client(format, &server)).build().unwrap();
    let mut conversation = Agent::new(model).guidance(false).settings(settings).converse(runner.run(RunOptions::new()));
    let answer = conversation.ask::<T>("Double 1.").await;
    (answer, server.asked().iter().map(|asked| serde_json::from_str(&asked.body).unwrap()).collect())
}

fn plain(model: HttpModelBuilder) -> HttpModelBuilder {
    model
}

/// The schema as the provider's mode gets it; `None` if a tool takes its place.
fn mode(format: Format, body: &Value) -> Option<&Value> {
    let place = match format {
        Format::OpenAiChat => "/response_format/json_schema/schema",
        Format::OpenAiResponses => "/text/format/schema",
        Format::Anthropic => "/output_config/format/schema",
        Format::Gemini => "/generationConfig/responseJsonSchema",
        _ => "/format",
    };
    body.pointer(place)
}

fn by_call(json: &str) -> Turn {
    Turn::calls([("z", "final_answer", json)])
}

#[tokio::test]
async fn each_format_has_a_mode_for_schemas() {
    for &format in Format::ALL {
        let settings = RequestSettings::new().reasoning(ReasoningEffort::Low);
        let turns = vec![Turn::text(r#"{"total":2,"note":null}"#)];
        let (answer, bodies) = asked::<Sum>(format, &[], plain, settings, turns).await;
        assert_eq!(answer.unwrap(), Sum { total: 2, note: None }, "{format}");
        let schema = mode(format, &bodies[0]).unwrap_or_else(|| panic!("{format}: {}", bodies[0]));
        assert_eq!(schema["additionalProperties"], false, "{schema}");
        assert!(!bodies[0].to_string().contains("tools"), "{}", bodies[0]);
        match format {
            Format::OpenAiChat => {
                assert_eq!(bodies[0]["response_format"]["json_schema"]["strict"], true);
                assert_eq!(schema["required"], json!(["total", "note"]));
            }
            // In addition to the fields that a setting writes into the same object.
            Format::Anthropic => assert_eq!(bodies[0]["output_config"]["effort"], "low"),
            Format::Gemini => assert_eq!(bodies[0]["generationConfig"]["responseMimeType"], "application/json"),
            _ => {}
        }
    }
}

#[tokio::test]
async fn tools_are_called_before_the_answer() {
    for &format in Format::ALL {
        let by_tool = matches!(format, Format::Ollama | Format::Gemini);
        let last = if by_tool { by_call(r#"{"total":2}"#) } else { Turn::text(r#"{"total":2,"note":null}"#) };
        let turns = vec![Turn::calls([("a", "rig__double", r#"{"n":1}"#)]), last];
        let (answer, bodies) = asked::<Sum>(format, &["rig__double"], plain, RequestSettings::new(), turns).await;
        assert_eq!(answer.unwrap().total, 2, "{format}");
        for body in &bodies {
            let text = body.to_string();
            assert_eq!(
                (mode(format, body).is_none(), text.contains("Gives the final answer")),
                (by_tool, by_tool),
                "{text}"
            );
            assert!(text.contains("rig__double"));
        }
    }
}

#[tokio::test]
async fn a_tool_takes_the_place_of_a_mode_that_cannot_be_used() {
    // A schema that cannot be closed, and a server without the mode.
    for &format in Format::ALL.iter().filter(|format| !matches!(format, Format::Ollama | Format::Gemini)) {
        type Counts = BTreeMap<String, u32>;
        let turns = || vec![by_call(r#"{"a":1}"#)];
        let (answer, bodies) = asked::<Counts>(format, &[], plain, RequestSettings::new(), turns()).await;
        assert_eq!(answer.unwrap(), Counts::from([("a".to_owned(), 1)]), "{format}");
        assert!(mode(format, &bodies[0]).is_none(), "{}", bodies[0]);
        assert!(bodies[0]["tool_choice"].to_string().contains("final_answer"), "alone, it is forced: {}", bodies[0]);
        let settings = RequestSettings::new().reasoning(ReasoningEffort::Low);
        let (_, bodies) = asked::<Counts>(format, &[], plain, settings, turns()).await;
        assert!(bodies[0].get("tool_choice").is_none(), "a model that thinks is not forced: {}", bodies[0]);
    }
    let without: Configured = |model| model.schema_answers(false);
    let turns = vec![by_call(r#"{"total":2}"#)];
    let (answer, bodies) = asked::<Sum>(Format::OpenAiChat, &[], without, RequestSettings::new(), turns).await;
    assert!(answer.is_ok() && mode(Format::OpenAiChat, &bodies[0]).is_none());
}

#[tokio::test]
async fn extra_fields_do_not_override_the_form_of_the_answer() {
    for (format, field, value) in [
        (Format::Ollama, "format", json!("json")),
        (Format::Ollama, "FORMAT", json!("json")),
        (Format::OpenAiChat, "responseFormat", json!({"type": "text"})),
        (Format::OpenAiResponses, "text", json!({"Format": {"type": "text"}})),
        (Format::Gemini, "generationConfig", json!({"response_json_schema": {}})),
    ] {
        let settings = RequestSettings::new().extra(field, value);
        let turns = vec![Turn::text(r#"{"total":2}"#)];
        let (answer, bodies) = asked::<Sum>(format, &[], plain, settings, turns).await;
        assert!(bodies.is_empty() && answer.is_err(), "{format} {field}");
    }
    let settings = RequestSettings::new().extra("response_format", json!({"type": "text"}));
    let (answer, bodies) = asked::<Sum>(Format::OpenAiChat, &[], plain, settings.clone(), Vec::new()).await;
    let error = answer.expect_err("refused");
    assert!(bodies.is_empty() && error.to_string().contains("cannot be written"), "{error}");
    let server = Server::start([Reply::stream(&Turn::text("Hi.").stream(Format::OpenAiChat))]).unwrap();
    assert!(
        ask_with(&client(Format::OpenAiChat, &server).build().unwrap(), &settings).await.is_ok(),
        "it is free else"
    );
}
