/// Adds.
pub enum Add {
    Left,
}
::core::compile_error! {
    "`#[tool]` is for a function, a struct with named fields, and the `impl` block of such a struct"
}
