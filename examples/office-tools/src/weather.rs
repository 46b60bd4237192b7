//! Weather from any source that the application binds. The result names the source.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tool_runtime::media::Media;
use tool_runtime::{ToolError, WithMedia, capability, tool};

use crate::time::Clock;
use crate::{Failure, pdf};

/// Returns the weather of places.
#[capability(effect = read_only)]
#[async_trait]
pub trait Climate {
    /// Returns `days` days starting with `first`; temperatures are in degrees Celsius.
    async fn forecast(&self, city: &str, first: jiff::civil::Date, days: u8) -> Result<Forecast, Failure>;
}

/// The unit of temperatures.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Degrees Celsius.
    Celsius,
    /// Degrees Fahrenheit.
    Fahrenheit,
}

/// The weather of several days.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Forecast {
    /// The place that was found.
    pub city: String,
    /// The kind of source, for example a climate table.
    pub source: String,
    /// One entry per day.
    pub days: Vec<Day>,
}

/// Weather of one day.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Day {
    /// The date.
    pub date: jiff::civil::Date,
    /// The highest temperature.
    pub high: f64,
    /// The lowest temperature.
    pub low: f64,
    /// The probability of rain, from 0 to 1.
    pub rain: f64,
}

/// Weather forecast for a city.
#[tool(
    name = "weather__get_forecast",
    effect = read_only,
    redact = ["city", "source", "days.date", "days.high", "days.low", "days.rain"],
    timeout = "10s"
)]
pub async fn get_forecast(
    climate: &dyn Climate,
    clock: &dyn Clock,
    /// The city.
    #[schemars(length(min = 1))]
    city: String,
    /// The unit of temperatures.
    unit: Unit,
    /// The number of days; 1 by default.
    #[schemars(range(min = 1, max = 7))]
    days: Option<u8>,
) -> Result<Forecast, ToolError> {
    let today = clock.now().to_zoned(jiff::tz::TimeZone::UTC).date();
    let mut forecast = climate.forecast(&city, today, days.unwrap_or(1)).await.map_err(|failure| failure.of("city"))?;
    if let Unit::Fahrenheit = unit {
        for day in &mut forecast.days {
            day.high = to_fahrenheit(day.high);
            day.low = to_fahrenheit(day.low);
        }
    }
    Ok(forecast)
}

fn to_fahrenheit(celsius: f64) -> f64 {
    ((celsius * 1.8 + 32.0) * 10.0).round() / 10.0
}

/// What a printed forecast holds.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Printed {
    /// The place that was found.
    pub city: String,
    /// How many days the page has.
    pub days: usize,
}

/// Print the weather forecast for a city as a PDF of one page.
#[tool(name = "weather__print_forecast", effect = read_only, redact = ["city", "days", "$media"], timeout = "10s")]
pub async fn print_forecast(
    climate: &dyn Climate,
    clock: &dyn Clock,
    /// The city.
    #[schemars(length(min = 1))]
    city: String,
    /// The unit of temperatures.
    unit: Unit,
    /// The number of days; 1 by default.
    #[schemars(range(min = 1, max = 7))]
    days: Option<u8>,
) -> Result<WithMedia<Printed>, ToolError> {
    let forecast = get_forecast(climate, clock, city, unit, days).await?;
    let heading = format!("{}: highest and lowest temperature, rain ({})", forecast.city, forecast.source);
    let line = |day: &Day| format!("{}: {} / {}, {:.0} %", day.date, day.high, day.low, day.rain * 100.0);
    let lines: Vec<_> = [heading].into_iter().chain(forecast.days.iter().map(line)).collect();
    let page = Media::file("forecast.pdf", &pdf::page(&lines))?;
    Ok(WithMedia::new(Printed { city: forecast.city, days: forecast.days.len() }).media(page))
}
