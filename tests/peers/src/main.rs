//! The same three tools with other libraries, side by side. `./run` prints the tables of BENCHMARKS.md and draws them.
//!
//! - `times`: all libraries take turns, batch by batch; prints medians of the CPU time of a call.
//! - `calls NAME SHAPE`: a loop for `callgrind`.
//! - `many CALLS`: calls in 100 runs at a time, with latencies and memory.
//! - `served`: a call over MCP, with a bare server of `rmcp` and with ours.
//! - `draw`: reads a table on standard input, and writes it as a picture.

mod draw;
mod many;
mod peers;
mod served;
mod times;
mod tools;

use std::hint::black_box;

use crate::tools::Shape;

fn main() {
    let words: Vec<_> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["times"] => times::print(),
        ["calls", name, shape] => calls(name, shape),
        ["many", calls] => many::print(calls.parse().expect("a number of calls")),
        ["served"] => served::print(),
        ["draw", title] => draw::print(title),
        _ => {
            eprintln!("peers times | calls NAME SHAPE | many CALLS | served | draw TITLE");
            std::process::exit(2);
        }
    }
}

/// Makes some calls that are not counted, and then the counted ones.
fn calls(name: &str, shape: &str) {
    let peers = peers::all();
    let peer = peers.iter().find(|peer| peer.name() == name).expect("one of the libraries");
    let shape = Shape::ALL.into_iter().find(|known| known.name() == shape).expect("tiny, medium or large");
    let texts = arguments(shape);
    for at in 0..80 {
        black_box(peer.call(shape, &texts[at % 2]));
    }
    counted(|| {
        for at in 0..20 {
            black_box(peer.call(shape, black_box(&texts[at % 2])));
        }
    });
}

#[inline(never)]
fn counted(work: impl FnOnce()) {
    black_box(work)();
}

/// Two texts of the same length, because a loop guard treats a repeated call differently.
pub fn arguments(shape: Shape) -> [String; 2] {
    let text = shape.arguments();
    [text.replacen('2', "7", 1), text]
}
