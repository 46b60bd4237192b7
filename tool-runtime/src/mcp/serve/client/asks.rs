//! Asks the client of a call, in protocol revisions that allow server requests while the client's request is open.
#![expect(deprecated, reason = "sampling is part of every revision that this server supports")]

use async_trait::async_trait;
use rmcp::model::{
    ClientCapabilities, ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationSchema, ServerRequest,
};
use rmcp::service::ServiceError;
use serde_json::Value;

use crate::capability::{ClientError, Elicit, Sample};
use crate::json::{self, Limits};
use crate::mcp::serve::client::Peer;
use crate::runner::Run;
use crate::tool::Schema;

pub(super) struct Asks {
    pub(super) peer: Peer,
    pub(super) run: Run,
}

#[async_trait]
impl Elicit for Asks {
    async fn ask(&self, message: &str, form: &Value) -> Result<Value, ClientError> {
        let requested_schema: ElicitationSchema =
            serde_json::from_value(form.clone()).map_err(|_| ClientError::Form)?;
        let message = message.to_owned();
        let question = ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema };
        let request = ServerRequest::ElicitRequest(ElicitRequest::new(question));
        let ClientResult::ElicitResult(answer) = self.peer.send_request(request).await.map_err(failed)? else {
            return Err(ClientError::Answer);
        };
        filled(&self.run, form, answer)
    }
}

/// Whether a client can ask a person to fill in forms.
pub(in crate::mcp::serve) fn fills_in_forms(declared: &ClientCapabilities) -> bool {
    declared.elicitation.as_ref().is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
}

/// Returns a person's form values after checking them against the form's schema.
pub(in crate::mcp::serve) fn filled(run: &Run, form: &Value, answer: ElicitResult) -> Result<Value, ClientError> {
    match answer.action {
        ElicitationAction::Accept => {}
        ElicitationAction::Decline => return Err(ClientError::Declined),
        _ => return Err(ClientError::Cancelled),
    }
    let filled = answer.content.ok_or(ClientError::Answer)?;
    let text = filled.to_string();
    let tree = json::parse_value(&text, &Limits::UNBOUNDED).map_err(|_| ClientError::Answer)?;
    let form = Schema::from_text(form.to_string());
    run.check_value(&form, &tree).map_err(|_| ClientError::Answer)?;
    Ok(filled)
}

#[async_trait]
impl Sample for Asks {
    async fn sample(&self, prompt: &str, max_tokens: u32) -> Result<String, ClientError> {
        let message = rmcp::model::SamplingMessage::user_text(prompt);
        let question = rmcp::model::CreateMessageRequestParams::new(vec![message], max_tokens);
        let answer = self.peer.create_message(question).await.map_err(failed)?;
        let block = answer.message.content.first().ok_or(ClientError::Answer)?;
        Ok(block.as_text().ok_or(ClientError::Answer)?.text.clone())
    }
}

/// Converts the error of an unanswered question. A client may also refuse with a protocol error.
fn failed(error: ServiceError) -> ClientError {
    match error {
        ServiceError::McpError(error) if error.code == rmcp::model::ErrorCode::METHOD_NOT_FOUND => {
            ClientError::Unsupported
        }
        ServiceError::McpError(_) => ClientError::Declined,
        _ => ClientError::Cancelled,
    }
}
