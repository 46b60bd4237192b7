//! toolbox
fn main() {}
