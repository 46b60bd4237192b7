//! Other libraries that rank texts, on the tools and requests of the retrieval corpus. `./run CORPORA` prints the
//! table.
//!
//! - `rank ENGINE TOOLS POOL < ROWS`: answers in the form that `score retrieval` of the package `tests` reads.
//! - `times TOOLS ROWS COUNT`: the time of each engine for a request over that many tools, and for indexing them.

mod engines;
mod tools;

use std::collections::HashMap;
use std::error::Error;
use std::fs::read_to_string;
use std::io::stdin;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::json;

use crate::engines::ENGINES;
use crate::tools::Tool;

/// How many ids an answer has at most.
const MAX_RESULTS: usize = 20;

#[derive(Deserialize)]
struct Row {
    id: String,
    query: String,
    offered: Option<Vec<String>>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<_> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["rank", engine, tools, pool] => rank(engine, &read_to_string(tools)?, &read_to_string(pool)?),
        ["times", tools, rows, count] => times(&read_to_string(tools)?, &read_to_string(rows)?, count.parse()?),
        _ => Err("retrieval rank ENGINE TOOLS POOL | times TOOLS ROWS COUNT".into()),
    }
}

fn rank(engine: &str, tools: &str, pool: &str) -> Result<(), Box<dyn Error>> {
    let tools = tools::read(tools, Some(pool));
    let (_, build) = ENGINES.into_iter().find(|(name, _)| *name == engine).ok_or("there is no such engine")?;
    let ranker = build(&tools);
    let places: HashMap<_, _> = tools.iter().enumerate().map(|(at, tool)| (tool.id.as_str(), at)).collect();
    for line in stdin().lines() {
        let Row { id, query, offered } = serde_json::from_str(&line?)?;
        let ids = |found: &[usize]| found.iter().map(|at| tools[*at].id.clone()).take(MAX_RESULTS).collect::<Vec<_>>();
        let mut answer = json!({"id": id, "ranked": ids(&ranker.rank(&query, MAX_RESULTS, &|_| true))});
        if let Some(offered) = offered {
            let among: Vec<_> = offered.iter().filter_map(|id| places.get(id.as_str())).collect();
            answer["offered"] = ids(&ranker.rank(&query, tools.len(), &|at| among.contains(&&at))).into();
        }
        println!("{answer}");
    }
    Ok(())
}

/// Copies of the tools under other names are added to reach the number.
fn times(tools: &str, rows: &str, count: usize) -> Result<(), Box<dyn Error>> {
    let own = tools::read(tools, None);
    let copy = |(at, tool): (usize, &Tool)| tool.renamed(&format!("copy{}", at / own.len()));
    let mut tools: Vec<_> = own.iter().cycle().enumerate().skip(own.len()).map(copy).take(count - own.len()).collect();
    tools.extend(own.iter().map(|tool| tool.renamed("own")));
    let queries: Vec<Row> = rows.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    println!("| {} tools | taken in, ms | median, ms | 99 of 100, ms |", tools.len());
    println!("| --- | ---: | ---: | ---: |");
    for (name, build) in ENGINES {
        let started = Instant::now();
        let ranker = build(&tools);
        let taken = started.elapsed();
        // The fastest of a few passes: a busy machine only ever adds to a time.
        let fastest = |query: &str| {
            let pass = |_| {
                let started = Instant::now();
                std::hint::black_box(ranker.rank(query, MAX_RESULTS, &|_| true));
                started.elapsed()
            };
            (0..4).map(pass).min().unwrap_or_default()
        };
        let mut found: Vec<_> = queries.iter().map(|row| fastest(&row.query)).collect();
        found.sort_unstable();
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let (half, most) = (found[found.len() / 2], found[found.len() * 99 / 100]);
        println!("| {name} | {:.0} | {:.2} | {:.2} |", ms(taken), ms(half), ms(most));
    }
    Ok(())
}
