//! Serves the page: a chat with the buttons Approve and Deny, in plain HTML and JavaScript.

use axum::Router;
use axum::http::HeaderValue;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

/// The Content-Security-Policy of the page. The page loads only its own script and style, and sends requests only to
/// this service. It writes text, never HTML, which `require-trusted-types-for` enforces.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

/// Returns the routes of the page's files.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/", get(|| async { file("text/html; charset=utf-8", include_str!("page/page.html")) }))
        .route("/page.js", get(|| async { file("text/javascript; charset=utf-8", include_str!("page/page.js")) }))
        .route("/page.css", get(|| async { file("text/css; charset=utf-8", include_str!("page/page.css")) }))
}

fn file(content_type: &'static str, text: &'static str) -> Response {
    let mut response = text.into_response();
    for (name, value) in [
        (CONTENT_TYPE, content_type),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-cache"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
