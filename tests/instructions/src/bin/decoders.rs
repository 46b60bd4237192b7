//! Responses for `tests/decoders.sh`, which counts the instructions and allocations of reading them with `callgrind`.
//!
//! Arguments: `typed` or `decoder`, and the number of a row; or `names`, which lists the rows.

#![allow(clippy::expect_used, missing_docs, reason = "a benchmark says what it expects")]

#[path = "../../../benches/decoders/streams.rs"]
mod streams;
#[path = "../../../benches/decoders/typed.rs"]
mod typed;

use std::hint::black_box;

use streams::Stream;

/// The number of deltas of one response, large enough that its beginning and its end are negligible.
const DELTAS: usize = 8_000;

/// The size of a chunk.
const CHUNK: usize = 16_384;

fn main() {
    let words: Vec<_> = std::env::args().skip(1).collect();
    // Each response once, and the responses with whole calls again with a `typed` that keeps the calls, too.
    let kept = Stream::ALL.into_iter().filter(|stream| stream.is_whole_calls());
    let mut rows = Stream::ALL.into_iter().map(|stream| (stream, false)).chain(kept.map(|stream| (stream, true)));
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["names"] => rows.for_each(|(stream, kept)| print(stream, kept)),
        [side, number] => {
            let number = number.parse().expect("a number");
            let (stream, kept) = rows.nth(number).expect("a row");
            let bytes = stream.bytes(DELTAS);
            let frames = streams::frames(&bytes);
            match (*side, kept) {
                ("typed", false) => counted(|| assert!(typed::read(stream.format, black_box(&frames)) >= DELTAS)),
                ("typed", true) => counted(|| assert!(typed::keep(black_box(&frames)) >= DELTAS)),
                _ => counted(|| decode(stream, &bytes)),
            }
        }
        _ => {}
    }
}

#[allow(clippy::print_stdout, reason = "the script reads it")]
fn print(stream: Stream, kept: bool) {
    println!("{stream}{}", if kept { ", kept by both" } else { "" });
}

/// The script counts the instructions inside this function.
#[inline(never)]
fn counted(work: impl FnOnce()) {
    black_box(work)();
}

fn decode(stream: Stream, bytes: &[u8]) {
    let mut decoder = stream.format.decoder().with_max_bytes(usize::MAX).with_max_calls(usize::MAX);
    for chunk in bytes.chunks(CHUNK) {
        decoder.push_with(black_box(chunk), |event| drop(black_box(event)));
    }
    assert!(black_box(decoder.finish()).ended_well(), "{stream}");
}
