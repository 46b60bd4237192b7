//! Names that an expansion could trip over: raw identifiers, names that the expansion might use, names of types.

use tool_runtime::{ToolContext, ToolError, tool};

/// Same name as what the runtime passes on.
#[derive(serde::Deserialize, schemars::JsonSchema)]
pub struct Arguments {
    text: String,
}

type Result<T> = std::result::Result<T, ToolError>;
type Option = std::option::Option<String>;

/// Sends.
#[tool(name = "core__send", effect = read_only, redact = ["$"], require_any = [r#type, result], validate = check)]
pub fn r#match(
    ctx: &ToolContext,
    /// Type.
    r#type: Option,
    /// Arguments.
    args: Arguments,
    /// Itself.
    self_: u8,
    /// Call.
    call: u8,
    /// Capabilities.
    capabilities: u8,
    /// Generator.
    generator: u8,
    /// Visitor.
    visitor: u8,
    /// Result.
    #[arg(default = String::new())]
    result: String,
    __rt: &ToolContext,
    /// Mutable.
    mut lent: Vec<bool>,
) -> Result<String> {
    let mine = __rt.run_id() == ctx.run_id();
    lent.push(mine);
    let sum = self_ + call + capabilities + generator + visitor;
    Ok(format!("{}{type}{}{sum}{result}{lent:?}", __rt.run_id(), args.text, r#type = r#type.unwrap_or_default()))
}

fn check(
    _: &Option,
    _: &Arguments,
    _: &u8,
    _: &u8,
    _: &u8,
    _: &u8,
    _: &u8,
    _: &str,
    _: &[bool],
) -> std::result::Result<(), tool_runtime::call::Violation> {
    Ok(())
}

fn main() {
    assert!(tool_runtime::definition!(r#match).is_ok());
}
