//! Items of features that this package does not enable.

use tool_runtime::agent::Agent;
use tool_runtime::catalog::PickOptions;
use tool_runtime::wire::Format;

fn main() {}
