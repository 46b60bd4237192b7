//! What is hydrated comes out of hydration.

use tool_runtime::hydrate::Hydrated;

fn forge<T>(frozen: T) -> Hydrated {
    Hydrated { frozen }
}

fn main() {}
