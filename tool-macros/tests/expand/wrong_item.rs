/// Adds.
pub enum Add {
    Left,
}
::core::compile_error! {
    "`#[tool]` is for a function or a struct with named fields"
}
