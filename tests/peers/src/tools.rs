//! The three tools, which every library wraps in its own way, and their arguments.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tools_rs::ToolSchema;

/// How urgent.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Urgency {
    /// Not at all.
    Low,
    /// Very.
    High,
}

// The derive macro of `ToolSchema` does not support enums.
impl ToolSchema for Urgency {
    fn schema() -> Value {
        json!({ "type": "string", "enum": ["low", "high"] })
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, ToolSchema)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// The street.
    pub street: String,
    /// The town.
    pub town: String,
    /// The floor.
    pub floor: i32,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, ToolSchema)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The id.
    pub id: u32,
    /// The name.
    pub name: String,
    /// The mail address.
    pub email: String,
    /// Points.
    pub score: f64,
    /// Words.
    pub tags: Vec<String>,
    /// Whether it counts.
    pub active: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Tiny {
    /// One.
    pub a: i64,
    /// Another.
    pub b: i64,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Medium {
    /// The title.
    pub title: String,
    /// The text.
    pub body: String,
    /// Whose it is.
    pub owner: String,
    /// How urgent.
    pub urgency: Urgency,
    /// Where.
    pub place: Place,
    /// Words.
    pub tags: Vec<String>,
    /// Hours.
    pub estimate: f64,
    /// When.
    pub due: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Large {
    /// The rows.
    pub rows: Vec<Row>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Ticket {
    pub title: String,
    pub body: String,
    pub owner: String,
    pub urgency: Urgency,
    pub street: String,
    pub town: String,
    pub floor: i32,
    pub tags: Vec<String>,
    pub estimate: f64,
    pub done: bool,
    pub due: Option<String>,
    pub count: usize,
}

pub fn add(Tiny { a, b }: Tiny) -> i64 {
    a.wrapping_add(b)
}

pub fn file(Medium { title, body, owner, urgency, place, tags, estimate, due }: Medium) -> Ticket {
    let (count, Place { street, town, floor }) = (tags.len(), place);
    Ticket { title, body, owner, urgency, street, town, floor, tags, estimate, done: false, due, count }
}

pub fn sort(Large { rows }: Large) -> Vec<Row> {
    rows
}

/// The arguments for each tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Tiny,
    Medium,
    Large,
}

impl Shape {
    pub const ALL: [Self; 3] = [Self::Tiny, Self::Medium, Self::Large];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Tiny => "tiny",
            Self::Medium => "medium",
            Self::Large => "large",
        }
    }

    pub fn arguments(self) -> String {
        match self {
            Self::Tiny => r#"{"a":12345,"b":678901}"#.to_owned(),
            Self::Medium => {
                let tags: Vec<_> = (0..16).map(|at| format!("label-{at:02}-text")).collect();
                json!({
                    "title": "The printer on the second floor",
                    "body": "It prints pages that nobody sent, at night, in green.",
                    "owner": "ada@example.org",
                    "urgency": "high",
                    "place": { "street": "Long Lane 12", "town": "Springfield", "floor": 2 },
                    "tags": tags,
                    "estimate": 2.5,
                    "due": "2026-12-01",
                })
                .to_string()
            }
            Self::Large => {
                let row = |at: u32| {
                    json!({
                        "id": at,
                        "name": format!("Person number {at}"),
                        "email": format!("person{at}@example.org"),
                        "score": f64::from(at * 3) + 0.25,
                        "tags": [format!("alpha-{at}"), format!("beta-{at}"), "gamma", "delta"],
                        "active": at.is_multiple_of(2),
                    })
                };
                json!({ "rows": (0..200).map(row).collect::<Vec<_>>() }).to_string()
            }
        }
    }
}
