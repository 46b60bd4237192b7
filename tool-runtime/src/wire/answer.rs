//! [`AnswerFormat`]: what the final answer of a model has to be.

use serde::{Deserialize, Serialize};

/// What the final answer of a model has to be: JSON that fits a schema.
///
/// A client asks for it in the provider's own mode for schemas, or offers a tool of this name whose call is the answer.
/// Either way the agent checks what comes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct AnswerFormat {
    /// The name of the format, which is none of the visible tools.
    pub name: String,
    /// The JSON Schema of an object, as text.
    pub schema: String,
}

impl AnswerFormat {
    /// What a tool says that takes the place of a mode for schemas.
    pub(crate) const DESCRIPTION: &'static str =
        "Gives the final answer. Call it once, alone, when no other call is needed any more; write no other answer.";
}
