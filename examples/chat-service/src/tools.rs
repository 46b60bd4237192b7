//! The tools, and the traits that they borrow.

use std::io;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tool_runtime::{ToolContext, ToolError, capability, tool};

/// Reads the stock.
#[capability(effect = read_only)]
pub trait Stock {
    /// Returns the parts whose name contains this text.
    fn find(&self, text: &str) -> Vec<Part>;
}

/// Orders from suppliers.
#[capability(effect = external_side_effect)]
pub trait Orders {
    /// Orders a part and returns the number of the order. Returns `None` if there is no such part. A repeated
    /// key returns the number of the first order.
    ///
    /// # Errors
    /// The order could not be written.
    fn place(&self, key: &str, order: &Order) -> io::Result<Option<u64>>;
}

/// An order of a part.
#[derive(Debug)]
pub struct Order {
    /// The id of the part.
    pub part: String,
    /// The number of parts.
    pub count: u32,
    /// The address of the delivery, if it is not the warehouse.
    pub ship_to: Option<String>,
}

/// A part in stock.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Part {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// How many there are.
    pub in_stock: u32,
    /// The supplier's price for one part, in cents. No tool shows it.
    pub purchase_price: u32,
}

/// Finds parts whose name contains the given text.
#[tool(name = "stock__find", effect = read_only, redact = ["id", "name", "in_stock"])]
pub fn find(
    stock: &dyn Stock,
    /// A part of the name, for example `screw`.
    #[schemars(length(min = 1, max = 100))]
    text: String,
) -> Result<Vec<Part>, ToolError> {
    Ok(stock.find(&text))
}

/// Order a part from its supplier. Returns the number of the order.
#[tool(
    name = "stock__order",
    effect = external_side_effect,
    redact = ["$"],
    summary = "Orders {count} of the part {part_id}"
)]
pub fn order(
    orders: &dyn Orders,
    call: &ToolContext,
    /// Id of the part, as `stock__find` returns it.
    #[arg(evidence = "stock__find")]
    part_id: String,
    /// How many.
    #[schemars(range(min = 1, max = 500))]
    count: u32,
    /// The address of the delivery, if it is not the warehouse.
    #[arg(sensitive)]
    #[schemars(length(min = 1, max = 200))]
    ship_to: Option<String>,
) -> Result<u64, ToolError> {
    let order = Order { part: part_id, count, ship_to };
    let placed = orders.place(&call.idempotency_key(), &order).map_err(ToolError::internal)?;
    placed.ok_or_else(|| ToolError::code("not_found").with_safe("There is no part with this id."))
}

/// The request to the browser.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LocateRequest {
    /// The text that the person reads.
    pub question: String,
}

/// The answer of the browser.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    /// The city.
    #[schemars(length(min = 1, max = 100))]
    pub city: String,
}

/// Ask the person's browser in which city they are.
#[tool(
    name = "browser__locate",
    effect = read_only,
    execution = client,
    client_result = Place,
    prepare = ["question"],
    redact = ["city"]
)]
pub fn locate(
    /// Why the city is needed, in a sentence that the person reads.
    #[schemars(length(min = 1, max = 200))]
    reason: String,
) -> Result<LocateRequest, ToolError> {
    Ok(LocateRequest { question: reason })
}
