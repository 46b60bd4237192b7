//! The routes, and the way of one request.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tool_runtime::agent::{Conversation, Incoming};
use tool_runtime::wire::ui::{Protocol, UiEncoder};
use tool_runtime::{CallId, RunOptions};

use crate::Service;
use crate::chats::Taken;
use crate::refusal::Refusal;
use crate::request;
use crate::stream;

/// The largest body, in bytes: `useChat` posts the whole chat each time.
const BODY: usize = 1024 * 1024;

/// What `useChat` reads.
const PROTOCOL: Protocol = Protocol::UiMessageStream;
const NONE: [CallId; 0] = [];

/// The routes of a service.
pub fn router(service: Arc<Service>) -> Router {
    Router::new()
        .route("/health", get(|| async { "ok" }))
        .route("/api/chat", post(chat))
        .layer(DefaultBodyLimit::max(BODY))
        .with_state(service)
}

/// One turn of a chat. Whatever is wrong with the request is said before the stream begins.
async fn chat(State(service): State<Arc<Service>>, headers: HeaderMap, body: Bytes) -> Result<Response, Refusal> {
    let principal = service.principal(&headers)?;
    let posted = request::read(&body)?;
    let mut taken = service.chats.take(principal, &posted.chat)?;
    let conversation = service.conversation(principal, &mut taken).await?;
    let waiting: Vec<_> = conversation.waiting().map(|call| call.id.clone()).collect();
    let (writer, reader) = if posted.is_from_user() {
        // Calls that still wait are given up now. The client shows them in an earlier message, so not in this one.
        stream::open(UiEncoder::resuming(PROTOCOL, &taken.next_message(), NONE), waiting)
    } else {
        // The same message goes on: its id, and the calls in it that are to be updated in place.
        stream::open(UiEncoder::resuming(PROTOCOL, &taken.message(), waiting), NONE)
    };
    let incoming = posted.incoming(&conversation)?;
    conversation.check(&incoming).map_err(|_| Refusal::NotWaiting)?;

    // A task of its own: a client that goes away in the middle leaves a whole conversation behind.
    tokio::spawn(turn(conversation, incoming, taken, writer));
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-store"),
        ("x-vercel-ai-ui-message-stream".parse().map_err(|_| Refusal::Damaged)?, "v1"),
    ];
    Ok((headers, Body::from_stream(reader)).into_response())
}

async fn turn(mut conversation: Conversation, incoming: Incoming, taken: Taken, writer: Arc<stream::Writer>) {
    conversation.events(Arc::clone(&writer) as _);
    // It was checked before the stream began, and nobody else has this chat.
    let _ = conversation.receive(incoming).await;
    if let Ok(saved) = conversation.save().await {
        taken.keep(&saved);
    }
    writer.finish();
}

impl Service {
    /// Who sends the request. A real service asks its session store here.
    fn principal(&self, headers: &HeaderMap) -> Result<&str, Refusal> {
        let token = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        token.and_then(|token| self.tokens.get(token)).map(String::as_str).ok_or(Refusal::Unauthorised)
    }

    /// The conversation as the request before left it. It belongs to this principal, or is refused.
    async fn conversation(&self, principal: &str, taken: &mut Taken) -> Result<Conversation, Refusal> {
        let options = RunOptions::new().principal(principal);
        match taken.saved.take() {
            None => Ok(self.agent.converse(self.runner.run(options))),
            Some(saved) => self.agent.restore(&self.runner, options, saved).await.map_err(|_| Refusal::Damaged),
        }
    }
}
