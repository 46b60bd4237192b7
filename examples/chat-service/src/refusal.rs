//! [`Refusal`]: why a request gets no stream.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// Why a request gets no stream.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// No token, or one that is not known.
    Unauthorised,
    /// The body is not what `useChat` posts.
    BadRequest(&'static str),
    /// It answers a call that does not wait.
    NotWaiting,
    /// A request for this chat is being answered.
    Busy,
    /// There are too many chats.
    Full,
    /// The saved conversation cannot be restored.
    Damaged,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, code, message) = match self {
            Self::Unauthorised => (StatusCode::UNAUTHORIZED, "unauthorised", "send a bearer token"),
            Self::BadRequest(message) => (StatusCode::BAD_REQUEST, "bad_request", message),
            Self::NotWaiting => (StatusCode::CONFLICT, "not_waiting", "no call of this chat waits for this answer"),
            Self::Busy => (StatusCode::CONFLICT, "busy", "this chat is being answered"),
            Self::Full => (StatusCode::SERVICE_UNAVAILABLE, "full", "there are too many chats"),
            Self::Damaged => (StatusCode::INTERNAL_SERVER_ERROR, "damaged", "the chat cannot be continued"),
        };
        (status, Json(json!({ "error": { "code": code, "message": message } }))).into_response()
    }
}
