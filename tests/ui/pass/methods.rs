//! Struct tools whose methods borrow as functions do: nothing, the call, capabilities, connections.

use tool_runtime::{Call, Connection, Reconciled, ToolContext, ToolError, capability, tool};

/// Reads the time.
#[capability(effect = read_only)]
pub trait Clock {
    fn now(&self) -> i64;
}

/// A user's calendar.
#[capability(effect = state_change, kind = "calendar")]
pub trait Calendar {
    fn add(&self, at: i64) -> Option<i64>;
}

#[derive(Debug)]
pub struct Full;

impl std::fmt::Display for Full {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the calendar is full")
    }
}

impl std::error::Error for Full {}

/// Counts.
#[tool(name = "core__count", effect = read_only, redact = ["$"])]
pub struct Count {
    /// The words.
    words: String,
}

#[tool]
impl Count {
    fn run(self) -> Result<usize, ToolError> {
        Ok(self.words.split_whitespace().count())
    }
}

/// Names the call.
#[tool(name = "core__name", effect = read_only, redact = ["$"])]
pub struct Name {}

#[tool]
impl Name {
    const SEPARATOR: char = '/';

    pub async fn run(self, call: &Call<Self>) -> Result<String, ToolError> {
        Ok(format!("{}{}{}", call.run_id(), Self::SEPARATOR, call.call_id()))
    }
}

/// Adds an entry.
#[tool(name = "calendar__add", effect = state_change, redact = ["$"], timeout = "5s")]
pub struct Add {
    /// From now, in seconds.
    #[arg(default = 0)]
    after: i64,
}

type Added = Result<i64, Full>;

#[tool]
impl Add {
    async fn run(self, clock: &dyn Clock, context: &ToolContext, calendar: &Connection<dyn Calendar>) -> Added {
        let _ = context.idempotency_key();
        calendar.add(clock.now() + self.after).ok_or(Full)
    }

    async fn reconcile(self, calendar: &Connection<dyn Calendar>, _: &Call<Self>) -> Result<Reconciled<i64>, Full> {
        Ok(calendar.add(self.after).map_or(Reconciled::Unknown, Reconciled::TookEffect))
    }
}

fn main() {
    assert_eq!(Count { words: "one two".to_owned() }.run().unwrap(), 2);
    assert_eq!(Add::definition().unwrap().name.as_str(), "calendar__add");
    assert!(Name::definition().is_ok());
}
