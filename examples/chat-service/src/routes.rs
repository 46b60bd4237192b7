//! The routes, and the handling of one request.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tokio::task::JoinHandle;
use tool_runtime::RunOptions;
use tool_runtime::agent::{Conversation, Input, UiStream};
use tool_runtime::call::Decider;
use tool_runtime::wire::ui::{ChatRequest, Protocol};

use crate::chats::Taken;
use crate::refusal::Refusal;
use crate::request::{self, Named};
use crate::{Service, log};

/// The largest body, in bytes: clients post the whole chat each time, with its files.
const BODY: usize = 8 << 20;

/// The protocol that `useChat` reads.
const PROTOCOL: Protocol = Protocol::UiMessageStream;

/// The routes of a service.
pub fn router(service: Arc<Service>) -> Router {
    Router::new()
        .route("/health", get(|| async { "ok" }))
        .route("/api/chat", post(chat))
        .route("/api/ag-ui", post(ag_ui))
        .layer(DefaultBodyLimit::max(BODY))
        .with_state(service)
}

/// One turn of a chat. An invalid request is refused before the stream begins.
async fn chat(State(service): State<Arc<Service>>, headers: HeaderMap, body: Bytes) -> Result<Response, Refusal> {
    let principal = service.principal(&headers)?;
    let mut taken = service.chats.take(principal, &request::named(&body)?.id)?;
    let mut conversation = service.conversation(principal, &mut taken).await?;
    let request = conversation.chat_reader().with_max_bytes(BODY).read(&body)?;
    let says = request.text.is_some() || !request.files.is_empty();
    let input = input(request, principal);
    conversation.check(&input).await?;

    let stream = if says {
        conversation.ui_stream(PROTOCOL, &taken.next_message())
    } else {
        // Continues the message that the client shows; the calls in it that waited are updated in place.
        conversation.ui_stream_resuming(PROTOCOL, &taken.message())
    };
    Ok(respond(PROTOCOL, stream, tokio::spawn(turn(conversation, input, taken))))
}

/// One run of a client of AG-UI. The error of an invalid request is the error of its run.
async fn ag_ui(State(service): State<Arc<Service>>, headers: HeaderMap, body: Bytes) -> Result<Response, Refusal> {
    let principal = service.principal(&headers)?;
    let named = request::named(&body)?;
    let run = Box::pin(run(&service, principal, &named, &body)).await;
    Ok(run.unwrap_or_else(|refusal| refusal.into_run(&named)))
}

async fn run(service: &Service, principal: &str, named: &Named, body: &[u8]) -> Result<Response, Refusal> {
    let mut taken = service.chats.take(principal, &named.id)?;
    let mut conversation = service.conversation(principal, &mut taken).await?;
    let request = conversation.chat_reader().with_max_bytes(BODY).read_ag_ui(body)?;
    let input = input(request, principal);
    conversation.check(&input).await?;
    let stream = conversation.ui_stream(Protocol::AgUi, &named.run).for_run(&named.id, &named.run);
    Ok(respond(Protocol::AgUi, stream, tokio::spawn(turn(conversation, input, taken))))
}

/// The input of a request. In this chat, a person decides on the calls of their own agent, as the policy permits.
fn input(request: ChatRequest, principal: &str) -> Input {
    Input::posted(request, &Decider::new(principal))
}

/// The turn is a task of its own: a client that goes away in the middle leaves a whole conversation behind. The body
/// ends when the turn was saved, so that a client which then sends its next request finds the chat as it has seen it.
fn respond(protocol: Protocol, stream: UiStream, turn: JoinHandle<()>) -> Response {
    streamed(protocol, Body::from_stream(stream.end_after(turn)))
}

/// A body with the headers of its protocol.
pub(crate) fn streamed(protocol: Protocol, body: Body) -> Response {
    let mut response = body.into_response();
    let content_type = ("content-type", protocol.content_type());
    for &(name, value) in protocol.headers().iter().chain([&content_type]) {
        response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}

async fn turn(mut conversation: Conversation, input: Input, taken: Taken) {
    // The stream reports the end of the turn. Refusals came before it began.
    let _ended = conversation.receive(input).await;
    match conversation.save().await {
        Ok(saved) => taken.keep(&saved),
        // The chat stays as it was before this turn.
        Err(error) => log(format_args!("a turn could not be saved: {error}")),
    }
}

impl Service {
    /// Returns the principal of a request. A real service uses its session store here.
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
