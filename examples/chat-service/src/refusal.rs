//! [`Refusal`]: the reason why a request is refused. The response is an HTTP status, or a failed run of AG-UI.

use axum::Json;
use axum::body::Body;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tool_runtime::error::ParseError;
use tool_runtime::runner::ResumeError;
use tool_runtime::store::StoreError;
use tool_runtime::wire::ui::{Protocol, UiEncoder, UiEvent};

use crate::request::Named;
use crate::routes::streamed;

/// The reason why a request is refused.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The token is missing or unknown.
    Unauthorised,
    /// The body names no chat, or one of its ids is longer than 128 bytes.
    NoChat,
    /// The body is not a valid request of a chat UI.
    Chat(ParseError),
    /// A decision or an answer does not fit a waiting call, or the person may not decide.
    Resume(ResumeError),
    /// Another request has the chat, or a worker continues it.
    Busy,
    /// The saved conversation cannot be restored.
    Damaged,
}

impl From<ParseError> for Refusal {
    fn from(error: ParseError) -> Self {
        Self::Chat(error)
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Resume(error.into())
    }
}

impl From<ResumeError> for Refusal {
    fn from(error: ResumeError) -> Self {
        Self::Resume(error)
    }
}

impl Refusal {
    fn describe(self) -> (StatusCode, &'static str, String) {
        match self {
            Self::Unauthorised => (StatusCode::UNAUTHORIZED, "unauthorised", "send a bearer token".to_owned()),
            Self::NoChat => {
                (StatusCode::BAD_REQUEST, "no_chat", "the body has no `id` of a chat or `threadId`".to_owned())
            }
            Self::Chat(error) => {
                let status = match error.code() {
                    "chat_too_large" | "history_too_large" => StatusCode::PAYLOAD_TOO_LARGE,
                    "chat_interrupts" | "chat_empty" => StatusCode::CONFLICT,
                    code if code.starts_with("history_") => StatusCode::CONFLICT,
                    _ => StatusCode::BAD_REQUEST,
                };
                (status, error.code(), error.to_string())
            }
            Self::Resume(error) => {
                let status = match error {
                    ResumeError::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
                    _ => StatusCode::CONFLICT,
                };
                (status, error.code(), error.to_string())
            }
            Self::Busy => (StatusCode::CONFLICT, "busy", "this chat is being answered".to_owned()),
            Self::Damaged => (StatusCode::INTERNAL_SERVER_ERROR, "damaged", "the chat cannot be continued".to_owned()),
        }
    }

    /// Returns the refusal as a run of AG-UI that ends with `RUN_ERROR`. A client of AG-UI reads the code and the
    /// message there, and treats any status other than 200 as a broken connection.
    pub(crate) fn into_run(self, named: &Named) -> Response {
        let (_, code, message) = self.describe();
        let mut encoder = UiEncoder::new(Protocol::AgUi).for_run(&named.id, &named.run);
        let mut run = encoder.push(&UiEvent::Error { code: Some(code.to_owned()), message });
        run.extend(encoder.finish());
        streamed(Protocol::AgUi, Body::from(run))
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, code, message) = self.describe();
        (status, Json(json!({ "error": { "code": code, "message": message } }))).into_response()
    }
}
