//! The GET stream for server-initiated messages, in sessions.

use reqwest::header::{ACCEPT, CONTENT_TYPE};

use crate::mcp::source::error::RequestError;
use crate::mcp::source::http::Http;
use crate::mcp::source::http::resume::StreamEnd;
use crate::mcp::source::message::Notification;

impl Http {
    /// Opens the stream and handles its messages until it ends. `id` is the id of the subscription, which the messages
    /// of this stream do not contain.
    pub(in crate::mcp::source) async fn listen(&self, id: u64) -> Result<Box<str>, RequestError> {
        let request = self.described(self.0.client.get(self.0.url.clone())).header(ACCEPT, "text/event-stream");
        let mut response = request.send().await.map_err(|_| RequestError::Closed)?;
        let status = response.status().as_u16();
        if status == 404 && self.session().id.is_some() {
            self.session().is_gone = true;
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if status >= 300 {
            return Err(RequestError::Status(status, None));
        }
        if !kind.starts_with("text/event-stream") {
            // Servers without this stream should answer 405; some answer with another content type.
            return Err(RequestError::Status(405, None));
        }
        self.0.hints.notify(Notification::Acknowledged { subscription: Some(id), of_tools: true });
        self.stream(id, &mut response, &mut StreamEnd::default()).await?.ok_or(RequestError::Closed)
    }
}
