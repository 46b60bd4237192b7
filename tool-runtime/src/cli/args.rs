//! The grammar of the command line.

use std::path::PathBuf;

use clap::builder::PossibleValue;
use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};

use crate::wire::Format;
use crate::wire::ui::Protocol;

#[derive(Debug, Parser)]
#[command(disable_help_subcommand = true)]
pub(super) struct Arguments {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Args)]
pub(super) struct Global {
    /// The policy (TOML, or JSON when the name ends in .json); the application's own by default
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) policy: Option<PathBuf>,
    /// The folder of the application's data
    #[arg(long, global = true, value_name = "DIR", default_value = "data")]
    pub(super) data: PathBuf,
    /// Print JSON where a person would get a table
    #[arg(long, global = true)]
    pub(super) json: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List the tools: effect, execution, what the policy decides, hash, source
    List,
    /// Show one definition
    Show {
        /// The name of the tool
        name: String,
        /// The form to show it in
        #[arg(long = "as", value_enum, default_value_t = Form::Spec)]
        format: Form,
        /// Close the schema for a provider's strict mode
        #[arg(long)]
        strict: bool,
    },
    /// Print the request parts of all visible tools for a provider
    Export {
        /// The provider's format
        #[arg(long = "as", value_enum)]
        format: Format,
        /// Close the schemas for the provider's strict mode
        #[arg(long)]
        strict: bool,
    },
    /// Report every problem of catalog and policy; fails when there is one
    Check,
    /// Run one call through the gate
    Call(Call),
    /// Talk to a model whose calls go through the gate, or take a recorded response through it
    Chat(Chat),
    /// Decode recorded responses, execute their calls, print the records as JSON lines
    Replay {
        /// The provider's format
        #[arg(long, value_enum)]
        format: Format,
        /// Recorded HTTP responses or bare bodies
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// What the user is taken to have written: ids in it count as seen
        #[arg(long, value_name = "TEXT")]
        user_text: Option<String>,
    },
    /// Translate between provider bytes and this project's shapes, stdin to stdout
    Wire {
        #[command(subcommand)]
        direction: Direction,
    },
    /// Hydrate calls against tool definitions, JSON lines in and out; nothing is executed
    Hydrate {
        /// Tool definitions, one JSON object a line
        #[arg(long, value_name = "FILE")]
        tools: PathBuf,
        /// Provider calls, one JSON object a line
        #[arg(long, value_name = "FILE")]
        calls: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(super) struct Call {
    /// The name of the tool
    pub(super) name: String,
    /// The arguments as JSON, `-` for standard input, `@FILE` for a file; none means {}
    pub(super) arguments: Option<String>,
    /// Whose view of the result to print
    #[arg(long, value_enum, default_value_t = View::Model)]
    pub(super) view: View,
    /// Print the events of the call as JSON lines on stderr
    #[arg(long)]
    pub(super) events: bool,
    /// Print the text of the tool's own error on stderr; it can hold values
    #[arg(long)]
    pub(super) detail: bool,
    /// What the user is taken to have written: ids in it count as seen
    #[arg(long, value_name = "TEXT")]
    pub(super) user_text: Option<String>,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("source").required(true)))]
pub(super) struct Chat {
    /// A recorded HTTP response (headers and chunking included), or a bare body
    #[arg(long, value_name = "FILE", group = "source")]
    pub(super) transcript: Option<PathBuf>,
    /// The base URL of an endpoint; without a path it gets the provider's usual one
    #[arg(long, value_name = "URL", group = "source", requires = "model")]
    pub(super) model_url: Option<String>,
    /// The model to ask
    #[arg(long, value_name = "NAME")]
    pub(super) model: Option<String>,
    /// The provider's format
    #[arg(long, value_enum, default_value_t = Format::OpenAiChat)]
    pub(super) format: Format,
    /// The environment variable that holds the endpoint's key
    #[arg(long, value_name = "VARIABLE")]
    pub(super) key_env: Option<String>,
    /// Send closed copies of the schemas where the format has a strict mode
    #[arg(long)]
    pub(super) strict: bool,
    /// Ask for the answer in one piece
    #[arg(long)]
    pub(super) no_stream: bool,
    /// The most tokens of one answer
    #[arg(long, value_name = "TOKENS", default_value_t = 4096)]
    pub(super) max_output_tokens: u32,
    /// What stands before the conversation
    #[arg(long, value_name = "TEXT")]
    pub(super) instructions: Option<String>,
    /// How many reading calls of one turn may run at the same time
    #[arg(long, default_value_t = 4)]
    pub(super) parallel: usize,
    /// What the user writes; several are turns of one conversation
    #[arg(required = true)]
    pub(super) prompt: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Direction {
    /// Decode a response: a stream or a whole body
    Decode {
        /// The provider's format
        #[arg(value_enum)]
        format: Format,
        /// Feed the decoder this many bytes at a time; 0 feeds it whole
        #[arg(long, default_value_t = 0)]
        chunk: usize,
    },
    /// Encode request parts, result messages, or undo a strict mode's nulls
    Encode {
        /// The provider's format
        #[arg(value_enum)]
        format: Format,
        /// What standard input holds
        #[arg(long, value_enum)]
        kind: Kind,
    },
    /// Encode a list of UI events as the stream that a chat UI reads
    Ui {
        /// The UI's protocol
        #[arg(value_enum)]
        protocol: Protocol,
    },
}

impl ValueEnum for Protocol {
    fn value_variants<'a>() -> &'a [Self] {
        Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.as_str()))
    }
}

impl ValueEnum for Format {
    fn value_variants<'a>() -> &'a [Self] {
        Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(match self {
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Ollama => "ollama",
            Self::Gemini => "gemini",
        }))
    }
}

/// How a definition is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// The whole of it, as this project spells it
    Spec,
    /// What a provider is sent
    Provider(Format),
}

impl ValueEnum for Form {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Self::Spec,
            Self::Provider(Format::OpenAiChat),
            Self::Provider(Format::OpenAiResponses),
            Self::Provider(Format::Anthropic),
            Self::Provider(Format::Ollama),
            Self::Provider(Format::Gemini),
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Self::Spec => Some(PossibleValue::new("spec")),
            Self::Provider(format) => format.to_possible_value(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Kind {
    Request,
    Result,
    StrictNull,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum View {
    /// The text that goes back to the model
    Model,
    /// What a UI may show
    Ui,
    /// The record
    Audit,
}
