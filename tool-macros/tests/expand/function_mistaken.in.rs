/// Adds.
#[tool(name = "add", effect = readonly)]
#[serde(rename_all = "camelCase")]
pub fn add(
    /// Left.
    #[arg(default = 1)]
    left: i64,
    right: i64,
) -> Result<i64, ToolError> {
    Ok(left + right)
}
