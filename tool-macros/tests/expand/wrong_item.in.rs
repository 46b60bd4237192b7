/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
pub enum Add {
    #[arg(sensitive)]
    Left,
}
