//! The grammar of `call`: one call, and what is printed of it.

use clap::Args;

use super::values::View;

#[derive(Debug, Args)]
pub(crate) struct Call {
    /// The name of the tool
    pub(crate) name: String,
    /// The arguments as JSON, `-` for standard input, `@FILE` for a file; {} by default
    pub(crate) arguments: Option<String>,
    /// Whose view of the result to print
    #[arg(long, value_enum)]
    pub(crate) view: Option<View>,
    /// Print the events of the call as JSON lines on stderr
    #[arg(long)]
    pub(crate) events: bool,
    /// Print the text of the tool's own error on stderr; it can hold values
    #[arg(long)]
    pub(crate) detail: bool,
    /// Text that the user is taken to have written: ids in it count as seen
    #[arg(long, value_name = "TEXT")]
    pub(crate) user_text: Option<String>,
    /// The client's answer, for a tool that a client executes: JSON, `-` or `@FILE`
    #[arg(long, value_name = "JSON")]
    pub(crate) answer: Option<String>,
}
