//! Rules about `precondition = path(..)`. The key names a function that returns the state on which a call depends.

use crate::errors::Errors;
use crate::model::{Form, Tool};
use crate::names::{nearest, one_of, plain};

/// Reports a name in `precondition = path(..)` that is not a parameter of the tool.
pub(super) fn precondition_unknown(tool: &Tool, errors: &mut Errors) {
    let Form::Function(_) = &tool.form else { return };
    let arguments = tool.arguments.iter().map(|argument| plain(&argument.ident));
    let borrowed = tool.borrowed().filter_map(|borrowed| borrowed.name.as_ref().map(plain));
    let known: Vec<String> = arguments.chain(borrowed).collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let listed = tool.attr.precondition.value().into_iter().flat_map(|hook| hook.arguments.iter().flatten());
    for name in listed.map(|argument| &argument.name) {
        let text = plain(name);
        if known.contains(&&*text) {
            continue;
        }
        match nearest(&text, &known) {
            Some(suggestion) => {
                errors.at(name, format_args!("there is no parameter `{text}`; did you mean `{suggestion}`?"));
            }
            None if known.is_empty() => errors.at(name, "this tool has no parameters"),
            None => errors.at(name, format_args!("there is no parameter `{text}`; write {}", one_of(&known))),
        }
    }
}

/// Reports the key on a struct tool, whose precondition is a method.
pub(super) fn precondition_struct(tool: &Tool, errors: &mut Errors) {
    if let (Some(key), Form::Struct(_)) = (tool.attr.precondition.key(), &tool.form) {
        errors.at(
            key,
            "`precondition` is for functions; in the `#[tool] impl`, write `async fn precondition(self, ..) -> \
             Result<Precondition, ToolError>`",
        );
    }
}
