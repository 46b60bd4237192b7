//! Responses for `tests/decoders.sh`, which counts the instructions and allocations of reading them with `callgrind`.
//!
//! Arguments: `typed` or `decoder`, and the number of a response in [`Stream::ALL`]; or `names`, which lists them.

#![allow(clippy::expect_used, missing_docs, reason = "a benchmark says what it expects")]

#[path = "decoders/streams.rs"]
mod streams;
#[path = "decoders/typed.rs"]
mod typed;

use std::hint::black_box;

use streams::Stream;
use tool_runtime::wire::DecodeOptions;

/// Deltas of one response: what begins and ends it does not count.
const DELTAS: usize = 8_000;

/// The size of a chunk.
const CHUNK: usize = 16_384;

fn main() {
    // `cargo bench` and `cargo test` add options of their own.
    let words: Vec<_> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["names"] => Stream::ALL.iter().for_each(|stream| print(&stream.to_string())),
        [side, number] => {
            let number: usize = number.parse().expect("a number");
            let stream = Stream::ALL[number];
            let bytes = stream.bytes(DELTAS);
            let frames = streams::frames(&bytes);
            if *side == "typed" {
                counted(|| assert!(typed::read(stream.format, black_box(&frames)) >= DELTAS));
            } else {
                counted(|| decode(stream, &bytes));
            }
        }
        _ => {}
    }
}

#[allow(clippy::print_stdout, reason = "the script reads it")]
fn print(line: &str) {
    println!("{line}");
}

/// The script collects what happens in here.
#[inline(never)]
fn counted(work: impl FnOnce()) {
    black_box(work)();
}

fn decode(stream: Stream, bytes: &[u8]) {
    let options = DecodeOptions::default().with_max_bytes(usize::MAX).with_max_calls(usize::MAX);
    let mut decoder = stream.format.decoder(options);
    for chunk in bytes.chunks(CHUNK) {
        decoder.push_with(black_box(chunk), |event| drop(black_box(event)));
    }
    assert!(black_box(decoder.finish()).ended_well(), "{stream}");
}
