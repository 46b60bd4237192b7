//! What is hydrated comes out of hydration.
#![allow(unreachable_code)]

use tool_runtime::hydrate::Hydrated;

fn forge() -> Hydrated {
    Hydrated { frozen: loop {} }
}

fn main() {}
