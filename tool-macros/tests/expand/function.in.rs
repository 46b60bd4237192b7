/// Current date and time.
#[tool(name = "core__get_current_time", effect = read_only, redact = ["iso", "zone.name"])]
pub async fn get_current_time(
    clock: &dyn Clock,
    /// IANA time zone, for example `Europe/Oslo`.
    #[arg(default = "UTC".to_string())]
    timezone: String,
) -> Result<CurrentTime, TimeError> {
    clock.now_in(&timezone).await
}
