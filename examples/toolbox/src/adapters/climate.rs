//! A small climate table. Temperatures are computed from monthly means and are not a forecast, which the results state.

use async_trait::async_trait;
use jiff::ToSpan;
use jiff::civil::Date;
use office_tools::Failure;
use office_tools::weather::{Climate, Day, Forecast};

use crate::adapters::unavailable;

/// City, mean temperature of January and July in degrees Celsius, rainy days per year. Between the two months the
/// temperature follows a cosine.
const TABLE: &str = include_str!("climate.csv");

/// The difference between a day's extremes and its mean, in degrees.
const SPREAD: f64 = 4.0;

/// The bundled table.
pub(crate) struct ClimateTable;

#[async_trait]
impl Climate for ClimateTable {
    async fn forecast(&self, city: &str, first: Date, days: u8) -> Result<Forecast, Failure> {
        let wanted = city.trim().to_lowercase();
        let row = TABLE
            .lines()
            .skip(1)
            .map(|line| line.split(',').collect::<Vec<_>>())
            .find(|row| row.first().is_some_and(|name| name.to_lowercase() == wanted))
            .ok_or(Failure::NotFound)?;
        let [name, january, july, rain] = row[..] else { return Err(Failure::Unreadable) };
        let number = |text: &str| text.parse::<f64>().map_err(unavailable);
        let (january, july, rain) = (number(january)?, number(july)?, number(rain)?);
        let mut list = Vec::new();
        for ahead in 0..days {
            let date = first.checked_add(i64::from(ahead).days()).map_err(unavailable)?;
            // The cosine has its extreme on the fifteenth of January.
            let turn = f64::from(date.day_of_year() - 15) / 365.0 * std::f64::consts::TAU;
            let mean = f64::midpoint(january, july) + (january - july) / 2.0 * turn.cos();
            list.push(Day { date, high: round(mean + SPREAD), low: round(mean - SPREAD), rain: round(rain / 365.0) });
        }
        Ok(Forecast {
            city: name.to_owned(),
            source: "climate table, monthly means; not a forecast".to_owned(),
            days: list,
        })
    }
}

fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn seasons_are_the_right_way_round() {
        for (city, winter) in [("oslo", 1), ("Sydney", 7)] {
            let cold = ClimateTable.forecast(city, jiff::civil::date(2026, winter, 15), 1).await.unwrap();
            let warm = ClimateTable.forecast(city, jiff::civil::date(2026, 8 - winter, 15), 1).await.unwrap();
            assert!(cold.days[0].high < warm.days[0].high, "{city}");
        }
        assert!(matches!(ClimateTable.forecast("Atlantis", Date::MIN, 1).await, Err(Failure::NotFound)));
    }

    #[test]
    fn every_row_is_complete() {
        for row in TABLE.lines().skip(1) {
            let fields: Vec<_> = row.split(',').collect();
            assert_eq!(fields.len(), 4, "{row}");
            assert!(fields[1..].iter().all(|field| field.parse::<f64>().is_ok()), "{row}");
        }
    }
}
