//! Calls for `tests/instructions.sh`, which counts their instructions and allocations with `callgrind`.
//!
//! Arguments: `floor` or `gate`, and `tiny`, `medium` or `large`. The script counts a loop of [`CALLS`] calls, from the
//! text of the arguments to the text for the model, in a run that has had calls before. Two successive calls differ, so
//! that the loop guard compares them.
//!
//! It is a separate package, so that it is built without the features that the tests enable, as an application is, and
//! in a third of the time of the tests.

#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs, reason = "a benchmark says what it expects")]

#[path = "../../benches/gate/work.rs"]
mod work;

use std::hint::black_box;

use tool_runtime::{Outcome, Run, RunOptions, ToolCall};
use work::{TINY, large_floor, large_text, medium_floor, medium_text, ready, runner, tiny_floor};

const CALLS: usize = 20;

/// The number of calls before the counted ones. The table of call ids has just grown, so it does not grow while they
/// are counted.
const BEFORE: usize = 80;

fn main() {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let [side, shape] = words.as_slice() else { return };
    let (text, floor): (_, fn(&str) -> String) = match shape.as_str() {
        "tiny" => (TINY.to_owned(), tiny_floor),
        "medium" => (medium_text(), medium_floor),
        _ => (large_text(), large_floor),
    };
    // The same length, another number.
    let texts = [text.replacen('2', "7", 1), text];
    if side == "floor" {
        (0..BEFORE).for_each(|at| drop(floor(&texts[at % 2])));
        return counted(|| floors(&texts, floor));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let _entered = runtime.enter();
    let (run, name) = (runner().run(RunOptions::new()), format!("bench__{shape}"));
    let ids: Vec<_> = (0..BEFORE + CALLS).map(|at| format!("call_{at}")).collect();
    let (before, ids) = ids.split_at(BEFORE);
    calls(&run, &name, before, &texts);
    counted(|| calls(&run, &name, ids, &texts));
    assert_eq!(run.summary().calls.keys().copied().collect::<Vec<_>>(), [Outcome::Ok]);
}

/// The script counts the instructions inside this function.
#[inline(never)]
fn counted(work: impl FnOnce()) {
    black_box(work)();
}

fn floors(texts: &[String; 2], floor: fn(&str) -> String) {
    for at in 0..CALLS {
        black_box(floor(black_box(&texts[at % 2])));
    }
}

fn calls(run: &Run, name: &str, ids: &[String], texts: &[String; 2]) {
    for (at, id) in ids.iter().enumerate() {
        let call = ToolCall::text(black_box(id.as_str()), name, texts[at % 2].as_str());
        black_box(ready(run.exec(call)).to_model());
    }
}
