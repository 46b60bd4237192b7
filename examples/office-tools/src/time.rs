//! The current time.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::Serialize;
use tool_runtime::{ToolError, capability, tool};

/// Returns the time.
#[capability(effect = read_only)]
pub trait Clock {
    /// Returns the current time.
    fn now(&self) -> Timestamp;
}

/// The time in a zone.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CurrentTime {
    /// Date and time with the offset, RFC 3339.
    pub iso: String,
    /// The zone.
    pub zone: Zone,
}

/// A time zone.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Zone {
    /// The IANA name.
    pub name: String,
    /// Seconds east of UTC.
    pub offset_seconds: i32,
}

/// Current date and time.
#[tool(
    name = "core__get_current_time",
    effect = read_only,
    redact = ["iso", "zone.name"],
    title = "Current time",
    idempotent
)]
pub fn get_current_time(
    clock: &dyn Clock,
    /// IANA time zone name, for example Europe/Oslo. UTC by default.
    #[arg(default = "UTC".to_string())]
    timezone: String,
) -> Result<CurrentTime, ToolError> {
    let zone = TimeZone::get(&timezone).map_err(|error| {
        ToolError::code("unknown_time_zone")
            .with_safe("There is no such time zone. Use an IANA name such as Europe/Oslo.")
            .with_source(error)
    })?;
    let there = clock.now().to_zoned(zone);
    Ok(CurrentTime {
        iso: there.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        zone: Zone { name: timezone, offset_seconds: there.offset().seconds() },
    })
}
