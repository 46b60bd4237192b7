//! `wire`: translates between providers' bytes and this project's types, from stdin to stdout.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tool_runtime::wire::history::{CallMessage, Part, ResultMessage};
use tool_runtime::wire::ui::{Protocol, UiEncoder, UiEvent};
use tool_runtime::wire::{EncodeOptions, Format, Message, RequestSettings, ToolChoice, WireTool};
use tool_runtime_cli::{AppCommand, Cli, Exit, Failure, formats, input, terminal};

/// Translate between a provider's bytes and this project's types, from stdin to stdout
#[derive(Debug, Args)]
pub(crate) struct Wire {
    #[command(subcommand)]
    direction: Direction,
}

#[derive(Debug, Subcommand)]
enum Direction {
    /// Decode a response: a stream or a whole body
    Decode {
        /// The provider's format
        #[arg(value_parser = formats())]
        format: Format,
        /// Feed the decoder this many bytes at a time; 0 feeds it whole
        #[arg(long, default_value_t = 0)]
        chunk: usize,
    },
    /// Encode request parts or result messages, or undo a strict mode's nulls
    Encode {
        /// The provider's format
        #[arg(value_parser = formats())]
        format: Format,
        /// The kind of the value on standard input
        #[arg(long, value_enum)]
        kind: Kind,
    },
    /// Encode a list of UI events as the stream that a chat UI reads
    Ui {
        /// The UI's protocol
        #[arg(value_parser = protocols())]
        protocol: Protocol,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    Request,
    Result,
    StrictNull,
}

fn protocols() -> impl TypedValueParser<Value = Protocol> {
    // The parser accepts only the listed names, so an unknown one never reaches `try_map`.
    PossibleValuesParser::new(Protocol::ALL.iter().map(|protocol| protocol.as_str())).try_map(|text| {
        Protocol::ALL.iter().copied().find(|protocol| protocol.as_str() == text).ok_or("not one of the listed values")
    })
}

impl AppCommand for Wire {
    const NAME: &'static str = "wire";
    const EXAMPLES: &'static str =
        "% wire decode anthropic < body.json\n% wire encode gemini --kind request < tools.json";

    async fn run(self, _: &Cli<'_>) -> Result<Exit, Failure> {
        let bytes = input::stdin()?;
        match self.direction {
            Direction::Decode { format, chunk } => decode(format, &bytes, chunk),
            Direction::Ui { protocol } => encode_ui(protocol, &input::text(bytes, "standard input")?),
            Direction::Encode { format, kind } => {
                let text = input::text(bytes, "standard input")?;
                match kind {
                    Kind::Request => encode_request(format, &text),
                    Kind::Result => encode_result(format, &text),
                    Kind::StrictNull => strict_null(&text),
                }
            }
        }
    }
}

fn decode(format: Format, bytes: &[u8], chunk: usize) -> Result<Exit, Failure> {
    let mut decoder = format.decoder();
    if chunk == 0 {
        decoder.push_with(bytes, |_| {});
    } else {
        bytes.chunks(chunk).for_each(|piece| decoder.push_with(piece, |_| {}));
    }
    // A `Value` cannot hold arguments that are nested too deep or have half a surrogate pair, so this writes text.
    let decoded = serde_json::to_string(&decoder.finish()).map_err(|error| Failure::failed(error.to_string()))?;
    terminal::line(&terminal::safe_json(&decoded));
    Ok(Exit::Done)
}

/// A request in this project's types.
#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    tools: Vec<Tool<'a>>,
    tool_choice: Option<Value>,
    parallel: Option<bool>,
    /// The settings, with the names of [`RequestSettings`]. Their parts of the body are printed, too.
    settings: Option<RequestSettings>,
    #[serde(default)]
    strict: bool,
}

#[derive(Deserialize)]
struct Tool<'a> {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(borrow)]
    input_schema: &'a RawValue,
}

fn encode_request(format: Format, text: &str) -> Result<Exit, Failure> {
    let request: Request<'_> = read(text)?;
    let mut settings = request.settings.clone().unwrap_or_default();
    settings.parallel_calls = request.parallel.or(settings.parallel_calls);
    if let Some(asked) = request.tool_choice.as_ref().filter(|choice| !choice.is_null()) {
        settings.tool_choice = Some(choice(asked)?);
    }
    let options = EncodeOptions::default().with_strict(request.strict).with_settings(settings);
    let tools = request.tools.iter().map(|tool| WireTool::new(&tool.name, &tool.description, tool.input_schema.get()));
    let encoded = format.encode_tools(tools, &options).and_then(|mut tools| {
        let settings = format.encode_settings(&options.settings, None)?;
        tools.body.extend(settings.body);
        tools.losses.extend(settings.losses);
        Ok(tools)
    });
    match encoded {
        Ok(encoded) => {
            terminal::losses(&encoded.losses);
            print(&encoded.body.into())
        }
        Err(error) => {
            print(&error.to_json())?;
            Ok(Exit::Failed)
        }
    }
}

fn choice(choice: &Value) -> Result<ToolChoice, Failure> {
    match (choice.as_str(), choice.get("name").and_then(Value::as_str)) {
        (Some("auto"), _) => Ok(ToolChoice::Auto),
        (Some("none"), _) => Ok(ToolChoice::None),
        (Some("required"), _) => Ok(ToolChoice::Required),
        (_, Some(name)) => Ok(ToolChoice::Named(name.to_owned())),
        _ => serde_json::from_value(choice.clone()).map_err(|_| {
            let forms =
                "`auto`, `none`, `required`, {\"name\": ..} or {\"allowed\": {\"names\": [..], \"required\": ..}}";
            Failure::usage(format!("`tool_choice` is {forms}"))
        }),
    }
}

/// A turn with calls, and their results.
#[derive(Deserialize)]
struct Turn {
    text: Option<String>,
    calls: Vec<Call>,
    user_text_after: Option<String>,
}

#[derive(Deserialize)]
struct Call {
    id: String,
    name: String,
    /// The arguments; `None` if they could not be parsed.
    arguments: Option<Box<RawValue>>,
    content: String,
    #[serde(default)]
    is_error: bool,
}

fn encode_result(format: Format, text: &str) -> Result<Exit, Failure> {
    let turn: Turn = read(text)?;
    let arguments = |call: &Call| call.arguments.as_ref().map_or_else(String::new, |raw| raw.get().to_owned());
    let calls = turn.calls.iter().map(|call| CallMessage::new(call.id.as_str(), call.name.clone(), &arguments(call)));
    let text = turn.text.filter(|text| !text.is_empty()).map(Part::text);
    let mut history = vec![Message::Assistant(text.into_iter().chain(calls.map(Part::Call)).collect())];
    history.extend(turn.calls.iter().map(|call| {
        let (id, content) = (call.id.as_str(), call.content.clone());
        Message::Result(if call.is_error {
            ResultMessage::failed(id, content)
        } else {
            ResultMessage::new(id, content)
        })
    }));
    history.extend(turn.user_text_after.map(Message::user));
    let body = serde_json::to_value(format.encode_messages(&history, None).body);
    print(&body.map_err(|error| Failure::failed(error.to_string()))?)
}

/// The arguments that a model wrote in strict mode, and the original schema. The model got a closed copy of the schema.
#[derive(Deserialize)]
struct StrictNull<'a> {
    #[serde(borrow)]
    input_schema: &'a RawValue,
    #[serde(borrow)]
    arguments: &'a RawValue,
}

fn strict_null(text: &str) -> Result<Exit, Failure> {
    let input: StrictNull<'_> = read(text)?;
    let arguments = WireTool::new("", "", input.input_schema.get()).remove_nulls(input.arguments.get());
    print(&json!({ "arguments": read::<Value>(&arguments)? }))
}

fn encode_ui(protocol: Protocol, text: &str) -> Result<Exit, Failure> {
    let events: Vec<UiEvent> = read(text)?;
    let mut encoder = UiEncoder::new(protocol);
    for event in &events {
        terminal::bytes(&encoder.push(event));
    }
    terminal::bytes(&encoder.finish());
    Ok(Exit::Done)
}

fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Failure> {
    serde_json::from_str(text)
        .map_err(|error| Failure::usage(format!("standard input is not what this kind takes: {error}")))
}

fn print(value: &Value) -> Result<Exit, Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Failure::failed(error.to_string()))?;
    terminal::line(&terminal::safe_json(&text));
    Ok(Exit::Done)
}
