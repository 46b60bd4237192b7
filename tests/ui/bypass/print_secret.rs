//! A secret does not print itself.

use tool_runtime::Secret;



fn main() {
    println!("{}", Secret::new("hunter2"));
}
