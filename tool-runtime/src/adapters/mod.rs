//! A run's tools, calls and results in the types of other crates, for applications that already have a client, and
//! conversations whose steps an engine keeps.
//!
//! The client keeps its requests and its history. It offers the definitions that it gets from here, and its calls go
//! through the gate: [`Run::exec`](crate::Run::exec) decides, runs, redacts and records each.
//!
//! | module | feature | crate | oldest Rust |
//! | --- | --- | --- | --- |
//! | `rig` | `rig` | `rig-core` 0.44 | 1.95 |
//! | `async_openai` | `async-openai` | `async-openai` 0.43 | 1.88 |
//! | `genai` | `genai` | `genai` 0.7 | 1.88 (the crate states none) |
//! | `restate` | `restate` | `restate-sdk` 0.13 | 1.90 |

#[cfg(feature = "async-openai")]
pub mod async_openai;
#[cfg(feature = "genai")]
#[path = "../../adapters/genai/src/lib.rs"]
pub mod genai;
#[cfg(feature = "restate")]
pub mod restate;
#[cfg(feature = "rig")]
pub mod rig;

/// What the model reads of a result where only text can be passed on. Files are in it as text or in a sentence, so that
/// none is missing without a word.
#[cfg(any(feature = "async-openai", feature = "genai", feature = "rig"))]
fn text(result: &crate::call::ToolExecResult) -> String {
    let mut text = result.to_model();
    for media in result.media() {
        text.push_str("\n\n");
        text.push_str(&crate::wire::in_words(media));
    }
    text
}
