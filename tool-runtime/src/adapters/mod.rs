//! A run's tools, calls and results in the types of other crates, for applications that already have a client.
//!
//! The client keeps its requests and its history. It offers the definitions that it gets from here, and its calls go
//! through the gate: [`Run::exec`](crate::Run::exec) decides, runs, redacts and records each.
//!
//! | module | feature | crate | oldest Rust |
//! | --- | --- | --- | --- |
//! | `rig` | `rig` | `rig-core` 0.44 | 1.95 |
//! | `async_openai` | `async-openai` | `async-openai` 0.43 | 1.88 |
//! | `genai` | `genai` | `genai` 0.7 | 1.88 (the crate states none) |

#[cfg(feature = "async-openai")]
pub mod async_openai;
#[cfg(feature = "genai")]
pub mod genai;
#[cfg(feature = "rig")]
pub mod rig;
