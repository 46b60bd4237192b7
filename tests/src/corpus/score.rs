//! Compares results with the expectations of the rows.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde_json::Value;

/// Counts for one profile.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Rates {
    /// Rows.
    pub rows: usize,
    /// The outcome is the expected or an accepted one.
    pub outcome: usize,
    /// Rows in which the outcome, the planted error, the arguments and the call id are right.
    pub located: usize,
    /// Located rows in which the errors are exactly the expected ones.
    pub complete: usize,
    /// Descriptions of the first few rows that are not `located`.
    pub misses: Vec<String>,
}

impl Rates {
    /// The share of rows that are located, in percent.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a share of some thousand rows")]
    pub fn percent_located(&self) -> f64 {
        self.located as f64 * 100.0 / self.rows.max(1) as f64
    }
}

impl fmt::Display for Rates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.rows.max(1);
        let percent = |count: usize| format!("{}.{:02}", count * 100 / rows, count * 10_000 / rows % 100);
        write!(f, "{} rows, outcome {}, located {}", self.rows, percent(self.outcome), percent(self.located))?;
        write!(f, ", complete {} %", percent(self.complete))
    }
}

#[derive(Deserialize, Default)]
struct Expectation {
    outcome: String,
    #[serde(default)]
    errors: Vec<Located>,
    focus: Option<Located>,
    args: Option<Value>,
    call_id: Option<String>,
    #[serde(default)]
    repaired: bool,
}

#[derive(Deserialize)]
struct Located {
    pointer: String,
    keyword: String,
    property: Option<String>,
}

#[derive(Deserialize)]
struct Expected {
    profile: String,
    mutation: String,
    expect: Expectation,
    #[serde(default)]
    accept: Vec<Expectation>,
}

#[derive(Deserialize)]
struct Got {
    id: String,
    outcome: String,
    #[serde(default)]
    errors: Vec<Located>,
    args: Option<Value>,
    #[serde(default)]
    call_id: String,
    #[serde(default)]
    repaired: bool,
}

/// Scores `calls`, by profile: rows and results line by line in the same order.
///
/// # Errors
///
/// A line cannot be read, or the two files do not belong together.
pub fn calls(rows: &str, results: &str) -> Result<BTreeMap<String, Rates>, Box<dyn std::error::Error>> {
    let mut profiles = BTreeMap::<String, Rates>::new();
    let mut results = results.lines();
    for line in rows.lines() {
        let (row, expected): (Value, Expected) = (serde_json::from_str(line)?, serde_json::from_str(line)?);
        let (id, call_id) = (text(&row["id"]), text(&row["payload"]["id"]));
        let got: Got = serde_json::from_str(results.next().ok_or("results are missing")?)?;
        if got.id != id {
            return Err(format!("{} where {id} was expected", got.id).into());
        }
        let rates = profiles.entry(expected.profile.clone()).or_default();
        let candidates = || std::iter::once(&expected.expect).chain(&expected.accept);
        rates.rows += 1;
        rates.outcome += usize::from(candidates().any(|one| one.outcome == got.outcome));
        let id_is_right = match expected.expect.call_id.as_deref() {
            Some("kept") => got.call_id == call_id,
            Some(_) => !got.call_id.is_empty() && got.call_id != call_id,
            None => true,
        };
        if id_is_right && candidates().any(|one| is_located(one, &got, &row)) {
            rates.located += 1;
            let complete = |one: &Expectation| one.errors.len() == got.errors.len() && holds_all(&got, &one.errors);
            rates.complete += usize::from(candidates().any(|one| one.outcome == got.outcome && complete(one)));
        } else if rates.misses.len() < 20 {
            rates.misses.push(format!("{id} {}: {}", expected.mutation, got.outcome));
        }
    }
    Ok(profiles)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The arguments as the provider sent them, for rows that expect them unchanged.
fn sent(row: &Value) -> Option<Value> {
    // Text that is too large for the payload is a list of `[text, times]`.
    if let Some(pieces) = row["arguments_pieces"].as_array() {
        let times = |piece: &Value| usize::try_from(piece[1].as_u64().unwrap_or_default()).unwrap_or_default();
        let text: String = pieces.iter().map(|piece| text(&piece[0]).repeat(times(piece))).collect();
        return serde_json::from_str(&text).ok();
    }
    let payload = &row["payload"];
    let arguments = payload.get("input").or_else(|| payload["function"].get("arguments"))?;
    match arguments {
        Value::String(text) => serde_json::from_str(text).ok(),
        object => Some(object.clone()),
    }
}

fn is_located(expected: &Expectation, got: &Got, row: &Value) -> bool {
    if expected.outcome != got.outcome || (expected.repaired && !got.repaired) {
        return false;
    }
    if got.outcome == "ok" {
        let arguments = expected.args.clone().or_else(|| sent(row));
        return got.args.as_ref().zip(arguments.as_ref()).is_some_and(|(got, expected)| is_same(got, expected));
    }
    match &expected.focus {
        Some(focus) => holds_all(got, std::slice::from_ref(focus)),
        None => holds_all(got, &expected.errors),
    }
}

/// Whether all expected errors were found. For a missing or unknown property, the place may be the object or the
/// property.
fn holds_all(got: &Got, expected: &[Located]) -> bool {
    expected.iter().all(|one| {
        let property = one.property.as_deref().map(|name| name.replace('~', "~0").replace('/', "~1"));
        let below = property.map(|name| format!("{}/{name}", one.pointer));
        let there = |pointer: &str| pointer == one.pointer || below.as_deref() == Some(pointer);
        got.errors.iter().any(|error| error.keyword == one.keyword && there(&error.pointer))
    })
}

/// Whether two JSON values are equal: integers exactly, floats up to rounding.
fn is_same(one: &Value, two: &Value) -> bool {
    match (one, two) {
        (Value::Number(one), Value::Number(two)) if one.is_f64() || two.is_f64() => {
            let (one, two) = (one.as_f64().unwrap_or_default(), two.as_f64().unwrap_or_default());
            (one - two).abs() <= one.abs().max(two.abs()) * f64::EPSILON
        }
        (Value::Array(one), Value::Array(two)) => {
            one.len() == two.len() && one.iter().zip(two).all(|(one, two)| is_same(one, two))
        }
        (Value::Object(one), Value::Object(two)) => {
            one.len() == two.len() && one.iter().all(|(name, one)| two.get(name).is_some_and(|two| is_same(one, two)))
        }
        _ => one == two,
    }
}

/// Scores `schema-suite`, by draft of JSON Schema. A row counts as `located` if every instance is judged right, and as
/// `complete` if the row's flag `p0` is right, too.
///
/// 2020-12 lets an implementation choose whether `format` is an annotation or an assertion. The suite treats it as an
/// annotation and the gate asserts it, so rows of that draft with this keyword are the profile `formats`, where the
/// texts of a row may be judged either way.
///
/// # Errors
///
/// As [`calls`].
pub fn schema_suite(rows: &str, results: &str) -> Result<BTreeMap<String, Rates>, Box<dyn std::error::Error>> {
    #[derive(Deserialize)]
    struct Case {
        id: String,
        draft: String,
        p0: bool,
        description: String,
        schema: Value,
        tests: Vec<Test>,
    }
    #[derive(Deserialize)]
    struct Test {
        data: Value,
        valid: bool,
    }
    #[derive(Deserialize)]
    struct Judged {
        id: String,
        p0: bool,
        valid: Vec<bool>,
    }
    let mut drafts = BTreeMap::<String, Rates>::new();
    let mut results = results.lines();
    for line in rows.lines() {
        let case: Case = serde_json::from_str(line)?;
        let got: Judged = serde_json::from_str(results.next().ok_or("results are missing")?)?;
        if got.id != case.id {
            return Err(format!("{} where {} was expected", got.id, case.id).into());
        }
        let is_format = case.draft == "draft2020-12" && case.schema.get("format").is_some();
        let rates = drafts.entry(if is_format { "formats".to_owned() } else { case.draft }).or_default();
        let is_right = |(test, got): (&Test, &bool)| test.valid == *got || (is_format && test.data.is_string());
        let right = case.tests.len() == got.valid.len() && case.tests.iter().zip(&got.valid).all(is_right);
        rates.rows += 1;
        rates.outcome += usize::from(right);
        rates.located += usize::from(right);
        rates.complete += usize::from(right && got.p0 == case.p0);
        if !right || got.p0 != case.p0 {
            rates.misses.push(format!("{} {} p0 {}", case.id, case.description, got.p0));
        }
    }
    Ok(drafts)
}

/// Scores `definitions`: a row that expects a review accepts a rejection, too.
///
/// # Errors
///
/// As [`calls`].
pub fn definitions(rows: &str, results: &str) -> Result<BTreeMap<String, Rates>, Box<dyn std::error::Error>> {
    let mut rates = Rates::default();
    let mut results = results.lines();
    for line in rows.lines() {
        let row: Value = serde_json::from_str(line)?;
        let got: Value = serde_json::from_str(results.next().ok_or("results are missing")?)?;
        if got["id"] != row["id"] {
            return Err(format!("{} where {} was expected", got["id"], row["id"]).into());
        }
        let (expected, decision) = (text(&row["expect"]), text(&got["decision"]));
        let right = decision == expected || (expected == "review" && decision == "reject");
        rates.rows += 1;
        rates.outcome += usize::from(right);
        rates.located += usize::from(right);
        rates.complete += usize::from(right && (expected == "accept" || got["reason"] == row["reason"]));
        if !right {
            rates.misses.push(row["id"].to_string());
        }
    }
    Ok(BTreeMap::from([("definitions".to_owned(), rates)]))
}

/// Scores `redaction` and `policy`: the result has to be the expected value, without anything forbidden. Rows of the
/// profile `design` have more than one sound result, so only forbidden values count there.
///
/// # Errors
///
/// As [`calls`].
pub fn plain(kind: &str, rows: &str, results: &str) -> Result<BTreeMap<String, Rates>, Box<dyn std::error::Error>> {
    let mut profiles = BTreeMap::<String, Rates>::new();
    let mut results = results.lines();
    for line in rows.lines() {
        let row: Value = serde_json::from_str(line)?;
        let got: Value = serde_json::from_str(results.next().ok_or("results are missing")?)?;
        if got["id"] != row["id"] {
            return Err(format!("{} where {} was expected", got["id"], row["id"]).into());
        }
        let (expected, got) = if kind == "policy" {
            let decisions = row["calls"].as_array().into_iter().flatten().map(|call| call["expect"].clone());
            (Value::Array(decisions.collect()), &got["decisions"])
        } else {
            (row["expect"].clone(), &got["redacted"])
        };
        let text = got.to_string();
        let forbidden = row["must_not_contain"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let leaks = forbidden.into_iter().any(|secret| text.contains(secret));
        let profile = row["profile"].as_str().unwrap_or(kind).to_owned();
        let right = !leaks && (profile == "design" || is_same(got, &expected));
        let rates = profiles.entry(profile).or_default();
        rates.rows += 1;
        rates.outcome += usize::from(!leaks);
        rates.located += usize::from(right);
        rates.complete += usize::from(right);
        if !right {
            rates.misses.push(row["id"].to_string());
        }
    }
    Ok(profiles)
}
