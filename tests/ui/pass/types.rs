//! Types that only the compiler understands: aliases, nested options, connections, documentation from elsewhere.

use tool_runtime::{Call, Cap, Connection, ToolComponent, ToolContext, ToolError, capability, definition, tool};

/// Reads a calendar.
#[capability(effect = read_only, kind = "calendar")]
#[async_trait::async_trait]
pub trait Calendar: Send {
    async fn next(&self) -> i64;
}

/// Reads a calendar and its colours: a capability may repeat what it builds on, however it is spelled.
#[capability(effect = read_only, kind = "calendar")]
#[async_trait::async_trait]
pub trait Colours: Calendar + std::fmt::Debug
where
    Self: Calendar + 'static,
{
    async fn colour(&self) -> String;
}

type Answer = std::io::Result<i64>;
type Context = ToolContext;

/// Reads the next entry.
#[tool(name = "calendar__next", effect = read_only, redact = ["$"], timeout = "500ms")]
pub async fn next(calendar: &Connection<dyn Calendar>, _context: &Context) -> Answer {
    Ok(calendar.next().await)
}

/// Changes an entry.
#[tool(name = "calendar__change", effect = external_side_effect, redact = ["$"], require_any = [title, color])]
#[serde(rename_all = "camelCase")]
#[derive(Debug, Clone)]
pub struct Change {
    /// New title; `null` removes it.
    title: Option<Option<String>>,
    /// New colours, as `#rrggbb`.
    #[schemars(length(max = 3), inner(regex(pattern = "^#[0-9a-f]{6}$")))]
    color: Option<Vec<String>>,
    /// How many.
    #[serde(default)]
    #[schemars(range(max = 9))]
    how_many: u8,
}

impl ToolComponent for Change {
    type Capabilities = (Cap<Connection<dyn Calendar>>, Cap<ToolContext>);
    type Output = Option<i64>;

    async fn run(self, (calendar, context): Self::Capabilities, call: &Call<Self>) -> Result<Self::Output, ToolError> {
        let _ = (self.color, self.how_many, context.run_id(), call.run_id());
        match self.title {
            Some(None) => Ok(None),
            _ => Ok(Some(calendar.next().await)),
        }
    }
}

#[doc = concat!("Documented ", "elsewhere.")]
///
/// And here.
#[tool(name = "core__documented", effect = read_only, redact = ["$"])]
pub fn documented() -> Result<u8, ToolError> {
    Ok(0)
}

fn main() {
    assert!(definition!(next).is_ok() && Change::definition().is_ok());
    let change: Change = serde_json::from_str(r#"{"title": null, "howMany": 3}"#).unwrap();
    assert_eq!((change.title, change.color, change.how_many), (Some(None), None, 3));
    let change: Change = serde_json::from_str("{}").unwrap();
    assert_eq!((change.title, change.how_many), (None, 0));
    let description = definition!(documented).unwrap().description;
    assert_eq!(&*description, "Documented elsewhere.\n\nAnd here.");
}
