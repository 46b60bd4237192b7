//! The calendar of the user, through a connection to their account.

use async_trait::async_trait;
use jiff::civil::Date;
use schemars::JsonSchema;
use serde::Serialize;
use tool_runtime::{Connection, ToolError, capability, tool};

use crate::Failure;

/// A person's calendar.
#[capability(effect = read_only, kind = "calendar")]
#[async_trait]
pub trait Calendar {
    /// Returns the events from one day to another, both included.
    async fn events(&self, from: Date, to: Date) -> Result<Vec<Event>, Failure>;
}

/// A calendar event.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Event {
    /// The day.
    pub date: Date,
    /// The title.
    pub title: String,
    /// The attendees; not shown to models.
    pub attendees: Vec<String>,
}

/// List the user's calendar events between two days.
#[tool(name = "calendar__list_events", effect = read_only, redact = ["date", "title"], timeout = "10s")]
pub async fn list_events(
    calendar: &Connection<dyn Calendar>,
    /// The first day.
    from: Date,
    /// The last day.
    to: Date,
) -> Result<Vec<Event>, ToolError> {
    calendar.events(from, to).await.map_err(|failure| failure.of("calendar"))
}
