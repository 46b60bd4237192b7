//! Tools that send questions to the client's model, or to the person at the client.

use serde_json::{Value, json};
use tool_runtime::capability::{ClientError, Elicit, Sample};
use tool_runtime::{ToolError, tool};

/// The error that the calling model reads if there is no answer.
fn unanswered(error: ClientError) -> ToolError {
    ToolError::code("unanswered").with_safe("The client did not answer.").with_source(error)
}

/// A person's response, in the text that the suite expects.
fn response(answer: Result<Value, ClientError>) -> Result<String, ToolError> {
    match answer {
        Ok(content) => Ok(format!("User response: {{action: accept, content: {content}}}")),
        Err(ClientError::Declined) => Ok("User response: {action: decline}".to_owned()),
        Err(ClientError::Cancelled) => Ok("User response: {action: cancel}".to_owned()),
        Err(error) => Err(unanswered(error)),
    }
}

/// Asks the client's model.
#[tool(name = "fixtures__sampling", effect = external_side_effect, redact = ["$"])]
async fn sampling(
    /// The prompt to send.
    prompt: String,
    sample: &dyn Sample,
) -> Result<String, ToolError> {
    let answer = sample.sample(&prompt, 100).await.map_err(unanswered)?;
    Ok(format!("LLM response: {answer}"))
}

/// Asks the person for a name and an address.
#[tool(name = "fixtures__elicitation", effect = external_side_effect, redact = ["$"])]
async fn elicitation(
    /// The message to show.
    message: String,
    elicit: &dyn Elicit,
) -> Result<String, ToolError> {
    let form = json!({
        "type": "object",
        "properties": {
            "username": {"type": "string", "description": "User's response"},
            "email": {"type": "string", "description": "User's email address"},
        },
        "required": ["username", "email"],
    });
    response(elicit.ask(&message, &form).await)
}

/// Asks with a default for each kind of field.
#[tool(name = "fixtures__defaults", effect = external_side_effect, redact = ["$"])]
async fn defaults(elicit: &dyn Elicit) -> Result<String, ToolError> {
    let form = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": true},
        },
        "required": [],
    });
    response(elicit.ask("Please review and update the form fields with defaults", &form).await)
}

/// Asks with each kind of choice.
#[tool(name = "fixtures__enums", effect = external_side_effect, redact = ["$"])]
async fn enums(elicit: &dyn Elicit) -> Result<String, ToolError> {
    let titled = json!([
        {"const": "value1", "title": "First Option"},
        {"const": "value2", "title": "Second Option"},
        {"const": "value3", "title": "Third Option"},
    ]);
    let form = json!({
        "type": "object",
        "properties": {
            "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
            "titledSingle": {"type": "string", "oneOf": titled.clone()},
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
            "titledMulti": {"type": "array", "items": {"anyOf": titled}},
        },
        "required": [],
    });
    response(elicit.ask("Please select options from the enum fields", &form).await)
}
