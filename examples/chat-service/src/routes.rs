//! The routes, and the handling of one request.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use tokio::task::JoinHandle;
use tool_runtime::agent::{Input, UiStream};
use tool_runtime::error::ParseError;
use tool_runtime::wire::ui::{ChatRequest, Protocol};

use crate::chats::Chat;
use crate::people::Person;
use crate::refusal::Refusal;
use crate::request::{self, Named};
use crate::state::ChatState;
use crate::{Service, page};

/// The maximum size of a body, in bytes. Each request contains the whole chat, with its files.
const BODY: usize = 8 << 20;

/// The protocol of `useChat`.
const PROTOCOL: Protocol = Protocol::UiMessageStream;

/// Returns the routes of a service.
pub fn router(service: Arc<Service>) -> Router {
    Router::new()
        .route("/health", get(|| async { "ok" }))
        .route("/api/chat", post(chat))
        .route("/api/chats/{id}", get(state))
        .route("/api/ag-ui", post(ag_ui))
        .merge(page::routes())
        .layer(DefaultBodyLimit::max(BODY))
        .with_state(service)
}

/// Answers one request of `useChat`. An invalid request is refused before the stream begins.
async fn chat(State(service): State<Arc<Service>>, headers: HeaderMap, body: Bytes) -> Result<Response, Refusal> {
    let person = service.person(&headers)?;
    let chat = service.open(person, &request::named(&body)?.id).await?;
    let read = |chat: &Chat| chat.conversation.chat_reader().with_max_bytes(BODY).read(&body);
    let (mut chat, input, says) = service.accept(person, chat, read).await?;
    let stream = if says {
        let message = chat.next_message();
        chat.conversation.ui_stream(PROTOCOL, &message)
    } else {
        // Continues the message that the client shows; the calls in it that waited are updated in place.
        let message = chat.message();
        chat.conversation.ui_stream_resuming(PROTOCOL, &message)
    };
    Ok(respond(PROTOCOL, stream, tokio::spawn(chat.turn(input))))
}

/// Answers one request of an AG-UI client. Without a known token or the id of a chat, the response is an HTTP error.
/// Any other refused request gets a run that fails.
async fn ag_ui(State(service): State<Arc<Service>>, headers: HeaderMap, body: Bytes) -> Result<Response, Refusal> {
    let person = service.person(&headers)?;
    let named = request::named(&body)?;
    let run = Box::pin(run(&service, person, &named, &body)).await;
    Ok(run.unwrap_or_else(|refusal| refusal.into_run(&named)))
}

async fn run(service: &Service, person: &Person, named: &Named, body: &[u8]) -> Result<Response, Refusal> {
    let chat = service.open(person, &named.id).await?;
    let read = |chat: &Chat| chat.conversation.chat_reader().with_max_bytes(BODY).read_ag_ui(body);
    let (mut chat, input, _) = service.accept(person, chat, read).await?;
    let stream = chat.conversation.ui_stream(Protocol::AgUi, &named.run).for_run(&named.id, &named.run);
    Ok(respond(Protocol::AgUi, stream, tokio::spawn(chat.turn(input))))
}

/// Returns the state of a chat, for the page.
async fn state(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> Result<Json<ChatState>, Refusal> {
    let person = service.person(&headers)?;
    service.state(person, &id).await.map(Json)
}

/// Returns the streamed response. The work is a separate task, which continues if the client disconnects. The body
/// ends after the chat was released, so that the client's next request can lease the chat.
fn respond(protocol: Protocol, stream: UiStream, turn: JoinHandle<()>) -> Response {
    streamed(protocol, Body::from_stream(stream.end_after(turn)))
}

/// Returns a body with the headers of its protocol.
pub(crate) fn streamed(protocol: Protocol, body: Body) -> Response {
    let mut response = body.into_response();
    let content_type = ("content-type", protocol.content_type());
    for &(name, value) in protocol.headers().iter().chain([&content_type]) {
        response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}

impl Service {
    /// Returns the person of a request. A real service uses its session store here.
    fn person(&self, headers: &HeaderMap) -> Result<&Person, Refusal> {
        let token = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        token.and_then(|token| self.people.get(token)).ok_or(Refusal::Unauthorised)
    }

    /// Reads a request and checks it against the chat. Returns the stored chat, the input, and whether the request
    /// contains a new text or file of the person. After a refusal, the chat is unchanged and released.
    async fn accept(
        &self,
        person: &Person,
        chat: Chat,
        read: impl FnOnce(&Chat) -> Result<ChatRequest, ParseError>,
    ) -> Result<(Chat, Input, bool), Refusal> {
        let checked = async {
            let request = read(&chat)?;
            let says = request.text.is_some() || !request.files.is_empty();
            // In this chat, a person decides on the calls of their own agent, as the policy permits.
            let input = Input::posted(request, &person.decider());
            chat.conversation.check(&input).await?;
            Ok((input, says))
        };
        match checked.await {
            Ok((input, says)) => Ok((self.keep(chat).await?, input, says)),
            Err(refusal) => {
                chat.close().await;
                Err(refusal)
            }
        }
    }
}
