//! [`Body`]: the body of a response, and responses that refuse a request.

use std::convert::Infallible;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use rmcp::model::ErrorData;

pub(super) type Body = BoxBody<Bytes, Infallible>;

/// Returns the response that refuses the request with `id`, which is JSON text.
pub(super) fn unanswered(id: &str, error: &ErrorData) -> Response<Body> {
    let error = serde_json::to_string(error).unwrap_or_default();
    let said = Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#));
    let mut response = Response::new(Full::new(said).boxed());
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

pub(super) fn refused(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *response.status_mut() = status;
    response
}
