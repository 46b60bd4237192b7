//! Measures of a ranking of tools, over the rows that want a tool.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Row {
    id: String,
    #[serde(default)]
    relevant: Vec<String>,
    #[serde(default)]
    offered: Vec<String>,
    /// Whether any one of the relevant tools is sufficient.
    #[serde(default)]
    interchangeable: bool,
}

#[derive(Deserialize)]
struct Got {
    id: String,
    ranked: Vec<String>,
    offered: Option<Vec<String>>,
    #[serde(default)]
    ms: f64,
}

/// Means of measures, each from 0 to 100.
#[derive(Default)]
struct Means(BTreeMap<&'static str, (f64, u32)>);

impl Means {
    fn add(&mut self, measure: &'static str, value: f64) {
        let (sum, count) = self.0.entry(measure).or_default();
        *sum += value * 100.0;
        *count += 1;
    }
}

/// Scores `retrieval`: measures in percent, and the time that 99 of 100 queries stay below, in milliseconds.
///
/// # Errors
///
/// A line is not a row or not a result, or a row has no result.
pub fn retrieval(rows: &str, results: &str) -> Result<BTreeMap<&'static str, f64>, Box<dyn std::error::Error>> {
    let mut means = Means::default();
    let mut times = Vec::new();
    let mut results = results.lines();
    for line in rows.lines() {
        let row: Row = serde_json::from_str(line)?;
        let got: Got = serde_json::from_str(results.next().ok_or("results are missing")?)?;
        if got.id != row.id {
            return Err(format!("{} where {} was expected", got.id, row.id).into());
        }
        times.push(got.ms);
        if row.relevant.is_empty() {
            continue;
        }
        for (measure, most) in [("recall@1", 1), ("recall@5", 5), ("recall@10", 10), ("recall@20", 20)] {
            means.add(measure, recall(&row, &got.ranked, most));
        }
        if row.relevant.len() == 1 {
            means.add("one-wanted-recall@5", recall(&row, &got.ranked, 5));
        }
        means.add("nDCG@10", gain(&row, &got.ranked) / ideal(&row));
        let first = got.ranked.iter().position(|id| row.relevant.contains(id));
        means.add("MRR", first.map_or(0.0, |at| 1.0 / rank(at)));
        if !row.offered.is_empty() {
            means.add("short-recall@1", recall(&row, got.offered.as_deref().unwrap_or_default(), 1));
        }
    }
    let mut measures: BTreeMap<_, _> =
        means.0.into_iter().map(|(measure, (sum, count))| (measure, sum / f64::from(count))).collect();
    times.sort_by(f64::total_cmp);
    measures.insert("p99-ms", times.get(times.len() * 99 / 100).copied().unwrap_or_default());
    Ok(measures)
}

/// Scores `text-hazards` and `text-tool-calls`: the percentage of rows whose text came back unchanged, whose text holds
/// no calls, and whose line for a terminal has no forbidden character.
///
/// # Errors
///
/// As [`retrieval`].
pub fn text(rows: &str, results: &str) -> Result<BTreeMap<&'static str, f64>, Box<dyn std::error::Error>> {
    let (mut right, mut all) = (0, 0);
    let mut results = results.lines();
    for line in rows.lines() {
        let row: Value = serde_json::from_str(line)?;
        let got: Value = serde_json::from_str(results.next().ok_or("results are missing")?)?;
        let pieces: Vec<(String, usize)> = serde_json::from_value(row["pieces"].clone()).unwrap_or_default();
        let pieces: String = pieces.iter().map(|(text, times)| text.repeat(*times)).collect();
        let text = row["text"].as_str().or(row["raw_output"].as_str()).unwrap_or(&pieces);
        let calls = got["calls"].as_u64().unwrap_or_default();
        let forbidden = row["expect"]["terminal_forbidden"].as_array().into_iter().flatten().filter_map(|one| {
            let code = one.as_str()?.strip_prefix("U+")?;
            char::from_u32(u32::from_str_radix(code, 16).ok()?)
        });
        let shown = got["terminal"].as_str().ok_or("a result has no line for a terminal")?;
        let hidden = forbidden.into_iter().all(|one| !shown.contains(one));
        let is_text = got["round_trip"].as_str() == Some(text) && calls == 0;
        right += usize::from(got["id"] == row["id"] && is_text && hidden);
        all += 1;
    }
    Ok(BTreeMap::from([("text", count(right) * 100.0 / count(all.max(1)))]))
}

/// The rank of the item at an index. Ranks count from 1.
fn rank(at: usize) -> f64 {
    f64::from(u32::try_from(at).unwrap_or(u32::MAX)) + 1.0
}

fn count(of: usize) -> f64 {
    f64::from(u32::try_from(of).unwrap_or(u32::MAX))
}

/// The share of the wanted tools that are among the first `most` ranked ones. If the tools are interchangeable, one is
/// enough.
fn recall(row: &Row, ranked: &[String], most: usize) -> f64 {
    let found = ranked.iter().take(most).filter(|id| row.relevant.contains(id)).count();
    if row.interchangeable { count(found.min(1)) } else { count(found) / count(row.relevant.len()) }
}

fn gain(row: &Row, ranked: &[String]) -> f64 {
    let found = ranked.iter().take(10).enumerate().filter(|(_, id)| row.relevant.contains(id));
    let found = found.take(if row.interchangeable { 1 } else { 10 });
    found.map(|(at, _)| 1.0 / (rank(at) + 1.0).log2()).sum()
}

fn ideal(row: &Row) -> f64 {
    let wanted = if row.interchangeable { 1 } else { row.relevant.len().min(10) };
    (0..wanted).map(|at| 1.0 / (rank(at) + 1.0).log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(row: &str, result: &str, expected: &[(&str, f64)]) {
        let measures = retrieval(row, result).unwrap_or_default();
        for (measure, value) in expected {
            let got = measures.get(measure).copied().unwrap_or(f64::NAN);
            assert!((got - value).abs() < 0.01, "{measure}: {got}");
        }
    }

    #[test]
    fn rankings_are_measured() {
        check(
            r#"{"id":"q","relevant":["a","b"],"offered":["a","c"]}"#,
            r#"{"id":"q","ranked":["c","a","d","e","f","b"],"offered":["a","c"],"ms":2}"#,
            &[("recall@1", 0.0), ("recall@5", 50.0), ("recall@10", 100.0), ("MRR", 50.0), ("short-recall@1", 50.0)],
        );
        check(
            r#"{"id":"q","relevant":["a","b"],"interchangeable":true}"#,
            r#"{"id":"q","ranked":["b","a"]}"#,
            &[("recall@1", 100.0), ("nDCG@10", 100.0)],
        );
        check(r#"{"id":"q","relevant":["a"]}"#, r#"{"id":"q","ranked":["b","a"]}"#, &[("nDCG@10", 63.09)]);
        check(r#"{"id":"q","relevant":["a"]}"#, r#"{"id":"q","ranked":["b"]}"#, &[("one-wanted-recall@5", 0.0)]);
        assert!(retrieval(r#"{"id":"q"}"#, r#"{"id":"p","ranked":[]}"#).is_err());
        assert!(retrieval(r#"{"id":"q"}"#, "").is_err());
    }
}
