//! `wire`: provider bytes to this project's shapes and back, stdin to stdout.

use serde::Deserialize;
use serde_json::Value;

use crate::cli::args::{Direction, Format, Kind};
use crate::cli::exit::{Exit, Failure};
use crate::cli::{input, terminal};
use crate::wire::openai_chat::{self, DecodeOptions};

pub(super) fn wire(direction: Direction) -> Result<Exit, Failure> {
    let bytes = input::stdin()?;
    match direction {
        Direction::Decode { format: Format::OpenAiChat, chunk } => decode(&bytes, chunk),
        Direction::Encode { format: Format::OpenAiChat, kind } => encode(bytes, kind),
    }
}

fn decode(bytes: &[u8], chunk: usize) -> Result<Exit, Failure> {
    let mut decoder = openai_chat::Decoder::new(DecodeOptions::default());
    if chunk == 0 {
        decoder.push(bytes);
    } else {
        for piece in bytes.chunks(chunk) {
            decoder.push(piece);
        }
    }
    let decoded = decoder.finish();
    print(&serde_json::to_value(&decoded).map_err(|error| Failure::failed(error.to_string()))?)
}

fn encode(bytes: Vec<u8>, kind: Kind) -> Result<Exit, Failure> {
    let text = input::text(bytes, "standard input")?;
    let document: Value =
        serde_json::from_str(&text).map_err(|error| Failure::usage(format!("standard input is not JSON: {error}")))?;
    let unreadable = |error: serde_json::Error| Failure::usage(format!("standard input has another shape: {error}"));
    match kind {
        Kind::Request => {
            let request = openai_chat::RequestInput::deserialize(&document).map_err(unreadable)?;
            match openai_chat::encode_request(&request) {
                Ok(encoded) => print(&encoded.body),
                Err(error) => {
                    print(&error.to_value())?;
                    Ok(Exit::Failed)
                }
            }
        }
        Kind::Result => {
            let turn = openai_chat::TurnInput::deserialize(&document).map_err(unreadable)?;
            print(&openai_chat::encode_turn(&turn))
        }
        Kind::StrictNull => {
            let input = openai_chat::StrictNullInput::deserialize(&document).map_err(unreadable)?;
            print(&openai_chat::strip_strict_nulls(&input))
        }
    }
}

fn print(value: &Value) -> Result<Exit, Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Failure::failed(error.to_string()))?;
    terminal::line(&terminal::safe_json(&text));
    Ok(Exit::Done)
}
