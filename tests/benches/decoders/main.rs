//! The throughput and the allocations of the decoders, compared with `serde_json` alone on the same frames.
//!
//! `cargo bench -p tests --bench decoders`; a filter such as `-- openai_chat` runs a part of it.

mod streams;
mod typed;

use divan::counter::BytesCount;
use divan::{AllocProfiler, Bencher, black_box};
use serde_json::Value;

use crate::streams::Stream;

/// The number of deltas of one response.
const DELTAS: usize = 100_000;

#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

/// The decoder, fed in chunks of this many bytes. The last number is larger than the whole response.
#[divan::bench(args = Stream::ALL, consts = [64, 1_400, 16_384, 1_048_576, 1_073_741_824])]
fn decode<const CHUNK: usize>(bencher: Bencher<'_, '_>, stream: Stream) {
    let bytes = stream.bytes(DELTAS);
    bencher.counter(BytesCount::new(bytes.len())).bench(|| {
        let mut decoder = stream.format.decoder().with_max_bytes(usize::MAX).with_max_calls(usize::MAX);
        for chunk in bytes.chunks(CHUNK) {
            decoder.push_with(black_box(chunk), |event| drop(black_box(event)));
        }
        let decoded = decoder.finish();
        assert!(decoded.ended_well(), "{stream}: {:?}", decoded.error);
        decoded.calls.len()
    });
}

/// The minimum work of a reader of the same frames: the types borrow, the frames are cut beforehand, and nothing is
/// kept.
#[divan::bench(args = Stream::ALL)]
fn bare_typed(bencher: Bencher<'_, '_>, stream: Stream) {
    let bytes = stream.bytes(DELTAS);
    let frames = streams::frames(&bytes);
    bencher.counter(BytesCount::new(bytes.len())).bench(|| typed::read(stream.format, black_box(&frames)));
}

/// Reads the same frames as trees.
#[divan::bench(args = Stream::ALL)]
fn bare_value(bencher: Bencher<'_, '_>, stream: Stream) {
    let bytes = stream.bytes(DELTAS);
    let frames = streams::frames(&bytes);
    bencher
        .counter(BytesCount::new(bytes.len()))
        .bench(|| frames.iter().filter(|frame| serde_json::from_str::<Value>(black_box(frame)).is_ok()).count());
}
