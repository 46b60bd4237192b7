/// Adds.
pub enum Add {
    Left,
}
::core::compile_error! {
    "`#[tool]` stands on a function or on a struct with named fields"
}
