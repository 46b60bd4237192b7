//! Throughput of the decoders, beside what `serde_json` alone does with the same frames, and their allocations.
//!
//! `cargo bench -p tests --bench decoders`; a filter such as `-- openai_chat` runs a part of it.

mod streams;
mod typed;

use divan::counter::BytesCount;
use divan::{AllocProfiler, Bencher, black_box};
use serde_json::Value;
use tool_runtime::wire::DecodeOptions;

use crate::streams::Stream;

/// Deltas of one response.
const DELTAS: usize = 100_000;

#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

/// The decoder, fed in chunks of so many bytes; the last one is the whole response at once.
#[divan::bench(args = Stream::ALL, consts = [64, 1_400, 16_384, 1_048_576, 1_073_741_824])]
fn decode<const CHUNK: usize>(bencher: Bencher<'_, '_>, stream: Stream) {
    let bytes = stream.bytes(DELTAS);
    bencher.counter(BytesCount::new(bytes.len())).bench(|| {
        let options = DecodeOptions::default().with_max_bytes(usize::MAX).with_max_calls(usize::MAX);
        let mut decoder = stream.format.decoder(options);
        for chunk in bytes.chunks(CHUNK) {
            decoder.push_with(black_box(chunk), |event| drop(black_box(event)));
        }
        let decoded = decoder.finish();
        assert!(decoded.ended_well(), "{stream}: {:?}", decoded.error);
        decoded.calls.len()
    });
}

/// The least that a reader of the same frames does: borrowed types, the frames cut beforehand, nothing kept.
#[divan::bench(args = Stream::ALL)]
fn bare_typed(bencher: Bencher<'_, '_>, stream: Stream) {
    let bytes = stream.bytes(DELTAS);
    let frames = streams::frames(&bytes);
    bencher.counter(BytesCount::new(bytes.len())).bench(|| typed::read(stream.format, black_box(&frames)));
}

/// The same frames as trees.
#[divan::bench(args = Stream::ALL)]
fn bare_value(bencher: Bencher<'_, '_>, stream: Stream) {
    let bytes = stream.bytes(DELTAS);
    let frames = streams::frames(&bytes);
    bencher
        .counter(BytesCount::new(bytes.len()))
        .bench(|| frames.iter().filter(|frame| serde_json::from_str::<Value>(black_box(frame)).is_ok()).count());
}
