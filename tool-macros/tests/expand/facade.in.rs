/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"], crate = crate::facade::rt)]
pub fn add(
    clock: &dyn Clock,
    /// Left.
    left: i64,
) -> Result<i64, Error> {
    Ok(left)
}
