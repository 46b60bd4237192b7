/// Passes on what it is given.
#[tool(name = "core__raw", effect = read_only, redact = ["$"], allow_no_schema, no_schema_mode = reject_effects)]
fn raw(
    /// Whatever there is.
    #[schemars(title = "Anything")]
    anything: Raw,
) -> Result<String, ToolError> {
    Ok(anything.0)
}
