//! CPU times of calls, in turn.

use std::hint::black_box;
use std::time::Duration;

use cpu_time::ThreadTime;

use crate::tools::Shape;
use crate::{arguments, peers};

const ROUNDS: usize = 41;

/// The minimum duration of a batch, so that the clock's own time is negligible.
const BATCH: Duration = Duration::from_millis(2);

pub fn print() {
    let peers = peers::all();
    println!("| library | {} |", Shape::ALL.map(Shape::name).join(" | "));
    println!("| --- | ---: | ---: | ---: |");
    let columns: Vec<_> = Shape::ALL.map(|shape| column(&peers, shape)).into_iter().collect();
    for (at, peer) in peers.iter().enumerate() {
        let cells: Vec<_> = columns.iter().map(|column| column[at].as_str()).collect();
        println!("| {} | {} |", peer.name(), cells.join(" | "));
    }
}

/// For each library, the time of a call and, except for the first, its ratio to the time of the first in the same
/// round.
fn column(peers: &[Box<dyn peers::Peer>], shape: Shape) -> Vec<String> {
    let texts = arguments(shape);
    let batch = |peer: &dyn peers::Peer, calls: usize| {
        let start = ThreadTime::now();
        for at in 0..calls {
            black_box(peer.call(shape, black_box(&texts[at % 2])));
        }
        start.elapsed().as_secs_f64() / calls as f64
    };
    let mut sizes = Vec::new();
    for peer in peers {
        let mut calls = 16;
        // The first call of a tool compiles its schema, which takes as long as a whole batch.
        batch(&**peer, calls);
        while batch(&**peer, calls) * calls as f64 <= BATCH.as_secs_f64() {
            calls *= 2;
        }
        sizes.push(calls);
    }
    let mut times = vec![Vec::new(); peers.len()];
    let mut ratios = vec![Vec::new(); peers.len()];
    for _ in 0..ROUNDS {
        let round: Vec<_> = peers.iter().zip(&sizes).map(|(peer, &calls)| batch(&**peer, calls)).collect();
        for (at, time) in round.iter().enumerate() {
            times[at].push(*time);
            ratios[at].push(time / round[0]);
        }
    }
    times
        .into_iter()
        .zip(ratios)
        .map(|(times, ratios)| format!("{:.2} us ({:.2})", median(times) * 1e6, median(ratios)))
        .collect()
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
